// @idmint/client/typeorm against TypeORM, PostgreSQL and a server.
import { DataSource, EntitySchema, QueryFailedError } from "typeorm";
import { expect, onTestFinished, test } from "vitest";
import { mintIds } from "../../src/adapters/typeorm.ts";
import { refusal, thrown } from "../support.ts";
import { setStage } from "./stage.ts";

const stage = setStage();

interface Line {
  id?: string;
  text: string;
  order?: Order;
}

interface Order {
  id?: string;
  note: string;
  code?: string;
  lines?: Line[];
}

interface Named {
  name?: string;
  note: string;
}

const orders = new EntitySchema<Order>({
  name: "Order",
  columns: {
    id: { type: "bigint", primary: true },
    note: { type: "text" },
    code: { type: "text", nullable: true, unique: true },
  },
  relations: {
    lines: { type: "one-to-many", target: "Line", inverseSide: "order", cascade: true },
  },
});
const lines = new EntitySchema<Line>({
  name: "Line",
  columns: { id: { type: "bigint", primary: true }, text: { type: "text" } },
  relations: { order: { type: "many-to-one", target: "Order", inverseSide: "lines" } },
});
const named = new EntitySchema<Named>({
  name: "Named",
  columns: { name: { type: "uuid", primary: true }, note: { type: "text" } },
});
const native = new EntitySchema<{ id: bigint }>({
  name: "Native",
  columns: {
    id: { type: "bigint", primary: true, transformer: { to: String, from: BigInt } },
  },
});
const odd = new EntitySchema<{ id: Date; at: number }>({
  name: "Odd",
  columns: { id: { type: "date", primary: true }, at: { type: "int", generated: "increment" } },
});

const SOURCES = { Order: "orders", Line: "lines", Named: { tag: "names", field: "name" } };

async function connect(more: { parseInt8?: boolean } = {}): Promise<DataSource> {
  const db = new DataSource({
    type: "postgres",
    url: stage.database.url,
    entities: [orders, lines, named, native, odd],
    synchronize: true,
    ...more,
  });
  await db.initialize();
  onTestFinished(() => db.destroy());
  return db;
}

async function minting(): Promise<DataSource> {
  const db = await connect();
  mintIds(db, stage.client, SOURCES);
  return db;
}

test("save(): an entity and all that is saved with it gets an id, and is read as it was written", async () => {
  const db = await minting();
  const saved = await db.manager.save(orders, {
    note: "saved",
    lines: [{ text: "a" }, { text: "b" }],
  } as Order);
  expect(saved.id).toMatch(/^\d+$/);
  expect(saved.lines?.map(({ id }) => typeof id)).toEqual(["string", "string"]);
  const found = await db.manager.findOne(orders, {
    where: { id: saved.id ?? "" },
    relations: { lines: true },
    order: { lines: { text: "ASC" } },
  });
  expect(found).toEqual({ ...saved, code: null });
  expect(BigInt(found?.lines?.[0]?.id ?? 0)).toBeGreaterThanOrEqual(1_000n);
  // Saved again it is the same record.
  const again = await db.manager.save(orders, { ...saved, note: "changed" });
  expect(again.id).toBe(saved.id);
  expect(await db.manager.countBy(orders, { id: saved.id ?? "" })).toBe(1);
  const many = await db.manager.save(orders, [{ note: "x" }, { note: "y" }, { note: "z" }]);
  expect(new Set(many.map(({ id }) => id)).size).toBe(3);
});

test("insert(), upsert() and a query builder get ids as well", async () => {
  const db = await minting();
  const repository = db.getRepository(orders);
  const inserted = await repository.insert([{ note: "i1" }, { note: "i2" }]);
  expect(inserted.identifiers.map((each) => typeof (each as Order).id)).toEqual([
    "string",
    "string",
  ]);
  const code = "once";
  await repository.upsert({ note: "u1", code }, ["code"]);
  const first = await repository.findOneByOrFail({ code });
  await repository.upsert({ note: "u2", code }, ["code"]);
  // The record stays who it is; the id of the second try is a gap.
  expect(await repository.findOneByOrFail({ code })).toEqual({ ...first, note: "u2" });
  await db
    .createQueryBuilder()
    .insert()
    .into(orders)
    .values([{ note: "q" }, { note: "q" }])
    .execute();
  expect(await repository.countBy({ note: "q" })).toBe(2);
  const [name] = await db.manager.save(named, [{ note: "n" }]);
  expect(name?.name).toMatch(/^[0-9a-f-]{36}$/);
});

