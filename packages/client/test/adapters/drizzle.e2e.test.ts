// @idmint/client/drizzle against Drizzle, PostgreSQL and a server.
import { DrizzleQueryError, eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, pgTable, text, uuid } from "drizzle-orm/pg-core";
import pg from "pg";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { idDefaults } from "../../src/adapters/drizzle.ts";
import { type IdClient, IdmintError, idsOf } from "../../src/index.ts";
import { createTestIdClient } from "../../src/testing.ts";
import { reasonOf, refusal, thrown } from "../support.ts";
import { setStage } from "./stage.ts";

const stage = setStage();

beforeAll(async () => {
  await stage.database.query(`
    CREATE TABLE orders (id bigint PRIMARY KEY, note text);
    CREATE TABLE counted (id bigint PRIMARY KEY, note text);
    CREATE TABLE named (id uuid PRIMARY KEY, note text);
    CREATE TABLE written (id text PRIMARY KEY, note text)`);
});

function tablesOf(client: IdClient) {
  const ids = idDefaults(client);
  return {
    ids,
    orders: pgTable("orders", {
      id: bigint("id", { mode: "bigint" }).primaryKey().$defaultFn(ids.bigint("orders")),
      note: text("note"),
    }),
    counted: pgTable("counted", {
      id: bigint("id", { mode: "number" }).primaryKey().$defaultFn(ids.number("lines")),
      note: text("note"),
    }),
    big: pgTable("counted", {
      id: bigint("id", { mode: "number" }).primaryKey().$defaultFn(ids.number("big")),
      note: text("note"),
    }),
    named: pgTable("named", {
      id: uuid("id").primaryKey().$defaultFn(ids.string("names")),
      note: text("note"),
    }),
    written: pgTable("written", {
      id: text("id").primaryKey().$defaultFn(ids.string("orders")),
      note: text("note"),
    }),
  };
}

function connect() {
  const pool = new pg.Pool({ connectionString: stage.database.url });
  onTestFinished(() => pool.end());
  return drizzle(pool);
}

/** Reason of the refusal, which Drizzle hands on as it was thrown. */
async function reasonOfInsert(insert: PromiseLike<unknown>): Promise<string> {
  return reasonOf((async () => insert)());
}

test("inserts get ids as bigint, number and text, exact in the database", async () => {
  const client = stage.clientOf();
  onTestFinished(() => client.close());
  const { ids, orders, counted, named, written } = tablesOf(client);
  await ids.warm();
  const db = connect();
  const rows = await db
    .insert(orders)
    .values([{ note: "a" }, { note: "b" }])
    .returning();
  expect(rows.map(({ id }) => typeof id)).toEqual(["bigint", "bigint"]);
  const [stored] = await stage.database.query(
    "SELECT array_agg(id::text ORDER BY id) AS ids FROM orders",
  );
  expect(stored?.["ids"]).toEqual(rows.map(({ id }) => String(id)).toSorted());
  const [number] = await db.insert(counted).values({ note: "n" }).returning();
  expect(number?.id).toBeGreaterThanOrEqual(1_000);
  const [name] = await db.insert(named).values({ note: "u" }).returning();
  expect(name?.id).toMatch(/^[0-9a-f-]{36}$/);
  const [decimal] = await db.insert(written).values({ note: "d" }).returning();
  expect(decimal?.id).toMatch(/^\d+$/);
  // Nobody has an id of the tag twice, whatever it is stored as.
  expect(rows.map(({ id }) => String(id))).not.toContain(decimal?.id);
  const [given] = await db.insert(orders).values({ id: 77_777n, note: "given" }).returning();
  expect(given?.id).toBe(77_777n);
});

test("an id that no number holds is refused, and nothing is inserted", async () => {
  const { ids, big } = tablesOf(stage.client);
  await ids.warm();
  const db = connect();
  const before = await db.$count(big);
  expect(await reasonOfInsert(db.insert(big).values({ note: "big" }))).toBe("UNSAFE_INTEGER");
  expect(await db.$count(big)).toBe(before);
});

