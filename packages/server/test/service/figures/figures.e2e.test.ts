// Figures of servers that share a store, over gRPC.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { credentials } from "@grpc/grpc-js";
import {
  type ListFiguresRequest,
  type ListFiguresResponse,
  NodeServiceService,
  NodeState,
  SilenceReason,
} from "@idmint/proto";
import { NodeServiceClient } from "@idmint/proto/grpc-js";
import { MemoryStore, selfSigned, storeIsDown } from "@idmint/testkit";
import { freePort } from "@idmint/testkit/redis";
import { expect, onTestFinished, test } from "vitest";
import {
  call,
  createTag,
  generateId,
  refusalOf,
  startTest,
  type TestServer,
  until,
} from "../../support.ts";

const WHOLE: ListFiguresRequest = { tag: "", seconds: 900, thisServer: false };

function figures(
  { nodes }: Pick<TestServer, "nodes">,
  request: Partial<ListFiguresRequest> = {},
  token?: string,
): Promise<ListFiguresResponse> {
  const wanted = { ...WHOLE, ...request };
  return call(nodes, NodeServiceService.listFigures, wanted, 5_000, token);
}

function startNamed(instance: string, others?: TestServer, more: Record<string, string> = {}) {
  const database = others?.store.database;
  const store = new MemoryStore(database === undefined ? {} : { database });
  return startTest({ store, flags: { instance, ...more } });
}

const sum = (numbers: readonly (bigint | number)[]): number =>
  numbers.reduce<number>((total, each) => total + Number(each), 0);

/** What a server issued, by its name. */
function issuedBy({ nodes }: ListFiguresResponse): Record<string, number> {
  return Object.fromEntries(
    nodes.map(({ instance, runs }) => [instance, sum(runs.flatMap(({ issuedIds }) => issuedIds))]),
  );
}

test("every server tells what it issued, refused and how long it took", async () => {
  const a = await startNamed("a", undefined, { "node-zone": "north" });
  const b = await startNamed("b", a, { "node-zone": "south" });
  await createTag(a, "orders");
  for (let at = 0; at < 5; at++) await generateId(a, "orders");
  for (let at = 0; at < 3; at++) await generateId(b, "orders");
  await refusalOf(generateId(b, "nowhere"));
  let answer = await figures(a);
  await until(async () => {
    answer = await figures(a);
    const { a: first, b: second } = issuedBy(answer);
    const isRefused = answer.nodes.some(({ runs }) => runs.some((run) => run.refusals.length > 0));
    return first === 5 && second === 3 && isRefused;
  });
  expect(answer.silentNodes).toEqual([]);
  expect(answer.seconds).toBe(900);
  const [first, second] = ["a", "b"].map((name) =>
    answer.nodes.find(({ instance }) => instance === name),
  );
  expect([first?.zone, second?.zone]).toEqual(["north", "south"]);
  expect(second?.status).toMatchObject({ state: NodeState.SERVING, stateReason: "" });
  const refused = second?.runs.flatMap(({ refusals }) => refusals);
  expect(refused).toMatchObject([{ reason: "TAG_NOT_FOUND" }]);
  expect(sum(refused?.flatMap(({ calls }) => calls) ?? [])).toBe(1);
  expect(second?.latencyP99Micros).toBeGreaterThan(0);
  expect(first?.latencyP50Micros).toBeGreaterThan(0);
  expect([first?.aheadMillis, first?.wayMillis]).toEqual([0, 0]);
  expect(second?.wayMillis).toBeGreaterThan(0);
  const alone = await figures(a, { thisServer: true });
  expect(alone.nodes.map(({ instance }) => instance)).toEqual(["a"]);
});

