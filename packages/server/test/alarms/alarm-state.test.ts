import { IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import type { AlarmContent } from "../../src/alarms/alarm.ts";
import { envelopeOf } from "../../src/alarms/alarm.ts";
import { alarmOf } from "../../src/alarms/alarm-of.ts";
import {
  createAlarmState,
  isRecent,
  isStale,
  lasted,
  nextDueAt,
  noticed,
  raised,
  remember,
  retryMs,
} from "../../src/alarms/alarm-state.ts";
import type { ServerEvent } from "../../src/service/events.ts";

const DOWN = new IdmintError("STORE_UNAVAILABLE", "it is down");
const WRONG = new IdmintError("STORE_EPOCH_CHANGED", "it is another one");
const SEEDED = {
  type: "redis-seeded",
  tag: "t",
  redisServer: "a",
  generation: 7n,
  from: 9n,
} as const;

const REFUSED = { type: "clock-refused", driftMs: -9, detail: "d" } as const;

function content(key: string): AlarmContent {
  return { alarm: "STORE_LOST", key, severity: "critical", summary: "s", details: {} };
}

test.each<[string, string, ServerEvent]>([
  ["alarm", "STORE_WENT_BACK", { type: "fenced", tag: "t", detail: "d" }],
  ["alarm", "STORE_WENT_BACK", { type: "fenced", tag: undefined, detail: "d" }],
  ["alarm", "STORE_FAILED_OVER", { type: "promotion-accepted" }],
  ["alarm", "ISSUING_STOPPED", { type: "issuing-stopped", sinceMs: 1_750_000_000_000 }],
  ["alarm", "ISSUING_RESUMED", { type: "issuing-resumed" }],
  ["alarm", "STORE_ACCEPTED", { type: "store-accepted", gap: 2n ** 63n - 1n, tags: 1 }],
  ["trouble", "STORE_LOST", { type: "store-lost", error: DOWN }],
  ["over", "STORE_LOST", { type: "store-back", afterMs: 1 }],
  ["alarm", "STORE_WARNING", { type: "store-warning", detail: "d" }],
  [
    "trouble",
    "TICKET_DATABASE_LOST:x",
    { type: "ticket-database-lost", database: "x", error: DOWN },
  ],
  [
    "alarm",
    "TICKET_DATABASE_REFUSED:x",
    { type: "ticket-database-lost", database: "x", error: WRONG },
  ],
  ["over", "TICKET_DATABASE_LOST:x", { type: "ticket-database-back", database: "x" }],
  ["trouble", "REDIS_LOST:a", { type: "redis-lost", redisServer: "a", why: "" }],
  ["over", "REDIS_LOST:a", { type: "redis-back", redisServer: "a", afterMs: 1 }],
  ["alarm", "REDIS_RESEEDED:a", { ...SEEDED, why: "missing", isLoss: true }],
  [
    "alarm",
    "MAX_NOT_RAISED:t",
    { type: "max-not-raised", tag: "t", redisServer: "a", max: 5n, error: DOWN },
  ],
  ["alarm", "CLOCK_REFUSED:h:1", { ...REFUSED, tag: undefined, why: "behind-report" }],
  ["alarm", "CLOCK_REFUSED:h:1", { ...REFUSED, tag: undefined, why: "off-peers" }],
  ["alarm", "CLOCK_REFUSED:h:1", { ...REFUSED, tag: "t", why: "went-back" }],
  ["trouble", "CLOCK_REFUSED:h:1", { ...REFUSED, tag: undefined, why: "ahead" }],
  ["over", "CLOCK_REFUSED:h:1", { type: "clock-recovered", tag: undefined, afterMs: 1 }],
  [
    "alarm",
    "CLOCK_WENT_BACK:h:1",
    { type: "clock-back", tag: "t", driftMs: 7.5, isRefused: false },
  ],
  ["alarm", "CLOCK_AHEAD:h:1", { type: "clock-ahead", tag: "t", aheadMs: 20_000 }],
  [
    "alarm",
    "INSTANCE_SHARED:h:1",
    { type: "name-shared", tag: "t", instance: "pod-1", workerId: 3 },
  ],
  ["alarm", "LEASE_FILE_FAILED:h:1", { type: "lease-file-failed", error: DOWN }],
])("an event makes a change of type %s with key %s", (type, key, event) => {
  const change = alarmOf(event, "h:1");
  expect(change?.type).toBe(type);
  expect(change?.type === "over" ? change.key : change?.content.key).toBe(key);
  // Bigints would not go into JSON.
  expect(() => JSON.stringify(change)).not.toThrow();
});

test("what needs nobody is no alarm", () => {
  const events: readonly ServerEvent[] = [
    { ...SEEDED, why: "missing", isLoss: false },
    { type: "draining", delayMs: 0 },
    { type: "alarm-failed", key: "k", attempt: 1, why: "w" },
    { type: "load-failed", tag: "t", error: DOWN, retryInMs: 1 },
    // It is told of as refused, and its end ends nothing that waits to be told.
    { type: "clock-back", tag: "t", driftMs: 7, isRefused: true },
    { type: "clock-recovered", tag: "t", afterMs: 1 },
    { type: "lease-file-ignored", why: "w" },
  ];
  for (const event of events) expect(alarmOf(event, "h:1")).toBeUndefined();
});

test("a trouble is told once, when it has lasted", () => {
  const state = createAlarmState(30_000);
  const lost = { type: "trouble", content: content("a") } as const;
  expect(noticed(state, lost, 0)).toEqual([]);
  expect(noticed(state, lost, 20_000)).toEqual([]);
  noticed(state, { type: "trouble", content: content("b") }, 10_000);
  expect(nextDueAt(state)).toBe(30_000);
  expect(lasted(state, 29_999)).toEqual([]);
  expect(lasted(state, 30_000)).toEqual([lost.content]);
  expect(lasted(state, 30_000)).toEqual([]);
  expect(nextDueAt(state)).toBe(40_000);
  noticed(state, { type: "over", key: "b" }, 39_999);
  expect(lasted(state, 100_000)).toEqual([]);
  expect(nextDueAt(state)).toBeUndefined();
  // It begins anew after it was over.
  noticed(state, lost, 200_000);
  expect(nextDueAt(state)).toBe(230_000);
});

test("a key is told once a minute, and what finds too many waiting is dropped and told later", () => {
  const state = createAlarmState(0);
  expect(raised(state, content("a"), 0, 0)).toBe("told");
  expect(raised(state, content("a"), 0, 59_999)).toBe("repeated");
  expect(raised(state, content("b"), 999, 59_999)).toBe("told");
  expect(raised(state, content("a"), 0, 60_000)).toBe("told");
  expect(raised(state, content("c"), 1_000, 60_000)).toBe("dropped");
  expect(raised(state, content("c"), 999, 60_001)).toBe("told");
});

test("keys are forgotten after their minute, and beyond 10,000 the oldest first", () => {
  const recent = new Map<string, number>();
  remember(recent, "old", 0);
  remember(recent, "again", 0);
  remember(recent, "again", 40_000);
  remember(recent, "new", 60_000);
  expect([...recent.keys()]).toEqual(["again", "new"]);
  for (let at = 0; at < 10_001; at++) remember(recent, `k-${at}`, 60_000);
  expect(recent.size).toBe(10_000);
  expect(isRecent(recent, "again", 60_000)).toBe(false);
  expect(isRecent(recent, "k-10000", 60_000)).toBe(true);
});

test("tries come after 1, 2, 4 … 60 s, less up to a half", () => {
  const most = [1, 2, 3, 6, 7, 8, 1_000_000].map((failures) => retryMs(failures, () => 1));
  expect(most).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000, 60_000]);
  expect(retryMs(3, () => 0)).toBe(2_000);
});

test("an alarm is news for a day", () => {
  expect(isStale(0, 86_400_000)).toBe(false);
  expect(isStale(0, 86_400_001)).toBe(true);
});

test.each([
  "",
  "null",
  "[]",
  "1",
  '{"id":"1"}',
  '{"id":1,"key":"k","time":"2026-11-21T00:00:00Z"}',
  '{"id":"1","key":"k","time":"soon"}',
])("%s in the queue is no alarm", (body) => {
  expect(envelopeOf(body)).toBeUndefined();
});
