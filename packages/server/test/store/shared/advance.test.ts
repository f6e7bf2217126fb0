// The decision to advance a tag, on one row. What it means in a store is in the suite of stores.
import type { Tag } from "@idmint/core/server";
import { redisSequenceOf, sequenceOf } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { advancedTag } from "../../../src/store/shared/change.ts";

const STAMP = { revision: 7n, nowMs: 1_000 };
const STATE = {
  state: "ACTIVE",
  floor: 5n,
  periodStart: "",
  generation: 2n,
  version: 9n,
  epoch: 3n,
  revision: 2n,
  createdAtMs: 0,
  updatedAtMs: 0,
} as const;
const ROW: Tag = { ...sequenceOf("t", { ceiling: 1_000n }), ...STATE };

function advance(floor: bigint, row: Tag = ROW) {
  const options = { maxRaise: 100n, expectedRevision: undefined };
  return advancedTag("t", row, floor, options, STAMP);
}

test("a floor rises by as much as is meant at once, and the refusal of more names what allows it", () => {
  expect(advance(105n)).toMatchObject({
    changed: true,
    tag: { floor: 105n, version: 10n, epoch: 4n, revision: 7n },
  });
  expect(() => advance(106n)).toThrow(
    expect.objectContaining({
      reason: "RAISE_TOO_LARGE",
      message: expect.stringContaining("set allow_large_raise") as string,
    }) as Error,
  );
  expect(() => advance(1_001n)).toThrow("must be at most the ceiling 1000");
});

test("a floor that was reached or passed stays, under its version and epoch", () => {
  expect(advance(5n)).toEqual({ tag: ROW, changed: false });
  expect(advance(4n)).toEqual({ tag: ROW, changed: false });
});

test("what Redis counts begins anew above the floor; nothing else has a generation to change", () => {
  const inRedis: Tag = { ...redisSequenceOf("t", { ceiling: 1_000n }), ...STATE };
  expect(advance(50n, inRedis).tag).toMatchObject({ floor: 50n, generation: 3n });
  expect(advance(50n).tag.generation).toBe(2n);
});
