// @idmint/client/prisma against a generated Prisma client without an engine, PostgreSQL and a server.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PrismaPg } from "@prisma/adapter-pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { mintIds } from "../../src/adapters/prisma.ts";
import { createTestIdClient } from "../../src/testing.ts";
import { reasonOf, refusal, thrown } from "../support.ts";
import { makePrismaClient } from "./prisma-client.ts";
import { setStage } from "./stage.ts";

const stage = setStage();

const SCHEMA = `
generator client {
  provider = "prisma-client"
  output   = "./generated"
}
datasource db {
  provider = "postgresql"
}
model Order {
  id    BigInt  @id @default(dbgenerated())
  note  String
  code  String? @unique
  data  Json?
  lines Line[]
}
model Line {
  id      BigInt  @id @default(dbgenerated())
  text    String
  orderId BigInt?
  order   Order?  @relation(fields: [orderId], references: [id])
  parts   Part[]
}
model Part {
  key    String @id @default(dbgenerated())
  text   String
  lineId BigInt
  line   Line   @relation(fields: [lineId], references: [id])
}
model Counted {
  id   Int      @id @default(dbgenerated())
  when DateTime @default(now())
}
`;
const TABLES = `
CREATE TABLE "Order" (id bigint PRIMARY KEY, note text NOT NULL, code text UNIQUE, data jsonb);
CREATE TABLE "Line" (id bigint PRIMARY KEY, text text NOT NULL, "orderId" bigint REFERENCES "Order");
CREATE TABLE "Part" (key text PRIMARY KEY, text text NOT NULL, "lineId" bigint NOT NULL REFERENCES "Line");
CREATE TABLE "Counted" (id int PRIMARY KEY, "when" timestamptz DEFAULT now())`;
const SOURCES = {
  Order: "orders",
  Line: "lines",
  Part: { tag: "names", field: "key" },
  Counted: "orders",
};

type Row = Record<string, unknown>;
type Write = (args?: Row) => Promise<Row>;
/** Its types are made at run time; docs/adapters/prisma.md is checked with them. */
interface Prisma {
  readonly order: Record<
    "count" | "create" | "createMany" | "createManyAndReturn" | "findMany" | "update" | "upsert",
    Write
  >;
  readonly part: Record<"update", Write>;
  readonly counted: Record<"create", Write>;
  $extends(extension: never): unknown;
  $transaction<T>(work: readonly Promise<T>[] | ((within: Prisma) => Promise<T>)): Promise<T>;
  $disconnect(): Promise<void>;
}

const folder = mkdtempSync(path.join(tmpdir(), "idmint-prisma-"));
let plain: Prisma;

beforeAll(async () => {
  writeFileSync(path.join(folder, "package.json"), `{ "type": "module" }`);
  writeFileSync(path.join(folder, "schema.prisma"), SCHEMA);
  mkdirSync(path.join(folder, "node_modules/@prisma"), { recursive: true });
  const own = path.resolve(import.meta.dirname, "../../node_modules/@prisma/client");
  symlinkSync(own, path.join(folder, "node_modules/@prisma/client"));
  await makePrismaClient(path.join(folder, "schema.prisma"), path.join(folder, "generated"));
  const generated = (await import(path.join(folder, "generated/client.ts"))) as {
    PrismaClient: new (options: { adapter: PrismaPg }) => Prisma;
  };
  await stage.database.query(TABLES);
  const adapter = new PrismaPg({ connectionString: stage.database.url });
  plain = new generated.PrismaClient({ adapter });
});
afterAll(async () => {
  await plain.$disconnect();
  rmSync(folder, { recursive: true, force: true });
});

function minting(client = stage.client): Prisma {
  return mintIds(plain, client, SOURCES) as Prisma;
}

const included = { include: { lines: { include: { parts: true }, orderBy: { text: "asc" } } } };
type Tree = Row & { id: bigint; lines: (Row & { id: bigint; text: string; parts: Row[] })[] };

test("create, createMany, createManyAndReturn and upsert get ids, and those given are kept", async () => {
  const db = minting();
  const created = await db.order.create({ data: { note: "c", data: { lines: { create: {} } } } });
  expect([typeof created["id"], created["data"]]).toEqual(["bigint", { lines: { create: {} } }]);
  await db.order.createMany({ data: [{ note: "m" }, { note: "m" }] });
  expect(await db.order.count({ where: { note: "m" } })).toBe(2);
  const many = await db.order.createManyAndReturn({
    data: Array.from({ length: 2_500 }, () => ({ note: "r" })),
  });
  const ids = (many as unknown as { id: bigint }[]).map(({ id }) => id);
  expect(new Set(ids).size).toBe(2_500);
  const upsert = {
    where: { code: "u" },
    create: { note: "new", code: "u" },
    update: { note: "old" },
  };
  const first = await db.order.upsert(upsert);
  expect(await db.order.upsert(upsert)).toEqual({ ...first, note: "old" });
  expect(await db.order.create({ data: { id: 77_777n, note: "given" } })).toMatchObject({
    id: 77_777n,
  });
  expect(await db.order.create({ data: { id: undefined, note: "u" } })).toMatchObject({
    note: "u",
  });
  expect(typeof (await db.counted.create())["id"]).toBe("number");
});

