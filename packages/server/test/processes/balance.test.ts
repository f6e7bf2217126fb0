import { expect, test } from "vitest";
import { type Candidate, pick } from "../../src/processes/balance.ts";

function worker(open: number, more: Partial<Candidate> = {}): Candidate {
  return { open, isReady: true, isSilent: false, ...more };
}

test("connections come out even, however many there are", () => {
  for (const workers of [2, 3, 5]) {
    const open = Array.from({ length: workers }, () => 0);
    let last = -1;
    for (let connection = 1; connection <= 32; connection++) {
      last =
        pick(
          open.map((count) => worker(count)),
          last,
        ) ?? -1;
      open[last]!++;
      expect(Math.max(...open) - Math.min(...open)).toBeLessThanOrEqual(1);
    }
  }
});

test("a worker that lost its connections gets the next ones", () => {
  expect(pick([worker(16), worker(3), worker(16)], 1)).toBe(1);
});

test("of workers with as many connections the next one after the last gets it", () => {
  const candidates = [worker(4), worker(4), worker(4)];
  expect([-1, 0, 1, 2].map((last) => pick(candidates, last))).toEqual([0, 1, 2, 0]);
});

test("a worker that is not ready is passed over, one that is silent even more, and any is better than none", () => {
  const unready = worker(0, { isReady: false });
  const silent = worker(0, { isSilent: true });
  expect(pick([unready, worker(100)], -1)).toBe(1);
  expect(pick([silent, unready], -1)).toBe(1);
  expect(pick([silent, undefined], -1)).toBe(0);
  expect(pick([undefined, undefined], -1)).toBeUndefined();
});