test("a cold tag refuses the insert with the way out, and warm() makes it work", async () => {
  const client = stage.clientOf();
  onTestFinished(() => client.close());
  const { ids, orders } = tablesOf(client);
  const db = connect();
  const error = await refusal((async () => db.insert(orders).values({ note: "cold" }))());
  expect(error.reason).toBe("SEGMENT_NOT_READY");
  expect(error.retryable).toBe(true);
  expect(error.metadata).toEqual({ tag: "orders" });
  for (const words of [
    "Await warm() of idDefaults",
    "option min",
    'client.tag("orders").take(count)',
  ]) {
    expect(error.message).toContain(words);
  }
  expect(await db.$count(orders, eq(orders.note, "cold"))).toBe(0);
  await ids.warm();
  await db.insert(orders).values({ note: "cold" });
  expect(await db.$count(orders, eq(orders.note, "cold"))).toBe(1);
});

test("warm() refuses a sequence and an unknown tag, and waits for every tag", async () => {
  const strict = idDefaults(stage.client);
  strict.bigint("orders");
  strict.bigint("strict");
  const error = await refusal(strict.warm());
  expect([error.reason, error.metadata["tag"]]).toEqual(["WRONG_KIND", "strict"]);
  const unknown = idDefaults(stage.client);
  unknown.number("nobody");
  expect(await reasonOf(unknown.warm())).toBe("TAG_NOT_FOUND");
  const stand = createTestIdClient();
  const several = idDefaults(stand);
  const next = ["a", "b", "c"].map((tag) => several.bigint(tag));
  for (const tag of ["a", "b", "c"]) stand.tag(tag).cool();
  expect(thrown(() => next[2]?.()).reason).toBe("SEGMENT_NOT_READY");
  await several.warm();
  expect(next.map((one) => one())).toEqual([1n, 1n, 1n]);
  const impatient = idDefaults(stage.clientOf({ addresses: ["127.0.0.1:9"] }));
  impatient.bigint("orders");
  const before = performance.now();
  await expect(impatient.warm({ deadlineMs: 100 })).rejects.toThrow(IdmintError);
  expect(performance.now() - before).toBeLessThan(4_000);
});

test("an insert of more rows than are in memory is refused whole; min or take() make room", async () => {
  const rows = Array.from({ length: 5_000 }, (_, i) => ({ note: `bulk ${i}` }));
  const small = stage.clientOf({ min: 100, max: 1_000 });
  onTestFinished(() => small.close());
  const { ids, orders } = tablesOf(small);
  await ids.warm();
  const db = connect();
  const before = await db.$count(orders);
  expect(await reasonOfInsert(db.insert(orders).values(rows))).toBe("SEGMENT_NOT_READY");
  expect(await db.$count(orders)).toBe(before);
  const taken = idsOf(await small.tag("orders").take(rows.length));
  await db.insert(orders).values(rows.map((row) => ({ ...row, id: taken.next().value ?? 0n })));
  const large = stage.clientOf({ min: 5_000 });
  onTestFinished(() => large.close());
  const roomy = tablesOf(large);
  await roomy.ids.warm();
  await db.insert(roomy.orders).values(rows);
  expect(await db.$count(orders)).toBe(before + 10_000);
});

test("a prepared insert repeats its id, and the primary key refuses it; a placeholder does not", async () => {
  const { ids, orders } = tablesOf(stage.client);
  await ids.warm();
  const db = connect();
  const prepared = db
    .insert(orders)
    .values({ note: sql.placeholder("note") })
    .prepare("repeats");
  await prepared.execute({ note: "prepared" });
  await expect(prepared.execute({ note: "prepared" })).rejects.toThrow(DrizzleQueryError);
  expect(await db.$count(orders, eq(orders.note, "prepared"))).toBe(1);
  const open = db
    .insert(orders)
    .values({ id: sql.placeholder("id"), note: "open" })
    .prepare("open");
  for (let i = 0; i < 3; i++) await open.execute({ id: stage.client.tag("orders").nextSync() });
  expect(await db.$count(orders, eq(orders.note, "open"))).toBe(3);
});