test("nested writes get ids at every depth, of the tag of their model", async () => {
  const db = minting();
  const made = (await db.order.create({
    data: {
      note: "tree",
      lines: {
        create: [{ text: "a", parts: { create: { text: "a1" } } }, { text: "b" }],
        connectOrCreate: [{ where: { id: 1n }, create: { text: "c" } }],
      },
    },
    ...included,
  })) as Tree;
  expect(made.lines.map(({ text }) => text)).toEqual(["a", "b", "c"]);
  for (const { id } of made.lines) expect(id).toBeGreaterThanOrEqual(1_000n);
  expect(made.lines[0]?.parts[0]?.["key"]).toMatch(/^[0-9a-f-]{36}$/);
  const [line] = made.lines;
  const changed = (await db.order.update({
    where: { id: made.id },
    data: {
      lines: {
        createMany: { data: [{ text: "d" }, { text: "e" }] },
        upsert: { where: { id: 2n }, create: { text: "f" }, update: { text: "never" } },
        update: { where: { id: line?.id }, data: { parts: { create: [{ text: "a2" }] } } },
      },
    },
    ...included,
  })) as Tree;
  expect(changed.lines.map(({ text }) => text).join("")).toBe("abcdef");
  expect(changed.lines[0]?.parts).toHaveLength(2);
  const all = changed.lines.map(({ id }) => id);
  expect(new Set(all).size).toBe(6);
  // Of a relation to one record: its fields, or where and data.
  const [part] = changed.lines[0]?.parts ?? [];
  const [plainly, wrapped] = ["g", "h"].map((note) => ({ order: { create: { note } } }));
  for (const update of [plainly, { where: { text: "a" }, data: wrapped }]) {
    await db.part.update({ where: { key: part?.["key"] }, data: { line: { update } } });
  }
  expect(await db.order.count({ where: { note: { in: ["g", "h"] } } })).toBe(2);
});

test("the caller's objects stay as they were, so that using them again makes another record", async () => {
  const db = minting();
  const args = { data: { note: "again", lines: { create: [{ text: "a" }] } }, ...included };
  const before = structuredClone(args);
  const [one, other] = [await db.order.create(args), await db.order.create(args)] as Tree[];
  expect(args).toEqual(before);
  expect(one?.id).not.toBe(other?.id);
  expect(one?.lines[0]?.id).not.toBe(other?.lines[0]?.id);
});

test("in both kinds of transactions", async () => {
  const db = minting();
  const note = "transaction";
  await db.$transaction([db.order.create({ data: { note } }), db.order.create({ data: { note } })]);
  await db.$transaction(async (within) => within.order.create({ data: { note } }));
  const undone = db.$transaction(async (within) => {
    await within.order.create({ data: { note } });
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  expect(await db.order.count({ where: { note } })).toBe(3);
});

test("an id past 2^53 comes back to the last digit; one that Int cannot hold is refused", async () => {
  const db = mintIds(plain, stage.client, { Order: "big", Counted: "big" }) as Prisma;
  const { id } = await db.order.create({ data: { note: "big" } });
  expect(id).toBeGreaterThanOrEqual(2n ** 62n);
  const [stored] = await stage.database.query(`SELECT id::text FROM "Order" WHERE note = 'big'`);
  expect(stored?.["id"]).toBe(String(id));
  expect(await reasonOf(db.counted.create())).toBe("UNSAFE_INTEGER");
});

test("without the extension a record without an id is refused by the database", async () => {
  await expect(plain.order.create({ data: { note: "plain" } })).rejects.toThrow(/null/i);
  expect(await plain.order.count({ where: { note: "plain" } })).toBe(0);
});

test("while there are no ids a write is refused whole", async () => {
  const client = stage.clientOf({ addresses: ["127.0.0.1:9"], deadlineMs: 100 });
  onTestFinished(() => client.close());
  const db = minting(client);
  const error = await refusal(db.order.create({ data: { note: "nobody" } }));
  expect(error.retryable).toBe(true);
  expect(await db.order.count({ where: { note: "nobody" } })).toBe(0);
});

test("set-up names everything that cannot be", () => {
  const client = createTestIdClient();
  const error = thrown(() =>
    mintIds(plain, client, {
      Orders: "orders",
      Order: { tag: "orders", field: "number" },
      Counted: { tag: "orders", field: "when" },
    }),
  );
  expect(error.violations.map(({ field, description }) => `${field} ${description}`)).toEqual([
    "Orders.id is unknown: the models are Order, Line, Part, Counted",
    "Order.number is not a field of the model",
    "Counted.when must be BigInt, String or Int, and is DateTime",
  ]);
  const unknown = { $extends: () => undefined };
  expect(thrown(() => mintIds(unknown, client, SOURCES)).reason).toBe("NOT_CONFIGURED");
});
