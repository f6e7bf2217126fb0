// Which alarms are active, against a plain list of all changes.
import fc from "fast-check";
import { expect, test } from "vitest";
import { activated, activeNow, type ActiveState } from "../../src/alarms/active-state.ts";
import { alarmOf, type AlarmChange } from "../../src/alarms/alarm-of.ts";
import type { AlarmContent } from "../../src/alarms/alarm.ts";
import type { ServerEvent } from "../../src/service/events.ts";

const RECENT_MS = 15 * 60_000;
const KEYS = ["a", "b", "c"];

const contentOf = (key: string): AlarmContent => ({
  alarm: "STORE_LOST",
  key,
  severity: "warning",
  summary: "",
  details: {},
});
const key = fc.constantFrom(...KEYS);
const change: fc.Arbitrary<AlarmChange> = fc.oneof(
  key.map((each) => ({ type: "over" as const, key: each })),
  key.map((each) => ({ type: "trouble" as const, content: contentOf(each) })),
  fc
    .record({ each: key, isLasting: fc.boolean(), ends: fc.option(key, { nil: undefined }) })
    .filter(({ each, ends }) => each !== ends)
    .map(({ each, isLasting, ends }) => {
      const more = ends === undefined ? {} : { ends };
      return { type: "alarm" as const, content: contentOf(each), isLasting, ...more };
    }),
);

test("an alarm is there until it is over, or for a while if nothing ends it", () => {
  const step = fc.record({ change, waitMs: fc.nat(RECENT_MS) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const state: ActiveState = new Map();
      let now = 0;
      const all: { readonly at: number; readonly change: AlarmChange }[] = [];
      for (const { change: one, waitMs } of steps) {
        now += waitMs;
        activated(state, one, now, now + 1);
        all.push({ at: now, change: one });
        const active = activeNow(state, now, 100);
        for (const each of KEYS) {
          const about = all.filter(
            ({ change: its }) =>
              (its.type === "over" ? its.key === each : its.content.key === each) ||
              (its.type === "alarm" && its.ends === each),
          );
          const last = about.at(-1);
          const isBegun =
            last !== undefined && last.change.type !== "over" && last.change.content.key === each;
          const lasts =
            isBegun &&
            (last.change.type === "trouble" ||
              (last.change.type === "alarm" && last.change.isLasting));
          const isThere = lasts || (isBegun && now - last.at < RECENT_MS);
          const found = active.find(({ content }) => content.key === each);
          expect(found !== undefined).toBe(isThere);
          if (found !== undefined) expect(found.isLasting).toBe(lasts);
        }
      }
    }),
  );
});

test("what goes on began when it was first told, and the newest comes first", () => {
  const state: ActiveState = new Map();
  activated(state, { type: "trouble", content: contentOf("a") }, 1, 1_001);
  activated(state, { type: "alarm", content: contentOf("b"), isLasting: false }, 2, 1_002);
  activated(state, { type: "trouble", content: contentOf("a") }, 3, 1_003);
  const active = activeNow(state, 4, 100);
  expect(active.map(({ content, sinceMs }) => [content.key, sinceMs])).toEqual([
    ["a", 1_001],
    ["b", 1_002],
  ]);
  expect(activeNow(state, 4, 1)).toHaveLength(1);
});

test("a bounded number is remembered", () => {
  const state: ActiveState = new Map();
  for (let at = 0; at < 1_500; at++) {
    activated(state, { type: "trouble", content: contentOf(String(at)) }, at, at);
  }
  expect(activeNow(state, 1_500, 10_000)).toHaveLength(1_000);
  expect(state.has("1499")).toBe(true);
});

test.each<readonly [begins: ServerEvent, ends: ServerEvent]>([
  [{ type: "fenced", tag: undefined, detail: "" }, { type: "unfenced" }],
  [{ type: "issuing-stopped", sinceMs: 0 }, { type: "issuing-resumed" }],
  [
    { type: "clock-refused", tag: undefined, why: "disagreement", driftMs: 1, detail: "" } as never,
    { type: "clock-recovered", tag: undefined, afterMs: 1 },
  ],
])("what %j begins lasts until %j", (begins, ends) => {
  const state: ActiveState = new Map();
  const hear = (event: ServerEvent): void => activated(state, alarmOf(event, "s")!, 0, 0);
  hear(begins);
  const later = 2 * RECENT_MS;
  const [begun] = activeNow(state, later, 100);
  expect(begun?.isLasting).toBe(true);
  hear(ends);
  const left = activeNow(state, later, 100).map(({ content }) => content.key);
  expect(left).not.toContain(begun?.content.key);
});
