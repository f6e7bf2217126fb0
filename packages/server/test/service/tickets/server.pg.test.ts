// Ticket tags through a server's API, with two databases of a real PostgreSQL.
import {
  AdvanceTagRequest,
  AllocateSegmentRequest,
  CreateTagRequest,
  GenerateIdsRequest,
  IdServiceService,
  NodeServiceService,
  StoreState,
  type Tag,
  TagServiceService,
  UpdateTagRequest,
} from "@idmint/proto";
import { MemoryStore } from "@idmint/testkit";
import { createTestDatabase } from "@idmint/testkit/postgres";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { migrateTicketDatabase } from "../../../src/store/open-tickets.ts";
import { call, generateId, refusalOf, startTest, type TestServer } from "../../support.ts";

const UNSAFE = "fsync,full_page_writes";

async function urlsOf(...names: readonly string[]): Promise<string> {
  const urls: string[] = [];
  for (const name of names) {
    const database = await createTestDatabase();
    onTestFinished(() => database.close());
    const allowUnsafe = UNSAFE.split(",");
    const config = { backend: "postgres", name, url: database.url, allowUnsafe } as const;
    await migrateTicketDatabase(config, { dryRun: false });
    urls.push(`${name}=${database.url}`);
  }
  return urls.join(",");
}

async function start(urls: string, store?: MemoryStore): Promise<TestServer> {
  const flags: Record<string, string> = { "allow-unsafe-store": UNSAFE };
  if (urls !== "") flags["ticket-urls"] = urls;
  return startTest(store === undefined ? { flags } : { flags, store });
}

async function create({ tags }: TestServer, more: object = {}): Promise<Tag | undefined> {
  const tag = { name: "t", kind: { $case: "ticket" as const, value: {} }, ...more };
  const request = CreateTagRequest.fromPartial({ tag });
  return (await call(tags, TagServiceService.createTag, request)).tag;
}

async function many(it: TestServer, count: number): Promise<readonly bigint[]> {
  const request = GenerateIdsRequest.fromPartial({ tag: "t", count, asList: true });
  return (await call(it.ids, IdServiceService.generateIds, request)).ids;
}

test("two servers on two ticket databases issue each id once, from both", async () => {
  const urls = await urlsOf("a", "b");
  const store = new MemoryStore();
  const servers = [await start(urls, store), await start(urls, store)];
  const [first] = servers;
  if (first === undefined) throw new Error("two servers");
  const tag = await create(first);
  expect(tag).toMatchObject({ order: 1, kind: { value: { start: 1n, slots: 60 } } });
  expect(await create(first)).toEqual(tag);
  const answers = await Promise.all(
    servers.flatMap((it) => Array.from({ length: 40 }, (_, at) => many(it, 1 + at * 3))),
  );
  const ids = answers.flat();
  expect(ids).toHaveLength(2 * 40 + 2 * 3 * 780);
  expect(new Set(ids).size).toBe(ids.length);
  // Even slots are one database's, odd ones the other's.
  for (const answer of [ids.slice(0, 2_000), ids.slice(2_000)]) {
    expect(new Set(answer.map((id) => id % 2n)).size).toBe(2);
    expect(new Set(answer.map((id) => id % 60n)).size).toBeGreaterThan(10);
  }
  const request = AllocateSegmentRequest.fromPartial({ tag: "t", count: 5 });
  const refusal = await refusalOf(call(first.ids, IdServiceService.allocateSegment, request));
  expect(refusal).toMatchObject({ reason: "WRONG_KIND", metadata: { kind: "ticket" } });
});

test("a server says of which ticket database it takes no ids, since it saw it further", async () => {
  const urls = await urlsOf("a", "b");
  const it = await start(urls);
  await create(it);
  await many(it, 5_000);
  const url = urls.split(",")[0]?.slice("a=".length) ?? "";
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    "UPDATE idmint_ticket.slot SET last_id = slot, written_by = pg_current_xact_id()::xid WHERE last_id > slot",
  );
  await client.end();
  const status = async (): Promise<readonly unknown[]> => {
    await many(it, 5_000);
    const { ticketDatabases } = await call(it.nodes, NodeServiceService.getNodeStatus, {});
    return ticketDatabases;
  };
  await expect.poll(status, { timeout: 10_000 }).toEqual([
    { name: "a", state: StoreState.FENCED, reason: expect.stringContaining("went back") as string },
    { name: "b", state: StoreState.GRANTING, reason: "" },
  ]);
});

