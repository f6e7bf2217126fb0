import { expect, test } from "vitest";
import type { Window } from "../../nemesis/journal.ts";
import { Availability } from "../../nemesis/judge/availability.ts";
import type { AnyRow } from "../../nemesis/judge/rows.ts";
import { COMMON } from "../../nemesis/tags.ts";

const SECOND = 1_000_000;

function refusal(who: string, second: number): AnyRow {
  const times = { from: second * SECOND, to: second * SECOND + 1 };
  return { tag: "bills", who, time: "", ...times, refused: "UNAVAILABLE DRAINING", message: "" };
}

function killed(target: string, second: number): Window {
  const from = second * SECOND;
  return { site: "a", of: "caller", kind: "kill-caller", target, from, to: from + SECOND };
}

/** The longest time without an answer, in seconds. */
function longestOf(windows: readonly Window[], history: string): number {
  const availability = new Availability(COMMON, windows, 2);
  availability.add({ history: `a/${history}`, row: refusal(history, 10) });
  availability.end(400 * SECOND);
  return Math.max(...[...availability.longest.values()].map(({ ms }) => ms / 1_000));
}

test("a process that was killed is without an answer until then, and one that runs on until the end", () => {
  const kills = [killed("sdk-2", 5), killed("sdk-1", 11), killed("sdk-2", 12)];
  expect(longestOf(kills, "sdk-2.2")).toBe(2);
  expect(longestOf(kills, "sdk-1.1")).toBe(1);
  expect(longestOf(kills, "sdk-2.3")).toBe(390);
  expect(longestOf([], "sdk-2.2")).toBe(390);
});
