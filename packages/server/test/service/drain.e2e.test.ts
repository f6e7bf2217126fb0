// Weights and drains: servers that share a store, over gRPC.
import { credentials, type ServiceError } from "@grpc/grpc-js";
import {
  IdServiceService,
  type ListNodesResponse,
  NodeServiceService,
  RenewWorkerLeaseRequest,
  type StreamIdsResponse,
  WorkerServiceService,
} from "@idmint/proto";
import { HealthClient } from "@idmint/proto/grpc-js";
import { HealthCheckResponse_ServingStatus as ServingStatus } from "@idmint/proto/health";
import { MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import type { ServerEvent } from "../../src/service/events.ts";
import { createSnowflake, lease, takeIds } from "../snowflake-support.ts";
import {
  call,
  createTag,
  generateId,
  holdBack,
  Refusal,
  refusalOf,
  startTest,
  type TestServer,
  until,
} from "../support.ts";

const N = NodeServiceService;

/** A server of that name on the store of another one. */
function startNamed(instance: string, others?: TestServer, more: Record<string, string> = {}) {
  const database = others?.store.database;
  const store = new MemoryStore(database === undefined ? {} : { database });
  return startTest({ store, flags: { instance, ...more } });
}

function list({ nodes }: TestServer): Promise<ListNodesResponse> {
  return call(nodes, N.listNodes, { pageSize: 0, pageToken: "" });
}

function drain({ nodes }: TestServer, node: string, validateOnly = false) {
  return call(nodes, N.drainNode, { node, validateOnly }, 10_000);
}

function undrain({ nodes }: TestServer, node: string) {
  return call(nodes, N.undrainNode, { node, validateOnly: false }, 10_000);
}

function weigh({ nodes }: TestServer, node: string, weight: number | undefined, isDry = false) {
  return call(nodes, N.setNodeWeight, { node, weight, validateOnly: isDry }, 10_000);
}

/** Name, weight, drained, alive; by name. */
async function seenBy(it: TestServer): Promise<readonly unknown[]> {
  const { nodes } = await list(it);
  return nodes
    .map(({ instance, weight, draining, alive }) => [instance, weight, draining, alive] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** The number of its list, as an answer carries it. */
async function versionOf({ ids }: TestServer): Promise<number> {
  const request = { tag: "orders", count: 1, after: 0n, instance: "" };
  return (await call(ids, IdServiceService.allocateSegment, request)).nodesVersion;
}

async function healthOf({ server }: TestServer): Promise<ServingStatus> {
  const client = new HealthClient(server.grpcAddress, credentials.createInsecure());
  onTestFinished(() => client.close());
  return new Promise((resolve, reject) => {
    client.check({ service: "" }, (error, answer) => {
      if (error === null) resolve(answer.status);
      else reject(error);
    });
  });
}

async function readiness({ server }: TestServer): Promise<unknown> {
  const answer = await fetch(`http://${server.httpAddress}/readyz`);
  return { status: answer.status, ...((await answer.json()) as object) };
}

function isRest(event: ServerEvent): boolean {
  return event.type === "operator-drain" && event.phase === "resting";
}

test("a drained server refuses, says so and gives back; the others go on; undrained it is as before", async () => {
  const one = await startNamed("one");
  const two = await startNamed("two", one);
  await createTag(one, "orders", { min: 100, max: 100 });
  expect((await generateId(two, "orders")).id).toBe(1n);
  // Any server can be asked, and its answer waits until the drained one has said that it follows.
  const answer = await drain(one, "two");
  expect(answer.nodes).toMatchObject([{ instance: "two", draining: true, weight: 100 }]);
  expect(answer).toMatchObject({ laggingNodes: [], laggingNodeCount: 0 });
  expect(await refusalOf(generateId(two, "orders"))).toMatchObject({
    code: "UNAVAILABLE",
    reason: "DRAINING",
    retryAfterMs: 1_000,
    message: "DRAINING: an operator drained this server; call another server",
  });
  expect(await healthOf(two)).toBe(ServingStatus.NOT_SERVING);
  expect(await readiness(two)).toEqual({
    status: 503,
    ready: false,
    state: "DRAINING",
    reason: "an operator drained this server; idmint node undrain two ends that",
  });
  expect(await call(two.nodes, N.getNodeStatus, {})).toMatchObject({ state: 2 });
  await until(() => one.store.database.rows.get("orders")?.floor === 1n);
  expect((await generateId(one, "orders")).id).toBe(2n);
  await until(async () => (await list(two)).nodesVersion === (await list(one)).nodesVersion);
  for (const it of [one, two]) {
    expect(await seenBy(it)).toEqual([
      ["one", 100, false, true],
      ["two", 100, true, true],
    ]);
  }
  // Through the drained server itself.
  expect((await undrain(two, "two")).laggingNodes).toEqual([]);
  expect(await healthOf(two)).toBe(ServingStatus.SERVING);
  expect(await readiness(two)).toMatchObject({ status: 200, ready: true, state: "SERVING" });
  expect((await generateId(two, "orders")).id).toBe(102n);
  expect(two.events.filter(({ type }) => type === "operator-drain")).toEqual([
    { type: "operator-drain", server: "two", phase: "leaving" },
    { type: "operator-drain", server: "two", phase: "resting", givenBack: 99, wasted: 0 },
    { type: "operator-drain", server: "two", phase: "serving" },
  ]);
});

test("calls that a drained server took before are answered", async () => {
  const it = await startNamed("one", undefined, { "drain-time": "20s" });
  await createTag(it, "orders");
  const release = holdBack(it.store, "grant");
  const waiting = generateId(it, "orders", 20_000);
  await until(() => it.store.count("grant") === 1);
  await drain(it, "one");
  expect((await refusalOf(generateId(it, "orders"))).reason).toBe("DRAINING");
  release();
  expect((await waiting).id).toBe(1n);
  await until(() => it.store.database.rows.get("orders")?.floor === 1n);
});

test("a drain that is over before its calls were keeps what the server holds", async () => {
  const it = await startNamed("one", undefined, { "drain-time": "20s" });
  await createTag(it, "orders", { min: 100, max: 100 });
  await generateId(it, "orders");
  await createTag(it, "slow");
  const release = holdBack(it.store, "grant");
  const waiting = generateId(it, "slow", 20_000);
  await until(() => it.store.count("grant") === 2);
  await drain(it, "one");
  await undrain(it, "one");
  expect((await generateId(it, "orders")).id).toBe(2n);
  release();
  expect((await waiting).id).toBe(1n);
  expect(it.store.count("giveBack")).toBe(0);
  expect((await generateId(it, "orders")).id).toBe(3n);
});

test("a stream ends at the first request of a drained server, and another one is answered when it is undrained", async () => {
  const it = await startNamed("one", undefined, { "drain-time": "20s" });
  await createTag(it, "orders");
  const streamed = () => {
    const stream = it.ids.streamIds();
    onTestFinished(() => stream.cancel());
    const ask = (): Promise<StreamIdsResponse> =>
      new Promise((resolve, reject) => {
        stream.once("data", resolve);
        stream.once("error", (error: ServiceError) => reject(new Refusal(error)));
        stream.write({ call: 1, tag: "orders", count: 0, name: "" });
      });
    return ask;
  };
  const ask = streamed();
  expect((await ask()).result?.$case).toBe("one");
  // A call that was taken before keeps what the server holds.
  await createTag(it, "slow");
  const release = holdBack(it.store, "grant");
  const waiting = generateId(it, "slow", 20_000);
  await until(() => it.store.count("grant") === 2);
  await drain(it, "one");
  expect(await refusalOf(ask())).toMatchObject({ code: "UNAVAILABLE", reason: "DRAINING" });
  expect(await refusalOf(streamed()())).toMatchObject({ reason: "DRAINING" });
  await undrain(it, "one");
  expect((await streamed()()).result?.$case).toBe("one");
  release();
  await waiting;
});

test("a drained server leases no worker ids and renews none, and makes ids of its own above the old ones", async () => {
  const it = await startNamed("one");
  const two = await startNamed("two", it);
  await createSnowflake(it, "trace");
  const before = await takeIds(it, "trace", 3);
  const held = await lease(it, { tag: "trace", instance: "caller" });
  await drain(it, "one");
  const wish = { tag: "trace", instance: "another" };
  expect((await refusalOf(lease(it, wish))).reason).toBe("DRAINING");
  await until(() => it.events.some((event) => isRest(event)));
  const renewal = RenewWorkerLeaseRequest.fromPartial({
    tag: "trace",
    workerId: held.workerId,
    token: held.token,
    extension: held.extension,
  });
  const renew = (server: TestServer) =>
    call(server.workers, WorkerServiceService.renewWorkerLease, renewal);
  expect(await refusalOf(renew(it))).toMatchObject({ code: "UNAVAILABLE", reason: "DRAINING" });
  // Whoever holds the lease goes on at another server.
  expect((await renew(two)).token).toBeGreaterThan(held.token);
  await undrain(it, "one");
  const after = await takeIds(it, "trace", 3);
  expect(new Set([...before, ...after]).size).toBe(6);
  expect(after[0]).toBeGreaterThan(before[2]!);
});

test("drains and weights outlive a restart, and a server that starts drained takes no call", async () => {
  const one = await startNamed("one");
  const two = await startNamed("two", one);
  await weigh(one, "two", 7);
  await drain(one, "two");
  await two.server.close();
  const again = await startNamed("two", one);
  expect(again.events.slice(0, 1)).toEqual([
    { type: "operator-drain", server: "two", phase: "leaving" },
  ]);
  expect(await healthOf(again)).toBe(ServingStatus.NOT_SERVING);
  expect((await refusalOf(generateId(again, "orders"))).reason).toBe("DRAINING");
  await createTag(one, "orders");
  await undrain(one, "two");
  expect((await generateId(again, "orders")).id).toBe(1n);
  expect(await seenBy(again)).toContainEqual(["two", 7, false, true]);
});

test("a server that is down can be undrained by its name before it starts", async () => {
  const one = await startNamed("one");
  const two = await startNamed("two", one);
  await drain(one, "two");
  await two.server.close();
  await until(async () => (await list(one)).nodes.length === 1);
  expect((await undrain(one, "two")).nodes).toEqual([]);
  const again = await startNamed("two", one);
  expect(await healthOf(again)).toBe(ServingStatus.SERVING);
});

test("a server without its store stays as it is, is told of, and follows when it has it again", async () => {
  const one = await startNamed("one");
  const two = await startNamed("two", one);
  await createTag(one, "orders", { min: 1_000, max: 1_000 });
  await generateId(two, "orders");
  two.store.faults = { before: storeIsDown };
  const answer = await drain(one, "two");
  expect(answer.nodes).toMatchObject([{ instance: "two", draining: true }]);
  expect(answer.laggingNodes).toMatchObject([{ instance: "two" }]);
  expect(answer.laggingNodeCount).toBe(1);
  await generateId(two, "orders");
  const { nodesVersion } = await list(two);
  expect(nodesVersion).not.toBe(0);
  expect(await seenBy(two)).toEqual([
    ["one", 100, false, true],
    ["two", 100, false, true],
  ]);
  two.store.faults = {};
  await until(async () => (await healthOf(two)) === ServingStatus.NOT_SERVING);
  expect((await refusalOf(generateId(two, "orders"))).reason).toBe("DRAINING");
});

test("a list tells the name of the server that answers it, which all lists have", async () => {
  const one = await startNamed("one");
  const two = await startNamed("two", one);
  await until(async () => (await list(one)).nodes.length === 2);
  for (const it of [one, two]) {
    const { nodeId, nodes } = await list(it);
    expect(nodeId).toBe(it.server.node.status().nodeId);
    expect(nodes.map((node) => node.nodeId)).toContain(nodeId);
    expect((await list(one)).nodes.map((node) => node.nodeId)).toContain(nodeId);
  }
});

test("weights are in every list, and answers tell that there is another one", async () => {
  const one = await startNamed("one");
  const two = await startNamed("two", one);
  await createTag(one, "orders");
  await until(async () => (await versionOf(one)) === (await versionOf(two)));
  const before = await versionOf(one);
  expect(before).not.toBe(0);
  const { nodes } = await weigh(one, "two", 0);
  expect(nodes).toMatchObject([{ instance: "two", weight: 0, draining: false }]);
  for (const it of [one, two]) {
    await until(async () => (await versionOf(it)) !== before);
    expect(await seenBy(it)).toContainEqual(["two", 0, false, true]);
  }
  expect(await versionOf(one)).toBe(await versionOf(two));
  const many = { tag: "orders", count: 2, asList: false };
  expect((await call(one.ids, IdServiceService.generateIds, many)).nodesVersion).toBe(
    await versionOf(one),
  );
  // Two who speak of one server at once, through different servers.
  await Promise.all([weigh(one, "one", 9), drain(two, "one")]);
  expect(await seenBy(two)).toContainEqual(["one", 9, true, true]);
});

test("what is only tried changes nothing, and bad input names the field and the way out", async () => {
  const it = await startNamed("one");
  const tried = await drain(it, "one", true);
  expect(tried.nodes).toMatchObject([{ instance: "one", draining: true }]);
  expect((await weigh(it, "one", 3, true)).nodes).toMatchObject([{ instance: "one", weight: 3 }]);
  expect(it.store.count("setTraffic")).toBe(0);
  expect(await seenBy(it)).toEqual([["one", 100, false, true]]);
  // By the random name of the process too.
  const { nodeId } = tried.nodes[0]!;
  expect((await drain(it, nodeId, true)).nodes).toMatchObject([{ instance: "one" }]);
  const cases: readonly [() => Promise<unknown>, string, string][] = [
    [() => drain(it, ""), "node", "FIELD_REQUIRED"],
    [() => drain(it, "nobody"), "node", "UNKNOWN_VALUE"],
    [() => undrain(it, "nobody"), "node", "UNKNOWN_VALUE"],
    [() => weigh(it, "nobody", 1), "node", "UNKNOWN_VALUE"],
    [() => weigh(it, "one", undefined), "weight", "FIELD_REQUIRED"],
    [() => weigh(it, "one", 1_001), "weight", "VALUE_OUT_OF_RANGE"],
  ];
  for (const [ask, field, reason] of cases) {
    const refusal = await refusalOf(ask());
    expect(refusal.code).toBe("INVALID_ARGUMENT");
    expect(refusal.fields).toMatchObject([{ field, reason }]);
  }
  expect((await refusalOf(drain(it, "nobody"))).message).toContain("idmint node list");
  expect(it.store.count("setTraffic")).toBe(0);
});

test("a store that does not answer refuses the change, and a server that stops goes on stopping", async () => {
  const it = await startNamed("one");
  it.store.faults = { before: storeIsDown };
  expect(await refusalOf(drain(it, "one"))).toMatchObject({ reason: "STORE_UNAVAILABLE" });
  it.store.faults = {};
  await drain(it, "one");
  const closed = it.server.close();
  await closed;
  expect(it.events.at(-1)).toEqual({ type: "stopped", givenBack: 0, wasted: 0 });
});
