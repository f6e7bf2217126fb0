// Narrow connections, as a client of HTTP/2 sees them.
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  createServer,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { FakeTime } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { StreamLimits } from "../../src/grpc/stream-limits.ts";

const USUAL = 1_024;

/** A server whose calls wait for the test, and some connections to it. */
async function setUp(connections: number) {
  const time = new FakeTime(0);
  const limits = new StreamLimits(time, USUAL);
  const server = createServer({ settings: { maxConcurrentStreams: USUAL } });
  server.on("session", (session) => limits.add(session));
  const waiting: ServerHttp2Stream[] = [];
  server.on("stream", (stream) => {
    stream.on("error", () => undefined);
    waiting.push(stream);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const sessions = Array.from({ length: connections }, () => connect(`http://127.0.0.1:${port}`));
  onTestFinished(async () => {
    for (const session of sessions) session.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  await Promise.all(sessions.map((session) => limitOf(session, USUAL)));
  return { time, limits, sessions, waiting };
}

/** Fulfils when a client knows that it may have so many calls in flight. */
async function limitOf(session: ClientHttp2Session, limit: number): Promise<void> {
  while (session.remoteSettings?.maxConcurrentStreams !== limit) {
    await new Promise((resolve) => session.once("remoteSettings", resolve));
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2));
}

test("connections of a caller whose refusals pile up become narrow, and wide again when it is calm", async () => {
  const { time, limits, sessions, waiting } = await setUp(4);
  expect(limits.look(new Map()).size).toBe(0);
  expect(limits.look(new Map([["127.0.0.1", 100]])).size).toBe(0);
  expect([...limits.look(new Map([["127.0.0.1", 200]]))]).toEqual(["127.0.0.1"]);
  await Promise.all(sessions.map((session) => limitOf(session, 16)));
  limits.look(new Map());
  await Promise.all(sessions.map((session) => limitOf(session, 32)));
  // Further calls wait on the client's side, and none is lost.
  const [session] = sessions;
  const calls: ClientHttp2Stream[] = Array.from({ length: 100 }, () => session!.request());
  for (const call of calls) call.on("error", () => undefined);
  await until(() => waiting.length === 32);
  let answered = 0;
  for (const call of calls) call.on("response", () => answered++).resume();
  while (answered < calls.length) {
    for (const stream of waiting.splice(0)) stream.respond({ ":status": 200 }, { endStream: true });
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  time.advance(10_000);
  expect(limits.look(new Map()).size).toBe(0);
  await Promise.all(sessions.map((each) => limitOf(each, USUAL)));
});

test("a caller that fills its narrow connections keeps them", async () => {
  const { time, limits, sessions, waiting } = await setUp(1);
  limits.look(new Map([["127.0.0.1", 200]]));
  await Promise.all(sessions.map((session) => limitOf(session, 64)));
  const calls = Array.from({ length: 64 }, () => sessions[0]!.request());
  for (const call of calls) call.on("error", () => undefined);
  await until(() => waiting.length === 64);
  for (let second = 0; second < 30; second++) {
    time.advance(1_000);
    expect(limits.look(new Map()).size).toBe(1);
  }
  sessions[0]!.destroy();
  await until(() => waiting.every((stream) => stream.destroyed));
  await new Promise((resolve) => setImmediate(resolve));
  expect(limits.look(new Map()).size).toBe(0);
});