test("a tag has figures from when it is first asked for, at every server", async () => {
  const a = await startNamed("a");
  const b = await startNamed("b", a);
  await createTag(a, "orders");
  await generateId(a, "orders");
  const both = async (): Promise<ListFiguresResponse> => {
    let answer: ListFiguresResponse | undefined;
    await until(async () => {
      answer = await figures(a, { tag: "orders" });
      return answer.nodes.length === 2;
    });
    return answer!;
  };
  const before = await both();
  // What was issued before somebody asked is not told.
  const counted = before.nodes.flatMap(({ tagFigures }) => tagFigures?.runs ?? []);
  expect(sum(counted.flatMap(({ issuedIds }) => issuedIds))).toBe(0);
  expect(before.nodes.map(({ runs, status }) => [runs, status])).toEqual([
    [[], undefined],
    [[], undefined],
  ]);
  for (let at = 0; at < 4; at++) await generateId(a, "orders");
  const ofA = async () => {
    const { nodes } = await figures(b, { tag: "orders" });
    return nodes.find(({ instance }) => instance === "a")?.tagFigures;
  };
  await until(async () => {
    const { runs = [] } = (await ofA()) ?? {};
    return sum(runs.flatMap(({ issuedIds }) => issuedIds)) === 4;
  });
  const seen = await ofA();
  expect(seen).toMatchObject({ known: true, epoch: 1n, waitingCalls: 0 });
  expect(seen!.readyIds).toBeGreaterThan(0n);
  expect(seen!.runs.at(-1)!.remainingSeconds.at(-1)).toBeGreaterThan(0);
  const elsewhere = (await both()).nodes;
  expect(elsewhere.find(({ instance }) => instance === "b")?.tagFigures?.known).toBe(false);
});

test("what is asked in a wrong way is named", async () => {
  const a = await startNamed("a");
  const refusal = await refusalOf(figures(a, { seconds: 901 }));
  expect(refusal.fields).toMatchObject([{ field: "seconds", reason: "VALUE_OUT_OF_RANGE" }]);
  expect((await refusalOf(figures(a, { tag: "-" }))).fields).toMatchObject([{ field: "tag" }]);
});

test("a server that is gone is silent", async () => {
  const a = await startNamed("a");
  const b = await startNamed("b", a);
  await until(async () => (await figures(a)).nodes.length === 2);
  // Its row stays: the store does not answer it any more.
  b.store.faults = { before: storeIsDown };
  await b.server.close();
  const answer = await figures(a);
  expect(answer.nodes.map(({ instance }) => instance)).toEqual(["a"]);
  expect(answer.silentNodes).toMatchObject([
    { instance: "b", address: b.server.grpcAddress, reason: SilenceReason.NO_ANSWER },
  ]);
});

test("a trouble is told as long as it lasts", async () => {
  const a = await startNamed("a");
  const names = async () => (await figures(a)).nodes[0]!.alarms.map(({ alarm }) => alarm);
  expect(await names()).toEqual([]);
  a.store.faults = { before: storeIsDown };
  await until(async () => (await names()).length > 0);
  const [node] = (await figures(a)).nodes;
  expect(node!.alarms).toMatchObject([{ alarm: "STORE_LOST", lasting: true }]);
  expect(node!.status).toMatchObject({
    state: NodeState.DEGRADED,
    stateReason: "the store does not answer",
  });
  a.store.faults = {};
  await until(async () => (await names()).length === 0);
});

test("a drained server tells its figures, and why it takes no calls", async () => {
  const a = await startNamed("a");
  const request = { node: "a", validateOnly: false };
  await call(a.nodes, NodeServiceService.drainNode, request, 10_000);
  const [node] = (await figures(a)).nodes;
  expect(node?.status).toMatchObject({
    state: NodeState.DRAINING,
    stateReason: "an operator drained this server; idmint node undrain a ends that",
  });
});

test("servers with TLS are asked by TLS, and one whose certificate is not trusted hears no token", async () => {
  const { cert, key } = selfSigned("localhost");
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-figures-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const write = (name: string, text: string): string => {
    const file = path.join(folder, name);
    writeFileSync(file, text);
    return file;
  };
  const files = { "tls-cert-file": write("crt", cert), "tls-key-file": write("key", key) };
  const start = async (
    instance: string,
    others?: TestServer,
    more: Record<string, string> = {},
  ) => {
    const port = await freePort(20_000, 29_000);
    const address = { "grpc-address": `127.0.0.1:${port}`, "node-advertise": `localhost:${port}` };
    const it = await startNamed(instance, others, { ...files, ...address, ...more });
    const trusting = credentials.createSsl(Buffer.from(cert));
    const nodes = new NodeServiceClient(`localhost:${port}`, trusting);
    onTestFinished(() => nodes.close());
    return { ...it, nodes };
  };
  const a = await start("a", undefined, { "tls-peer-ca-file": files["tls-cert-file"] });
  const b = await start("b", a);
  await until(async () => (await figures(a)).nodes.length === 2);
  await until(async () => {
    const { nodes, silentNodes } = await figures(b);
    expect(nodes.map(({ instance }) => instance)).toEqual(["b"]);
    expect(silentNodes).toMatchObject([{ instance: "a", reason: SilenceReason.NO_ANSWER }]);
    return silentNodes[0]!.detail.includes("certificate");
  });
});
