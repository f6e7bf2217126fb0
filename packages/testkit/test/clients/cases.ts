// What every client of gRPC must be able to count on, whichever library it is and whoever stands in between.
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import {
  GenerateIdRequest,
  GenerateIdResponse,
  StreamIdsRequest,
  StreamIdsResponse,
} from "@idmint/proto";
import { expect, onTestFinished } from "vitest";
import type { Caller, Seen, Step } from "../../src/callers/caller.ts";
import { isLong } from "../fleet-support.ts";
import { TcpProxy } from "../../src/tcp-proxy.ts";
import { ClientsServer } from "./server.ts";

const ONE = "idmint.v1.IdService/GenerateId";
const STREAM = "idmint.v1.IdService/StreamIds";
/** As many calls as wait at once in most cases, and as many as one connection is to carry. */
const SOME = 20;
const MANY = 1_000;
/** Most metadata of a call is 8 KiB; the door answers for what is a little above, and ends connections for much more. */
const WITHIN_BYTES = 7_000;
const ABOVE_BYTES = 12_000;
const FAR_ABOVE_BYTES = 64 * 1_024;
/** Longer than most calls take, shorter than a test. */
const SOON_MS = 500;
/** So often libraries may ask whether a server is there that asks for no more: none asks more often than every 10 s. */
const KEEPALIVE_MS = 10_000;
const IDLE_MS = 25_000;
/** How old connections become where they grow old, give or take a tenth, and how long calls are made meanwhile. */
const AGE = { env: { IDMINT_LIMITS_CONNECTION_AGE: "1s" }, ms: 1_100 };
const FLIGHT_MS = (isLong ? 3 : 2) * AGE.ms;
const MAX_FLIGHTS = 5;

/** Somebody in front of a server; answers the port on which he listens. */
export type Front = (server: ClientsServer) => Promise<number>;

interface Stage {
  readonly caller: Caller;
  readonly isSecure: boolean;
  /** A server that serves several cases. */
  readonly server: ClientsServer;
  /** Undefined: the server itself is called. */
  readonly front?: Front | undefined;
}

export interface Case {
  readonly name: string;
  /** Where it runs without IDMINT_LONG=1. Default: in plain text and over TLS. */
  readonly short?: "never" | "plain" | "TLS";
  /** What a connection is to one in front is not what it is to the server. */
  readonly isDirect?: boolean;
  readonly run: (stage: Stage) => Promise<void>;
}

function one(tag: string, step: Partial<Step> = {}): Step {
  const message = GenerateIdRequest.encode({ tag, name: "" }).finish();
  return { method: ONE, message, calls: SOME, ...step };
}

function streamed(tag: string, step: Partial<Step> = {}): Step {
  const request = { call: 1, tag, count: 0, name: "" };
  const message = StreamIdsRequest.encode(request).finish();
  return { method: STREAM, message, calls: SOME, isStream: true, ...step };
}

function idsOf({ answers }: Seen): readonly bigint[] {
  return answers.map((answer) => GenerateIdResponse.decode(answer).id);
}

function streamedIdsOf({ answers }: Seen): readonly bigint[] {
  return answers.map((answer) => {
    const { result } = StreamIdsResponse.decode(answer);
    if (result?.$case !== "one") throw new Error(`an answer of a stream: ${result?.$case}`);
    return result.value.id;
  });
}

/** Each call was answered with an id of its own. */
function expectIds(seen: Seen | undefined, count: number, text?: string): void {
  expect(seen?.ends, `${text} ${seen?.texts.join()}`).toEqual({ OK: count });
  expect(new Set(idsOf(seen as Seen)).size).toBe(count);
}

function expectStreamed(seen: Seen | undefined, count: number): void {
  expect(seen?.ends, seen?.texts.join()).toEqual({ OK: 1 });
  expect(new Set(streamedIdsOf(seen as Seen)).size).toBe(count);
}

/**
 * No id came twice, and none that was issued is missing: whoever was not answered was not served either. For tags of which nobody
 * else asks.
 */
function expectNoneLost(ids: readonly bigint[]): void {
  const sorted = ids.toSorted((a, b) => (a < b ? -1 : 1));
  const first = sorted[0] ?? 0n;
  expect(sorted).toEqual(sorted.map((_, at) => first + BigInt(at)));
}

function newTag(): string {
  return `t-${randomUUID()}`;
}