test("a stop of all servers holds for ticket tags, whose databases know nothing of it", async () => {
  const urls = await urlsOf("a", "b");
  const store = new MemoryStore();
  const [one, two] = [await start(urls, store), await start(urls, store)];
  await create(one);
  const before = [...(await many(one, 50)), ...(await many(two, 50))];
  await call(one.nodes, NodeServiceService.stopIssuing, { validateOnly: false });
  expect((await refusalOf(many(one, 5))).reason).toBe("ISSUING_STOPPED");
  await expect.poll(() => two.server.node.status().state, { timeout: 10_000 }).toBe("STOPPED");
  expect((await refusalOf(many(two, 5))).reason).toBe("ISSUING_STOPPED");
  await call(one.nodes, NodeServiceService.resumeIssuing, { validateOnly: false });
  await expect.poll(() => two.server.node.status().state, { timeout: 10_000 }).toBe("SERVING");
  const all = [...before, ...(await many(one, 50)), ...(await many(two, 50))];
  expect(new Set(all).size).toBe(all.length);
});

test("pause, resume, advance and a tag made again hold for ticket tags too", async () => {
  const it = await start(await urlsOf("a", "b"));
  await create(it);
  const before = await many(it, 500);
  await call(it.tags, TagServiceService.pauseTag, { name: "t", etag: "", validateOnly: false });
  expect((await refusalOf(generateId(it, "t"))).reason).toBe("TAG_PAUSED");
  await call(it.tags, TagServiceService.resumeTag, { name: "t", etag: "", validateOnly: false });
  const resumed = await many(it, 50);
  const advance = AdvanceTagRequest.fromPartial({ name: "t", floor: 1_000_000n });
  await call(it.tags, TagServiceService.advanceTag, advance);
  const advanced = await many(it, 50);
  for (const id of advanced) expect(id).toBeGreaterThan(1_000_000n);
  await call(it.tags, TagServiceService.deleteTag, { name: "t", etag: "", validateOnly: false });
  expect((await refusalOf(generateId(it, "t"))).reason).toBe("TAG_NOT_FOUND");
  const other = await refusalOf(create(it, { kind: { $case: "segment", value: {} } }));
  expect(other.reason).toBe("INVALID_ARGUMENT");
  await create(it);
  const again = await many(it, 50);
  const all = [...before, ...resumed, ...advanced, ...again];
  expect(new Set(all).size).toBe(all.length);
  const update = UpdateTagRequest.fromPartial({
    tag: { name: "t", ceiling: 5_000_000n },
    updateMask: ["ceiling"],
  });
  const refused = await refusalOf(call(it.tags, TagServiceService.updateTag, update));
  expect(refused.reason).toBe("FIELD_IMMUTABLE");
});

test("a tag begins at its start and ends at its ceiling", async () => {
  const it = await start(await urlsOf("a", "b"));
  const value = { start: 101n, slots: 4 };
  await create(it, { ceiling: 110n, kind: { $case: "ticket", value } });
  const ids: bigint[] = [];
  for (let i = 0; i < 10; i++) ids.push(...(await many(it, 1)));
  expect(ids.toSorted((x, y) => Number(x - y))).toEqual(
    Array.from({ length: 10 }, (_, at) => 101n + BigInt(at)),
  );
  expect((await refusalOf(many(it, 1))).reason).toBe("TAG_EXHAUSTED");
});

test("without its databases a server makes no ticket tag, and issues none", async () => {
  const urls = await urlsOf("a", "b");
  const store = new MemoryStore();
  const without = await start("", store);
  const refused = await refusalOf(create(without));
  expect(refused.fields).toMatchObject([{ field: "tag.ticket" }]);
  const dead = await start(`${urls},c=postgres://postgres@127.0.0.1:1/nowhere`, store);
  expect((await refusalOf(create(dead))).code).toBe("UNAVAILABLE");
  const good = await start(urls, store);
  await create(good);
  await many(good, 10);
  const elsewhere = await refusalOf(generateId(without, "t"));
  expect(elsewhere).toMatchObject({
    code: "FAILED_PRECONDITION",
    reason: "NOT_CONFIGURED",
    metadata: { tag: "t" },
  });
  expect(elsewhere.message).toContain("ticket.urls");
  // The server with the dead one serves from the others.
  expect(await many(dead, 30)).toHaveLength(30);
});
