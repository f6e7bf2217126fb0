// Asking one server for its figures, over connections as they come and go.
import { type AddressInfo, createServer } from "node:net";
import {
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  status,
} from "@grpc/grpc-js";
import { type ListFiguresRequest, ListFiguresResponse, NodeServiceService } from "@idmint/proto";
import { FakeTime } from "@idmint/testkit";
import { expect, onTestFinished, test, vi } from "vitest";
import { GrpcPeerFigures } from "../../../src/grpc/peers/figures.ts";
import { hostOf } from "../../../src/main/address.ts";
import type { Asking } from "../../../src/service/figures/fleet.ts";
import { until } from "../../support.ts";

type Call = ServerUnaryCall<ListFiguresRequest, ListFiguresResponse>;
type Done = sendUnaryData<ListFiguresResponse>;

/** A server that has one method; undefined: it has none. */
async function played(listFigures: ((call: Call, done: Done) => void) | undefined) {
  const server = new Server();
  const { listFigures: method } = NodeServiceService;
  const none = { path: "/other", requestStream: false, responseStream: false } as const;
  if (listFigures === undefined) server.addService({ none: { ...method, ...none } }, {});
  else server.addService({ listFigures: method }, { listFigures });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  onTestFinished(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}

function made(
  time: FakeTime = new FakeTime(),
  { tls, unsafe }: { tls?: { certFile: string; keyFile: string }; unsafe?: string } = {},
) {
  const files = tls === undefined ? undefined : { ...tls, caFile: undefined };
  const peers = new GrpcPeerFigures(files, {
    clock: time,
    wallClock: () => 1_000_000,
    isSafe: (address: string) => address !== unsafe,
  });
  onTestFinished(() => peers.close());
  return peers;
}

const REQUEST = { tag: "orders", seconds: 7 };

function asking(more: Partial<Asking> = {}): Asking {
  const { signal } = new AbortController();
  return { authorization: "Bearer mine", timeoutMs: 20_000, signal, ...more };
}

const answerWith = (node: Partial<ListFiguresResponse["nodes"][number]>): ListFiguresResponse =>
  ListFiguresResponse.fromPartial({ nodes: [{ nodeId: "n", ...node }] });

test("a server is asked for itself, with the caller's token and nothing else of the caller", async () => {
  const calls: Call[] = [];
  const address = await played((call, done) => {
    calls.push(call);
    done(null, answerWith({ time: new Date(1_000_250) }));
  });
  const peers = made();
  const told = await peers.ask(address, REQUEST, asking());
  expect(told).toMatchObject({ type: "told", nodes: [{ nodeId: "n", aheadMillis: 250 }] });
  await peers.ask(address, REQUEST, asking({ authorization: undefined }));
  expect(calls.map(({ request }) => request)).toEqual([
    { tag: "orders", seconds: 7, thisServer: true },
    { tag: "orders", seconds: 7, thisServer: true },
  ]);
  const shown = calls.map(({ metadata }) => Object.entries(metadata.getMap()));
  const ofCallers = shown.map((all) => all.filter(([name]) => name !== "user-agent"));
  expect(ofCallers).toEqual([[["authorization", "Bearer mine"]], []]);
});

test("a proxy that the environment names is not told the caller's token", async () => {
  const address = await played((_, done) => done(null, answerWith({})));
  const told: string[] = [];
  const proxy = createServer((caller) => {
    onTestFinished(() => void caller.destroy());
    caller.on("error", () => undefined);
    caller.on("data", (bytes) => told.push(bytes.toString("latin1")));
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void proxy.close());
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const name of ["no_grpc_proxy", "no_proxy"]) vi.stubEnv(name, undefined);
  vi.stubEnv("grpc_proxy", `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  const local = address.replace("127.0.0.1", "localhost");
  const answer = await made().ask(local, REQUEST, asking({ timeoutMs: 2_000 }));
  expect(answer.type).toBe("told");
  expect(told).toEqual([]);
});

test.each([
  [status.UNAUTHENTICATED, "REFUSED"],
  [status.PERMISSION_DENIED, "REFUSED"],
  [status.UNAVAILABLE, "NO_ANSWER"],
  [status.INTERNAL, "NO_ANSWER"],
] as const)("code %i is told as %s, with what the server says", async (code, reason) => {
  const address = await played((_, done) => done({ code, details: "the reason" }));
  const answer = await made().ask(address, REQUEST, asking());
  expect(answer).toEqual({ type: "silent", silence: { reason, detail: "the reason" } });
});

test("a server that does not know the method is of an older version", async () => {
  const answer = await made().ask(await played(undefined), REQUEST, asking());
  expect(answer).toMatchObject({ type: "silent", silence: { reason: "OLDER_VERSION" } });
});

test("nobody is waited for longer than it takes, and nothing goes on when the caller goes away", async () => {
  let ended = 0;
  const address = await played((call) => call.on("cancelled", () => ended++));
  const peers = made();
  expect(await peers.ask(address, REQUEST, asking({ timeoutMs: 200 }))).toMatchObject({
    silence: { reason: "NO_ANSWER", detail: "it did not answer within 200 ms" },
  });
  await until(() => ended === 1);
  const caller = new AbortController();
  const answer = peers.ask(address, REQUEST, asking({ signal: caller.signal }));
  setTimeout(() => caller.abort(), 100);
  // Not the end of its time.
  expect(await answer).toMatchObject({ silence: { detail: "Cancelled on client" } });
  await until(() => ended === 2);
  const gone = AbortSignal.abort();
  expect(await peers.ask(address, REQUEST, asking({ signal: gone }))).toMatchObject({
    silence: { detail: "Cancelled on client" },
  });
});

test("calls share a connection, for a minute, until one brings no answer", async () => {
  const connections = new Set<string>();
  let isDeaf = false;
  const address = await played((call, done) => {
    connections.add(call.getPeer());
    if (!isDeaf) done(null, answerWith({}));
  });
  const time = new FakeTime();
  const peers = made(time);
  await Promise.all([1, 2, 3].map(() => peers.ask(address, REQUEST, asking())));
  time.advance(59_000);
  await peers.ask(address, REQUEST, asking());
  expect(connections.size).toBe(1);
  time.advance(2_000);
  await peers.ask(address, REQUEST, asking());
  expect(connections.size).toBe(2);
  isDeaf = true;
  await peers.ask(address, REQUEST, asking({ timeoutMs: 200 }));
  isDeaf = false;
  await peers.ask(address, REQUEST, asking());
  expect(connections.size).toBe(3);
});

test("a token is not shown where somebody on the way could read it", async () => {
  const shown: unknown[] = [];
  const address = await played(({ metadata }, done) => {
    shown.push(...metadata.get("authorization"));
    done(null, answerWith({}));
  });
  const peers = made(new FakeTime(), { unsafe: address });
  const answer = await peers.ask(address, REQUEST, asking());
  expect(answer).toMatchObject({ silence: { reason: "NO_ANSWER" } });
  const open = await peers.ask(address, REQUEST, asking({ authorization: undefined }));
  expect(open.type).toBe("told");
  expect(shown).toEqual([]);
});

test.each([
  ["127.0.0.1:7600", "127.0.0.1"],
  ["[::1]:7600", "::1"],
  ["ids-1.internal:7600", "ids-1.internal"],
])("the host of %s is %s", (address, host) => {
  expect(hostOf(address)).toBe(host);
});

test("files that cannot be read are named, and no call is made", async () => {
  const tls = { certFile: "/nowhere/cert.pem", keyFile: "/nowhere/key.pem" };
  const answer = await made(new FakeTime(), { tls }).ask("127.0.0.1:1", REQUEST, asking());
  expect(answer).toEqual({
    type: "silent",
    silence: { reason: "NO_ANSWER", detail: "this server cannot read its own TLS files" },
  });
});
