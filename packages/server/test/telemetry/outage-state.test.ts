import { expect, test } from "vitest";
import {
  createOutageState,
  ended,
  failed,
  POLLS,
  worked,
} from "../../src/telemetry/outage-state.ts";

test("an outage is told when it begins, once a minute, and when all works again", () => {
  const state = createOutageState();
  const told: string[] = [];
  for (let now = 0; now < 180_000; now += 250) {
    const subjects = ["load a", "load b", POLLS];
    for (const subject of subjects) {
      const tell = failed(state, subject === POLLS ? "polls" : "loads", subject, now);
      if (tell !== undefined) told.push(`${tell} ${now}`);
    }
  }
  expect(told).toEqual(["begin 0", "go-on 60000", "go-on 120000"]);
  expect(Object.fromEntries(state.counts)).toEqual({ loads: 1_440, polls: 720 });
  expect(worked(state, "load a", 180_000)).toBe(false);
  expect(worked(state, "load c", 180_000)).toBe(false);
  expect(worked(state, "load b", 180_000)).toBe(false);
  expect(worked(state, POLLS, 180_000)).toBe(true);
  expect(worked(state, POLLS, 180_000)).toBe(false);
});

test("what an outage broke may fail for a moment after its end, and longer is another outage", () => {
  const state = createOutageState();
  expect(failed(state, "loads", "load a", 0)).toBe("begin");
  expect(ended(state, 1_000)).toBe(true);
  expect(ended(state, 1_000)).toBe(false);
  expect(failed(state, "loads", "load a", 1_500)).toBeUndefined();
  expect(worked(state, "load a", 1_600)).toBe(false);
  expect(failed(state, "loads", "load a", 4_100)).toBe("begin");
  expect(state.counts.get("loads")).toBe(1);
  // Polls have a line of their own, whenever they fail.
  ended(state, 5_000);
  failed(state, "polls", POLLS, 5_100);
  expect(state.isOpen).toBe(true);
});

test("what nobody tries again keeps nothing from being told", () => {
  const state = createOutageState();
  expect(failed(state, "loads", "load gone", 0)).toBe("begin");
  expect(failed(state, "changes", undefined, 59_000)).toBeUndefined();
  expect(failed(state, "loads", "load b", 119_000)).toBe("begin");
  // The tag that is gone is forgotten with the outage that it was part of.
  expect(worked(state, "load b", 119_500)).toBe(true);
});

test("what is remembered of an outage has a limit", () => {
  const state = createOutageState();
  for (let at = 0; at < 20_000; at++) failed(state, "loads", `load ${at}`, at / 1_000);
  expect(state.failing.size).toBe(10_000);
});