/** Does steps in which nobody stands in the way. */
async function doSteps(stage: Stage, steps: readonly Step[]): Promise<readonly Seen[]> {
  return stage.caller.begin(await targetOf(stage), steps).seen;
}

async function targetOf({ front, server }: Stage) {
  return server.target(front === undefined ? server.port : await front(server));
}

async function newSequence({ server }: Stage): Promise<string> {
  const tag = newTag();
  await server.createSequence(tag);
  return tag;
}

/** A server of the case's own. */
async function own(stage: Stage, env?: Readonly<Record<string, string>>): Promise<Stage> {
  const server = await ClientsServer.start(stage.isSecure, env);
  onTestFinished(() => server.close());
  return { ...stage, server };
}

async function counted({ server }: Stage): Promise<TcpProxy> {
  const way = await TcpProxy.start({ host: "127.0.0.1", port: server.port });
  onTestFinished(() => way.close());
  return way;
}

async function compression(stage: Stage): Promise<void> {
  const [calls, stream] = await doSteps(stage, [
    one("demo", { gzip: true }),
    streamed("demo", { gzip: true, calls: MANY }),
  ]);
  expectIds(calls, SOME);
  expectStreamed(stream, MANY);
}

async function metadata(stage: Stage): Promise<void> {
  const few = { calls: 3 };
  const seen = await doSteps(stage, [
    one("demo", { metadataBytes: WITHIN_BYTES }),
    one("demo", { ...few, metadataBytes: ABOVE_BYTES }),
    one("demo"),
    one("demo", { ...few, metadataBytes: FAR_ABOVE_BYTES }),
    // Until it has noticed that its connection is gone.
    one("demo", { calls: 0, forMs: SOON_MS }),
    one("demo"),
  ]);
  for (const at of [0, 2, 5]) expectIds(seen[at], SOME, `step ${at}`);
  for (const at of [1, 3]) {
    expect(seen[at]?.answers).toEqual([]);
    expect(seen[at]?.ends).not.toHaveProperty("OK");
  }
}

async function deadlines(stage: Stage): Promise<void> {
  const tag = await newSequence(stage);
  const lock = await stage.server.lock(tag);
  const run = stage.caller.begin(await targetOf(stage), [
    one(tag, { timeoutMs: SOON_MS }),
    streamed(tag, { timeoutMs: SOON_MS }),
    one(tag),
  ]);
  await run.begun(3);
  await lock.release();
  const [calls, stream, after] = await run.seen;
  // A server that sees the end of a call's time come says UNAVAILABLE, just before the client's own clock is there.
  const { DEADLINE_EXCEEDED: late = 0, UNAVAILABLE: refused = 0 } = calls?.ends ?? {};
  expect(late + refused, JSON.stringify(calls?.ends)).toBe(SOME);
  for (const answer of stream?.answers ?? []) {
    expect(StreamIdsResponse.decode(answer).result?.$case).toBe("error");
  }
  expect(Object.values(stream?.ends ?? {})).toEqual([1]);
  expectIds(after, SOME);
}

async function cancellation(stage: Stage): Promise<void> {
  const tag = await newSequence(stage);
  const lock = await stage.server.lock(tag);
  const run = stage.caller.begin(await targetOf(stage), [
    one(tag, { cancelAfterMs: SOON_MS }),
    streamed(tag, { cancelAfterMs: SOON_MS }),
    one("demo"),
  ]);
  const [calls, stream, after] = await run.seen;
  // They wait no longer, though the store is still locked.
  await stage.server.untilWaiting(tag, 0);
  await lock.release();
  expect(calls?.ends).toEqual({ CANCELLED: SOME });
  expect(stream?.ends).toEqual({ CANCELLED: 1 });
  expectIds(after, SOME);
}

async function manyStreams(stage: Stage): Promise<void> {
  const tag = await newSequence(stage);
  const way = stage.front === undefined ? await counted(stage) : undefined;
  const lock = await stage.server.lock(tag);
  const target = way === undefined ? await targetOf(stage) : stage.server.target(way.port);
  const run = stage.caller.begin(target, [one(tag, { calls: MANY })]);
  await stage.server.untilWaiting(tag, MANY);
  await lock.release();
  const [seen] = await run.seen;
  expectIds(seen, MANY);
  expectNoneLost(idsOf(seen as Seen));
  if (way !== undefined) expect(way.accepted).toBe(1);
}

