// One row that cannot be read fails every question it is part of.
import { IdmintError } from "@idmint/core";
import type { Tag } from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { createCounters } from "../../../src/service/counters.ts";
import { Lookup } from "../../../src/service/upstream/lookup.ts";
import { askApart } from "../../../src/service/upstream/apart.ts";

const ALL = Array.from({ length: 1_000 }, (_, at) => at);

/** A store in which some rows cannot be read. */
function storeWith(spoiled: readonly number[], reason: "SCHEMA_MISMATCH" | "STORE_UNAVAILABLE") {
  const asked: (readonly number[])[] = [];
  const ask = async (some: readonly number[]): Promise<readonly string[]> => {
    asked.push(some);
    const bad = some.find((one) => spoiled.includes(one));
    if (bad !== undefined) throw new IdmintError(reason, `row ${bad}`);
    return some.map(String);
  };
  const answers = (): Promise<readonly string[]> =>
    askApart(ALL, ask, (one, { message }) => [`${one}: ${message}`]);
  return { asked, answers };
}

test("what can be read is asked for once", async () => {
  const { asked, answers } = storeWith([], "SCHEMA_MISMATCH");
  expect(await answers()).toEqual(ALL.map(String));
  expect(asked).toHaveLength(1);
});

test("rows that cannot be read answer for themselves, and all others are answered, in their order", async () => {
  const { asked, answers } = storeWith([0, 499, 999], "SCHEMA_MISMATCH");
  const expected = ALL.map(String);
  for (const bad of [0, 499, 999]) expected[bad] = `${bad}: SCHEMA_MISMATCH: row ${bad}`;
  expect(await answers()).toEqual(expected);
  expect(asked.length).toBeLessThan(70);
});

test("with too many of them the store is not asked for ever", async () => {
  const { asked, answers } = storeWith(ALL, "SCHEMA_MISMATCH");
  await expect(answers()).rejects.toThrow("SCHEMA_MISMATCH");
  expect(asked.length).toBeLessThanOrEqual(100);
});

test("whatever else fails is asked once: its outcome may be unknown", async () => {
  const { asked, answers } = storeWith([7], "STORE_UNAVAILABLE");
  await expect(answers()).rejects.toThrow("STORE_UNAVAILABLE");
  expect(asked).toHaveLength(1);
});

test("a look at names refuses the one whose row cannot be read, and it is not taken for absent", async () => {
  const time = new FakeTime();
  const admitted: string[] = [];
  const lookup = new Lookup({
    store: {
      getTags: async (names) => {
        if (names.includes("bad")) throw new IdmintError("SCHEMA_MISMATCH", "row bad");
        return names.filter((name) => name !== "none").map((name) => ({ name }) as Tag);
      },
    },
    clock: time,
    timers: time,
    afterTurn: (run) => queueMicrotask(run),
    storeTimeoutMs: 1_000,
    counters: createCounters(),
    onTags: (tags) => admitted.push(...tags.map(({ name }) => name)),
  });
  const call = { deadline: 1_000, signal: new AbortController().signal };
  const outcomeOf = (name: string): Promise<string> =>
    lookup.find(name, call).then(
      () => "found",
      (error: unknown) => (error as IdmintError).reason,
    );
  const outcomes = Promise.all(["a", "bad", "none", "b"].map(outcomeOf));
  expect(await outcomes).toEqual(["found", "SCHEMA_MISMATCH", "TAG_NOT_FOUND", "found"]);
  expect(admitted).toEqual(["a", "b"]);
  const again = outcomeOf("bad");
  await new Promise((resolve) => setImmediate(resolve));
  time.advance(100);
  expect(await again).toBe("SCHEMA_MISMATCH");
});
