// Who may watch the health of a server, and that one caller keeps no other from it.
import type { IdmintError } from "@idmint/core";
import { expect, test } from "vitest";
import { Health } from "../../src/service/health.ts";

const TOLD_NOTHING = { changed: (): void => undefined, end: (): void => undefined };

/** What ends the watch; undefined: it was refused. */
function watch(health: Health, caller: string, connection = 1): (() => void) | undefined {
  try {
    return health.watch({ peer: `${caller}:${connection}`, caller, ...TOLD_NOTHING });
  } catch (thrown) {
    expect((thrown as IdmintError).reason).toBe("OVERLOADED");
    return undefined;
  }
}

/** Watches of one connection until no more are taken; how many were. */
function watchMost(health: Health, caller: string): number {
  for (let taken = 0; taken < 5_000; taken++) if (watch(health, caller) === undefined) return taken;
  return Infinity;
}

test("one caller takes half of the places, and others still get theirs", () => {
  const health = new Health();
  expect(watchMost(health, "stranger")).toBe(1 + 500);
  expect(watchMost(health, "honest")).toBe(1 + 250);
  // By now nobody has room for many, and each connection has room for one.
  for (let each = 0; each < 20; each++) watchMost(health, `greedy ${each}`);
  for (let connection = 1; connection <= 2_000; connection++) {
    expect(watch(health, "late", connection)).toBeTypeOf("function");
  }
});

test("a place is free again when its watch has ended, once", () => {
  const health = new Health();
  const first = watch(health, "a");
  const further = watch(health, "a");
  further?.();
  further?.();
  first?.();
  first?.();
  expect(watchMost(health, "a")).toBe(1 + 500);
  const other = new Health();
  const ends = Array.from({ length: 1 + 500 }, () => watch(other, "a"));
  expect(watch(other, "a")).toBeUndefined();
  ends[0]?.();
  expect(watch(other, "a")).toBeTypeOf("function");
  expect(watch(other, "a")).toBeUndefined();
  ends[1]?.();
  expect(watch(other, "a")).toBeTypeOf("function");
});

test("whoever watches is told of changes until its watch ends", () => {
  const health = new Health();
  const told: string[] = [];
  const watcher = (peer: string): (() => void) =>
    health.watch({
      peer,
      caller: "a",
      changed: () => told.push(`${peer} ${health.isServing}`),
      end: () => told.push(`${peer} ended`),
    });
  const stop = watcher("a:1");
  watcher("a:2");
  health.setServing(true);
  health.setServing(true);
  stop();
  health.setServing(false);
  health.close();
  health.close();
  expect(told).toEqual(["a:1 true", "a:2 true", "a:2 false", "a:2 ended"]);
});
