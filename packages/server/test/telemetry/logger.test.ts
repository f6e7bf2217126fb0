import { IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import type { LogLevel } from "../../src/config/table.ts";
import { emitter, type ServerEvent } from "../../src/service/events.ts";
import { logEvents } from "../../src/telemetry/log-events.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

function logged(
  run: (emit: (event: ServerEvent) => void) => void,
  options: { level?: LogLevel; format?: "json" | "text"; now?: () => number } = {},
): string[] {
  const lines: string[] = [];
  const { level = "debug", format = "json", now = () => 0 } = options;
  const { logger } = createLogger({ level, format }, { write: (line) => lines.push(line) });
  run(logEvents(logger, now));
  return lines;
}

const CAUSE = new Error("socket hang up");
const ERROR = new IdmintError("STORE_UNAVAILABLE", "it is down", { cause: CAUSE });

const EVENTS: readonly ServerEvent[] = [
  { type: "load-started", tag: "t", count: 1 },
  { type: "loaded", tag: "t", count: 1, durationMs: 2 },
  { type: "load-failed", tag: "t", error: ERROR, retryInMs: 50 },
  { type: "wasted", tag: "t", count: 3, cause: "dropped" },
  { type: "serving", grpcAddress: "a", adminAddress: "", httpAddress: "b" },
  { type: "draining", delayMs: 0 },
  { type: "stopped", givenBack: 1, wasted: 2 },
  { type: "store-lost", error: ERROR },
  { type: "store-back", afterMs: 10 },
  { type: "fenced", tag: "t", detail: "d" },
  { type: "fenced", tag: undefined, detail: "d" },
  { type: "unfenced" },
  { type: "store-accepted", gap: 2n ** 63n - 1n, tags: 3 },
  { type: "promotion-accepted" },
  { type: "issuing-stopped", sinceMs: 1_750_000_000_000 },
  { type: "issuing-resumed" },
  { type: "incarnation-changed", incarnation: "i" },
  { type: "late-grant", tag: "t", count: 4 },
  { type: "give-back-failed", error: ERROR },
  {
    type: "redis-seeded",
    tag: "t",
    redisServer: "s",
    generation: 2n,
    from: 9n,
    why: "restarted",
    isLoss: true,
  },
  { type: "max-not-raised", tag: "t", redisServer: "s", max: 9n, error: ERROR },
  { type: "worker-leased", tag: "t", dataCenter: 0, workerId: 1, extension: 0, leadMs: 0 },
  { type: "name-shared", tag: "t", instance: "a", workerId: 1 },
  { type: "worker-lost", tag: "t", error: ERROR },
  { type: "clock-back", tag: "t", driftMs: 7, isRefused: false },
  { type: "clock-ahead", tag: "t", aheadMs: 20_000 },
  { type: "clock-refused", tag: undefined, why: "off-peers", driftMs: -9, detail: "d" },
  { type: "clock-recovered", tag: undefined, afterMs: 3 },
  { type: "lease-file-ignored", why: "w" },
  { type: "lease-file-failed", error: ERROR },
  { type: "alarm-delivered", key: "k", id: "i" },
  { type: "alarm-failed", key: "k", attempt: 1, why: "w" },
  { type: "alarm-dropped", key: "k", why: "w" },
  { type: "internal-error", where: "w", cause: CAUSE },
  { type: "connections-cut", limit: 64, wanted: 100, memoryMb: 256 },
  { type: "connection-refused", peer: "p", why: "w" },
];

test("every event is one JSON line with a time, a level and words", () => {
  const lines = logged((emit) => {
    for (const event of EVENTS) emit(event);
  });
  expect(lines).toHaveLength(EVENTS.length);
  for (const line of lines) {
    const entry = JSON.parse(line) as Record<string, unknown>;
    expect(entry).toMatchObject({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
      level: expect.any(String) as string,
      msg: expect.stringMatching(/../) as string,
    });
  }
  expect(lines.join()).toContain("9223372036854775807");
});

test("a cause is logged with its stack, for whoever looks for it", () => {
  const [line] = logged((emit) => emit({ type: "internal-error", where: "w", cause: CAUSE }));
  expect(line).toContain("socket hang up");
  expect(line).toContain("logger.test.ts");
});

/** Everything that fails in 20 s while 50 busy tags are without their store. */
function outage(emit: (event: ServerEvent) => void, clock: { now: number }): void {
  emit({ type: "load-failed", tag: "t0", error: ERROR, retryInMs: 50 });
  emit({ type: "store-lost", error: ERROR });
  for (let at = 0; at < 80; at++) {
    clock.now += 250;
    emit({ type: "poll-failed", error: ERROR });
    emit({ type: "callers-unread", error: ERROR });
    emit({ type: "change-failed", method: "m", error: ERROR });
    for (let tag = 0; tag < 50; tag++) {
      emit({ type: "load-failed", tag: `t${tag}`, error: ERROR, retryInMs: 50 });
    }
  }
  emit({ type: "store-back", afterMs: 20_000 });
  emit({ type: "load-failed", tag: "t1", error: ERROR, retryInMs: 50 });
  for (let tag = 0; tag < 50; tag++) {
    emit({ type: "loaded", tag: `t${tag}`, count: 1, durationMs: 1 });
  }
}

function toldOfOutage(level: LogLevel): string[] {
  const clock = { now: 0 };
  return logged((emit) => outage(emit, clock), { level, now: () => clock.now });
}

test("an outage is few lines without stacks, and at debug each failure is one with its stack", () => {
  const lines = toldOfOutage("info");
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
    "could not load a segment",
    "the store does not answer; serving ids from memory",
    "the store answers again",
  ]);
  expect(lines.at(-1)).toContain(
    '"failures":{"loads":4001,"polls":81,"looks at callers":80,"changes":80}',
  );
  expect(lines.join()).not.toContain("stack");
  expect(lines[0]).toContain("socket hang up");
  const all = toldOfOutage("debug").filter((line) => line.includes("stack"));
  expect(all.length).toBeGreaterThan(4_000);
});

