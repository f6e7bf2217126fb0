import type { Period, PeriodDoubt } from "@idmint/core";
import { expect, test } from "vitest";
import type { ServerEvent } from "../../../src/service/events.ts";
import { PeriodWatch } from "../../../src/service/upstream/period-watch.ts";

function period(start: string, doubt?: PeriodDoubt): Period {
  const certain = { start, unit: "DAY", endsAtMs: 0 } as const;
  return doubt === undefined ? certain : { ...certain, doubt };
}

test("a doubtful period is told once, and once more when it is another or none", () => {
  const events: ServerEvent[] = [];
  const watch = new PeriodWatch((event) => events.push(event));
  watch.observe("a", period("2026-11-22"));
  for (let grant = 0; grant < 3; grant++) watch.observe("a", period("2026-11-22", "HELD_BACK"));
  watch.observe("b", period("2037-12-31", "AHEAD"));
  watch.observe("a", period("2026-11-23", "HELD_BACK"));
  watch.observe("a", period("2026-11-24"));
  watch.observe("a", period("2026-11-24"));
  expect(events).toEqual([
    { type: "period-in-doubt", tag: "a", start: "2026-11-22", why: "HELD_BACK" },
    { type: "period-in-doubt", tag: "b", start: "2037-12-31", why: "AHEAD" },
    { type: "period-in-doubt", tag: "a", start: "2026-11-23", why: "HELD_BACK" },
    { type: "period-confirmed", tag: "a", start: "2026-11-24" },
  ]);
});
