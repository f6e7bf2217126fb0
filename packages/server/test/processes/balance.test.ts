import { expect, test } from "vitest";
import { type Candidate, pick } from "../../src/processes/balance.ts";

function process(open: number, more: Partial<Candidate> = {}): Candidate {
  return { open, isReady: true, isSilent: false, ...more };
}

test("connections come out even, however many there are", () => {
  for (const processes of [2, 3, 5]) {
    const open = Array.from({ length: processes }, () => 0);
    let last = -1;
    for (let connection = 1; connection <= 32; connection++) {
      last =
        pick(
          open.map((count) => process(count)),
          last,
        ) ?? -1;
      open[last]!++;
      expect(Math.max(...open) - Math.min(...open)).toBeLessThanOrEqual(1);
    }
  }
});

test("a process that lost its connections gets the next ones", () => {
  expect(pick([process(16), process(3), process(16)], 1)).toBe(1);
});

test("of processes with as many connections the next one after the last gets it", () => {
  const candidates = [process(4), process(4), process(4)];
  expect([-1, 0, 1, 2].map((last) => pick(candidates, last))).toEqual([0, 1, 2, 0]);
});

test("a process that is not ready is passed over, one that is silent even more, and any is better than none", () => {
  const unready = process(0, { isReady: false });
  const silent = process(0, { isSilent: true });
  expect(pick([unready, process(100)], -1)).toBe(1);
  expect(pick([silent, unready], -1)).toBe(1);
  expect(pick([silent, undefined], -1)).toBe(0);
  expect(pick([undefined, undefined], -1)).toBeUndefined();
});
