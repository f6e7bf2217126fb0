import { expect, test } from "vitest";
import { pairOf } from "../../sim/check/meetings.ts";
import { FAULT_KINDS } from "../../sim/fault-kinds.ts";
import { runAll } from "../../sim/run/pool.ts";
import { type Counted, Tally } from "../../sim/run/tally.ts";

function counted(of: Partial<Counted> = {}): Counted {
  return {
    hash: "00000000000000ff",
    calls: 400,
    ids: 900,
    faults: 9,
    servers: 4,
    simulatedMs: 80_000,
    excluded: 0,
    judged: 1,
    methods: new Map(),
    met: new Map(),
    isBad: false,
    ...of,
  };
}

function tallyOf(histories: number, of: Partial<Counted> = {}): Tally {
  const tally = new Tally();
  const one = counted(of);
  for (let at = 0; at < histories; at++) tally.add(one);
  return tally;
}

test.each([{ calls: 299 }, { faults: 4 }, { servers: 2 }, { simulatedMs: 59_000 }])(
  "a run of toys is refused: %o",
  (small) => {
    expect(tallyOf(200).wanting).toEqual([]);
    expect(tallyOf(200, small).wanting).toEqual([expect.stringContaining("toys")]);
  },
);

test("in a long run each fault meets each kind of tag", () => {
  const all = new Map(FAULT_KINDS.map((fault) => [pairOf(fault, "segment"), 1]));
  expect(tallyOf(20_000, { met: all }).wanting).toEqual([]);
  const fewer = new Map(all).set(pairOf("store down", "sequence"), 1);
  expect(tallyOf(20_000, { met: fewer }).wanting).toEqual([expect.stringMatching(/0 times/)]);
});

test("the last line begins with how many histories violated something", () => {
  const tally = tallyOf(3);
  tally.add(counted({ isBad: true }));
  expect(tally.lines(2).at(-1)).toMatch(
    /^histories 4, violations 1, calls 1600, .*hash [0-9a-f]{16}$/,
  );
});

async function lastLineOf(jobs: number): Promise<string | undefined> {
  const tally = new Tally();
  await runAll({ from: 1, histories: 3, jobs, shrinks: false }, ({ counted: one }) => {
    tally.add(one);
    return true;
  });
  return tally.lines(1).at(-1);
}

test("threads find what one thread finds", async () => {
  expect(await lastLineOf(2)).toBe(await lastLineOf(1));
});
