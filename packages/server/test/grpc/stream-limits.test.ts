// Narrow connections, as a client of HTTP/2 sees them.
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { FakeTime } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { limitedSession } from "../../src/grpc/limited-session.ts";
import { StreamLimits } from "../../src/doors/stream-limits.ts";

const USUAL = 200;
const ME = "127.0.0.1";
const HELD = new Map([[ME, 200]]);

/** A server that answers when the test says so and calls are not held, and some connections to it. */
async function setUp(connections: number) {
  const time = new FakeTime(0);
  let held: ReadonlySet<string> = new Set();
  const holdAll = (callers: ReadonlySet<string>): void => {
    held = callers;
  };
  const limits = new StreamLimits({ clock: time, timers: time, holdAll }, USUAL);
  const server = createServer({ settings: { maxConcurrentStreams: USUAL } });
  server.on("session", (session) => session.once("close", limits.add(limitedSession(session))));
  const waiting = new Set<ServerHttp2Stream>();
  server.on("stream", (stream) => {
    stream.on("error", () => undefined);
    stream.on("close", () => waiting.delete(stream));
    waiting.add(stream);
  });
  await new Promise<void>((resolve) => server.listen(0, ME, resolve));
  const { port } = server.address() as AddressInfo;
  const sessions = Array.from({ length: connections }, () => connect(`http://${ME}:${port}`));
  onTestFinished(async () => {
    for (const session of sessions) session.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  await Promise.all(sessions.map((session) => limitOf(session, USUAL)));
  const answer = (): void => {
    if (held.size > 0) return;
    for (const stream of waiting) stream.respond({ ":status": 200 }, { endStream: true });
    waiting.clear();
  };
  return { time, limits, sessions, waiting, answer, isHeld: () => held.size > 0 };
}

/** Fulfils when a client knows that it may have so many calls in flight. */
async function limitOf(session: ClientHttp2Session, limit: number): Promise<void> {
  while (session.remoteSettings?.maxConcurrentStreams !== limit) {
    await new Promise((resolve) => session.once("remoteSettings", resolve));
  }
}

/** Keeps so many calls of a client at once, as far as the server lets it. */
function flood(session: ClientHttp2Session, calls: number) {
  const outcome = { answered: 0, refused: 0, isOver: false };
  const call = (): void => {
    if (outcome.isOver || session.closed || session.destroyed) return;
    const stream = session.request();
    stream.on("response", () => outcome.answered++).resume();
    stream.on("error", () => undefined);
    stream.on("close", () => {
      if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) outcome.refused++;
      call();
    });
  };
  for (let started = 0; started < calls; started++) call();
  return outcome;
}

async function until(isSo: () => boolean, meanwhile: () => void = () => undefined): Promise<void> {
  for (let look = 0; !isSo(); look++) {
    if (look > 5_000) throw new Error("it does not come about");
    meanwhile();
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

test("full connections become narrow without a call that HTTP/2 refuses, and wide again", async () => {
  const { time, limits, sessions, answer, waiting, isHeld } = await setUp(4);
  expect(limits.look(new Map()).size).toBe(0);
  const floods = sessions.map((session) => flood(session, 600));
  const answered = (): number => floods.reduce((sum, one) => sum + one.answered, 0);
  await until(() => answered() > 2_000, answer);
  await until(() => waiting.size === 4 * USUAL);
  limits.look(HELD);
  expect(isHeld()).toBe(true);
  await until(
    () => !isHeld(),
    () => time.advance(5),
  );
  expect([...limits.look(HELD)]).toEqual([ME]);
  const before = answered();
  await until(() => answered() > before + 4_000, answer);
  expect(sessions.map((session) => session.remoteSettings?.maxConcurrentStreams)).toEqual(
    sessions.map(() => 24),
  );
  expect(waiting.size).toBeLessThanOrEqual(96);
  expect(floods.map(({ refused }) => refused)).toEqual([0, 0, 0, 0]);
  // It fills what it may have, so it stays narrow.
  await until(() => waiting.size === 96);
  for (let second = 0; second < 30; second++) {
    time.advance(1_000);
    expect(limits.look(new Map()).size).toBe(1);
  }
  for (const one of floods) one.isOver = true;
  await until(() => waiting.size === 0 && sessions.every(({ closed }) => !closed), answer);
  await new Promise((resolve) => setTimeout(resolve, 50));
  answer();
  await until(() => {
    time.advance(10_000);
    return limits.look(new Map()).size === 0;
  }, answer);
  await Promise.all(sessions.map((session) => limitOf(session, USUAL)));
});

test("a connection whose client bounds itself is held for a quarter of a second once, and stays wide", async () => {
  const { time, limits, sessions, waiting, isHeld } = await setUp(1);
  flood(sessions[0]!, 160);
  await until(() => waiting.size === 160);
  limits.look(HELD);
  for (let look = 0; look < 51; look++) {
    expect(isHeld()).toBe(true);
    time.advance(5);
  }
  expect(isHeld()).toBe(false);
  expect(limits.look(HELD).size).toBe(0);
  expect(isHeld()).toBe(false);
  expect(sessions[0]!.remoteSettings?.maxConcurrentStreams).toBe(USUAL);
});