async function keepalive(stage: Stage): Promise<void> {
  const way = await counted(stage);
  const target = { ...stage.server.target(way.port), keepaliveMs: KEEPALIVE_MS };
  const run = stage.caller.begin(target, [
    one("demo"),
    one("demo", { calls: 0, forMs: IDLE_MS }),
    one("demo"),
  ]);
  await run.begun(2);
  const before = way.sentBytes;
  await run.begun(3);
  // Two PINGs at least.
  expect(way.sentBytes - before).toBeGreaterThanOrEqual(2 * 17);
  const seen = await run.seen;
  for (const at of [0, 2]) expectIds(seen[at], SOME);
  expect(way.accepted).toBe(1);
}

/** Connections end all the time, and no caller notices: neither those that call nor those that wait for an answer. */
async function age(stage: Stage): Promise<void> {
  const old = await own(stage, AGE.env);
  const tag = newTag();
  await old.server.createTag(tag);
  const [calls, stream] = [await newSequence(old), await newSequence(old)];
  const way = await counted(old);
  const target = old.front === undefined ? old.server.target(way.port) : await targetOf(old);
  const flown: bigint[] = [];
  let flights = 0;
  do {
    const [seen] = await stage.caller.begin(target, [one(tag, { forMs: FLIGHT_MS })]).seen;
    const { OK: answered = 0, ...others } = seen?.ends ?? {};
    expect(answered).toBeGreaterThan(0);
    // Only a library that leaves trying again to its users tells them so.
    const allowed = stage.caller.retriable.filter((end) => end !== "UNAVAILABLE");
    expect(allowed, seen?.texts.join()).toEqual(expect.arrayContaining(Object.keys(others)));
    flown.push(...idsOf(seen as Seen));
    flights++;
    // A slow machine may need more than one flight until a connection has grown old on the way.
  } while (way.accepted === flights && flights < MAX_FLIGHTS);
  if (old.front === undefined) expect(way.accepted).toBeGreaterThan(flights);
  expectNoneLost(flown);

  const locks = await Promise.all([calls, stream].map((each) => old.server.lock(each)));
  const waiting = [one(calls), streamed(stream)].map((step) => stage.caller.begin(target, [step]));
  await Promise.all([calls, stream].map((each) => old.server.untilWaiting(each, SOME)));
  // Their connections are told to go meanwhile.
  await pause(AGE.ms + SOON_MS);
  await Promise.all(locks.map((lock) => lock.release()));
  const [[called] = [], [streamedTo] = []] = await Promise.all(waiting.map(({ seen }) => seen));
  expectIds(called, SOME);
  expectNoneLost(idsOf(called as Seen));
  expectStreamed(streamedTo, SOME);
  expectNoneLost(streamedIdsOf(streamedTo as Seen));
}

/** Whoever calls while the server stops is answered, or told that he may try again; and then no id was taken for him. */
async function stop(stage: Stage): Promise<void> {
  const stopping = await own(stage);
  const tag = newTag();
  await stopping.server.createTag(tag);
  const target = await targetOf(stopping);
  const warm = one(tag, { calls: 1 });
  const run = stage.caller.begin(target, [warm, one(tag, { forMs: FLIGHT_MS })]);
  await run.begun(2);
  await pause(SOON_MS);
  stopping.server.child.signal("SIGTERM");
  await stopping.server.child.waitForEnd(60_000);
  const [first, flown] = await run.seen;
  const { OK: answered = 0, ...others } = flown?.ends ?? {};
  expect(answered).toBeGreaterThan(0);
  expect(stage.caller.retriable, flown?.texts.join()).toEqual(
    expect.arrayContaining(Object.keys(others)),
  );
  expectNoneLost([...idsOf(first as Seen), ...idsOf(flown as Seen)]);
}

export const CASES: readonly Case[] = [
  { name: "compressed requests", run: compression },
  { name: "metadata within the limit and above it", run: metadata },
  { name: "deadlines that pass while a sequence waits", run: deadlines },
  { name: "cancellation of calls and streams that wait", run: cancellation },
  { name: "1,000 calls at once on one connection", run: manyStreams },
  { name: "keepalive without calls", run: keepalive, short: "never", isDirect: true },
  { name: "connections that grow old while calls fly and wait", run: age, short: "plain" },
  { name: "a server that stops while calls fly", run: stop, short: "TLS" },
];