test("an id past 2^53 comes back to the last digit, and an id that was given is kept", async () => {
  const db = await connect();
  mintIds(db, stage.client, { Order: "big" });
  const { id } = await db.manager.save(orders, { note: "big" } as Order);
  expect(BigInt(id ?? 0)).toBeGreaterThanOrEqual(2n ** 62n);
  expect(await db.manager.findOneByOrFail(orders, { id: id ?? "" })).toMatchObject({
    id,
    note: "big",
  });
  const given = await db.manager.save(orders, { id: "77777", note: "given" });
  expect(given.id).toBe("77777");
});

test("ids that are text are refused for a bigint column, and a sequence mints them in order", async () => {
  const db = await connect();
  mintIds(db, stage.client, { Order: "names", Line: "strict" });
  const error = await refusal(db.manager.save(orders, { note: "uuid" } as Order));
  expect(error.reason).toBe("WRONG_KIND");
  const many = await db.manager.save(lines, [{ text: "s1" }, { text: "s2" }]);
  expect(many.map(({ id }) => id)).toEqual(["1", "2"]);
});

test("what it does not cover is refused by the database", async () => {
  const db = await minting();
  const insert = { note: "uncovered" };
  const builder = db.createQueryBuilder().insert().into(orders).values(insert).callListeners(false);
  await expect(builder.execute()).rejects.toThrow(QueryFailedError);
  await expect(db.manager.save(orders, insert, { listeners: false })).rejects.toThrow(
    QueryFailedError,
  );
  await expect(db.query(`INSERT INTO "order" (note) VALUES ('raw')`)).rejects.toThrow(
    QueryFailedError,
  );
  expect(await db.manager.countBy(orders, insert)).toBe(0);
});

test("while there are no ids a save is refused, and nothing is written", async () => {
  const client = stage.clientOf({ addresses: ["127.0.0.1:9"], deadlineMs: 100 });
  onTestFinished(() => client.close());
  const db = await connect();
  mintIds(db, client, SOURCES);
  const error = await refusal(db.manager.save(orders, { note: "nobody" } as Order));
  expect(error.retryable).toBe(true);
  expect(await db.manager.countBy(orders, { note: "nobody" })).toBe(0);
});

test("set-up names everything that cannot be", async () => {
  const db = await connect();
  const error = thrown(() =>
    mintIds(db, stage.client, {
      Orders: "orders",
      Order: { tag: "orders", field: "number" },
      Odd: "orders",
      Native: "orders",
      Line: { tag: "lines", field: "text" },
    }),
  );
  expect(error.violations.map(({ field, description }) => `${field} ${description}`)).toEqual([
    "Orders.id is unknown: the entities are Order, Line, Named, Native, Odd",
    "Order.number is not a column of the entity",
    "Odd.id must be bigint or text, and is date",
    "Native.id must have no transformer: TypeORM keeps keys of bigint columns as text",
  ]);
  const generated = thrown(() =>
    mintIds(db, stage.client, { Odd: { tag: "orders", field: "at" } }),
  );
  expect(generated.message).toContain("use @PrimaryColumn");
  const closed = new DataSource({ type: "postgres", url: stage.database.url });
  expect(thrown(() => mintIds(closed, stage.client, SOURCES)).message).toContain("initialize()");
});

test("where bigint columns are read as numbers, set-up is refused", async () => {
  const { defaults } = (await import("pg")).default;
  // TypeORM sets it for the whole process.
  onTestFinished(() => {
    defaults.parseInt8 = false;
  });
  const db = await connect({ parseInt8: true });
  const error = thrown(() => mintIds(db, stage.client, { Order: "orders" }));
  expect(error.message).toContain("parseInt8");
});
