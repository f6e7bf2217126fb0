// Calls that go away while they wait: in any order, in large numbers, with their reasons.
import fc from "fast-check";
import { expect, test } from "vitest";
import { whenCancelled } from "../../src/call.ts";
import type { IdmintError } from "../../src/errors.ts";
import type { Load } from "../../src/segment/buffer-types.ts";
import { SegmentBuffer } from "../../src/segment/buffer.ts";

function waitingBuffer(load: Promise<Load<undefined>>): SegmentBuffer<undefined> {
  const options = {
    min: 1,
    max: 10,
    holdForMs: 1_000,
    prefetchShare: 0.1,
    maxWaiters: 10_000,
    ordered: false,
  };
  return new SegmentBuffer("orders", options, {
    load: () => load,
    clock: { now: () => 0 },
    timers: { after: () => () => undefined },
    random: () => 0.5,
  });
}

test("calls that wait may go away in any order, each once and with its own reason", async () => {
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray([...Array(20).keys()]), async (order) => {
      const { promise, resolve } = Promise.withResolvers<Load<undefined>>();
      const buffer = waitingBuffer(promise);
      const callers = Array.from({ length: 20 }, () => new AbortController());
      const calls = callers.map(({ signal }) => buffer.next({ signal }) as Promise<bigint>);
      const outcomes = calls.map((call) => call.catch((error: unknown) => error));
      for (const [gone, at] of order.entries()) {
        callers[at]!.abort(`reason ${at}`);
        const error = (await outcomes[at]) as IdmintError;
        expect([error.reason, error.cause]).toEqual(["CALL_CANCELLED", `reason ${at}`]);
        expect(buffer.waiting).toBe(20 - gone - 1);
      }
      resolve({
        segments: [{ base: 1n, count: 20, increment: 1 }],
        epoch: 1n,
        receipt: undefined,
      });
      const ids = (await Promise.all(outcomes)).filter((outcome) => typeof outcome === "bigint");
      expect(ids).toEqual(Array.from({ length: 20 - order.length }, (_, at) => BigInt(at + 1)));
    }),
    { numRuns: 50 },
  );
});

test("a signal that was aborted is not asked to look for each of its listeners", () => {
  let removals = 0;
  const signal = {
    aborted: false,
    reason: "enough",
    heard: [] as (() => void)[],
    addEventListener(_type: "abort", listener: () => void): void {
      this.heard.push(listener);
    },
    removeEventListener: () => void removals++,
  };
  const told: unknown[] = [];
  const ends = Array.from({ length: 3 }, () =>
    whenCancelled(signal, ({ cause }) => told.push(cause)),
  );
  ends[0]?.();
  expect(removals).toBe(1);
  signal.aborted = true;
  for (const listener of signal.heard.slice(1)) listener();
  for (const end of ends.slice(1)) end?.();
  expect([removals, told]).toEqual([1, ["enough", "enough"]]);
});