test("a start that waited for its store hides no outage that follows", () => {
  const clock = { now: 0 };
  const lines = logged(
    (emit) => {
      emit({ type: "store-awaited", error: ERROR, retryInMs: 1, leftMs: 1 });
      emit({ type: "store-awaited", error: ERROR, retryInMs: 1, leftMs: 1 });
      emit({ type: "serving", grpcAddress: "a", adminAddress: "", httpAddress: "b" });
      clock.now += 10_000;
      emit({ type: "load-failed", tag: "t", error: ERROR, retryInMs: 50 });
    },
    { level: "info", now: () => clock.now },
  );
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
    "the store does not answer; not ready until it does",
    "serving",
    "could not load a segment",
  ]);
});

test("a level hides what is below it", () => {
  const lines = logged(
    (emit) => {
      emit({ type: "loaded", tag: "t", count: 1, durationMs: 2 });
      emit({ type: "store-lost", error: ERROR });
    },
    { level: "error" },
  );
  expect(lines).toHaveLength(1);
});

test("a flood of refused connections is a few lines that count them", () => {
  let now = 0;
  const lines = logged(
    (emit) => {
      for (let at = 0; at < 1_000; at++) {
        now += 20;
        emit({ type: "connection-refused", peer: "p", why: "w" });
      }
    },
    { now: () => now },
  );
  expect(lines).toHaveLength(2);
  expect(lines[1]).toContain('"refused":500');
});

test("secrets never reach a line", () => {
  const lines: string[] = [];
  const { logger } = createLogger(
    { level: "info", format: "json" },
    { write: (line) => lines.push(line) },
  );
  logger.info(
    { password: "hunter2", config: { storePassword: "hunter2" }, call: { token: "hunter2" } },
    "x",
  );
  expect(lines.join()).not.toContain("hunter2");
  expect(lines.join()).toContain("[redacted]");
});

test("for people a line is a sentence with its facts", () => {
  const [line] = logged((emit) => emit({ type: "stopped", givenBack: 1, wasted: 2 }), {
    format: "text",
  });
  expect(line).toMatch(/^\d\d:\d\d:\d\d info {2}stopped givenBack=1 wasted=2\n$/);
});

test("a listener that throws breaks neither the caller nor the other listeners", () => {
  const heard: string[] = [];
  const emit = emitter([
    () => {
      throw new Error("bad listener");
    },
    (event) => heard.push(event.type),
  ]);
  emit({ type: "draining", delayMs: 0 });
  expect(heard).toEqual(["draining"]);
});
