// Who was given which ids, asked of real servers on a real store.
import {
  IdServiceService,
  LedgerEntryKind,
  LookupResult,
  type LookupIdResponse,
  TagServiceService,
} from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { createSequence } from "./kinds/sequence/suite.ts";
import { sqliteHarness } from "../store/harness.ts";
import { call, createTag, generateId, refusalOf, startTest, type TestServer } from "../support.ts";

async function startTwo(flags: Record<string, string> = {}): Promise<[TestServer, TestServer]> {
  const harness = await sqliteHarness();
  onTestFinished(() => harness.remove());
  const start = async (instance: string): Promise<TestServer> =>
    startTest({ flags: { ...flags, instance }, parts: { store: await harness.open() } });
  return [await start("node-1"), await start("node-2")];
}

function lookUp({ tags }: TestServer, id: bigint, tag = "orders"): Promise<LookupIdResponse> {
  return call(tags, TagServiceService.lookupId, { tag, value: { $case: "id", value: id } });
}

async function allocate({ ids }: TestServer, instance: string, count = 10) {
  const request = { tag: "orders", count, after: 0n, instance };
  const { segments, releaseToken } = await call(ids, IdServiceService.allocateSegment, request);
  return { first: segments[0]?.base ?? 0n, releaseToken };
}

test("an id leads to the SDK that got it, from which server and when", async () => {
  const [one, two] = await startTwo();
  await createTag(one, "orders", { min: 100, max: 100 });
  const before = Date.now() - 1_000;
  const { first } = await allocate(two, "orders/7f");
  const { result, client, server } = await lookUp(two, first + 3n);
  expect(result).toBe(LookupResult.ALLOCATED);
  expect(client).toMatchObject({
    kind: LedgerEntryKind.ALLOCATION,
    instance: "orders/7f",
    principal: "",
    server: "node-2",
    firstId: first,
    lastId: first + 9n,
  });
  expect(client?.time?.getTime()).toBeGreaterThan(before);
  expect(server).toMatchObject({
    kind: LedgerEntryKind.GRANT,
    server: "node-2",
    firstId: 1n,
    lastId: 100n,
  });
  // What a server issued by itself leads to the server only.
  const { id } = await generateId(two, "orders");
  const issued = await lookUp(two, id);
  expect(issued).toMatchObject({ result: LookupResult.GRANTED, server: { server: "node-2" } });
  expect(issued.client).toBeUndefined();
  expect((await lookUp(one, 1_000_000n)).result).toBe(LookupResult.NOT_GRANTED);
});

test("what a client gave back is not its own any more, and goes to the next one", async () => {
  const [one] = await startTwo();
  await createTag(one, "orders", { min: 100, max: 100 });
  const { first, releaseToken } = await allocate(one, "first");
  const release = { tag: "orders", releaseToken, unusedCount: 6 };
  expect(await call(one.ids, IdServiceService.releaseSegment, release)).toEqual({
    reclaimedCount: 6,
  });
  expect(await lookUp(one, first + 3n)).toMatchObject({ client: { instance: "first" } });
  const given = await lookUp(one, first + 4n);
  expect(given).toMatchObject({ result: LookupResult.RELEASED, server: { server: "node-1" } });
  expect(given.client).toBeUndefined();
  // They stand behind what the server holds.
  let last = 0n;
  while (last < first + 9n || last > first + 9n) {
    // Each asks for the next ids.
    const request = { tag: "orders", count: 1, after: 0n, instance: "second" };
    const answer = await call(one.ids, IdServiceService.allocateSegment, request);
    last = answer.segments[0]?.base ?? 0n;
    if (last > 1_000n) throw new Error("the ids did not come back");
  }
  expect(await lookUp(one, last)).toMatchObject({ client: { instance: "second" } });
});

test("what a server gave back to the store belongs to nobody, and then to the next server", async () => {
  const [one, two] = await startTwo();
  await createTag(one, "orders", { min: 100, max: 100 });
  await generateId(one, "orders");
  await one.server.close();
  expect(await lookUp(two, 50n)).toMatchObject({
    result: LookupResult.GIVEN_BACK,
    server: undefined,
  });
  const { first } = await allocate(two, "next", 20);
  expect(await lookUp(two, first + 1n)).toMatchObject({
    client: { instance: "next", server: "node-2" },
  });
});

test("a tag's rows are listed in pages, and all that is wrong with a request is told", async () => {
  const [one] = await startTwo();
  await createTag(one, "orders", { min: 100, max: 100 });
  for (const name of ["a", "b", "c"]) await allocate(one, name);
  const list = (pageToken: string, tag = "orders") =>
    call(one.tags, TagServiceService.listLedgerEntries, { tag, pageSize: 2, pageToken });
  const names: string[] = [];
  let pageToken = "";
  do {
    const page = await list(pageToken);
    names.push(...page.entries.map(({ instance }) => instance));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(names.filter((name) => name !== "")).toEqual(["a", "b", "c"]);
  const wrong = await refusalOf(list("nonsense"));
  expect(wrong.fields[0]?.field).toBe("page_token");
  expect((await refusalOf(list("", "ghost"))).reason).toBe("TAG_NOT_FOUND");
  await createSequence(one, "bills");
  expect((await refusalOf(lookUp(one, 1n, "bills"))).reason).toBe("WRONG_KIND");
  const { fields } = await refusalOf(allocate(one, "no name"));
  expect(fields[0]?.field).toBe("instance");
});

test("without a ledger nothing is written, and what is given back is handed out all the same", async () => {
  const [one] = await startTwo({ ledger: "off" });
  await createTag(one, "orders", { min: 100, max: 100 });
  const { first, releaseToken } = await allocate(one, "first");
  const release = { tag: "orders", releaseToken, unusedCount: 6 };
  expect(await call(one.ids, IdServiceService.releaseSegment, release)).toEqual({
    reclaimedCount: 6,
  });
  expect((await lookUp(one, first)).result).toBe(LookupResult.UNKNOWN);
});
