import { expect, test } from "vitest";
import { type Run, runAll } from "../../sim/run/pool.ts";
import { Tally } from "../../sim/run/tally.ts";

async function tallyOf(run: Omit<Run, "shrinks">): Promise<{ tally: Tally; lines: string[] }> {
  const tally = new Tally();
  const lines: string[] = [];
  await runAll({ ...run, shrinks: true }, (done) => {
    tally.add(done.counted);
    lines.push(...done.lines);
    return true;
  });
  return { tally, lines };
}

test("a history that does not end is a violation, and the others are run", async () => {
  const worker = new URL("./endless-worker.ts", import.meta.url);
  const startedAt = performance.now();
  await tallyOf({ from: 1, histories: 1, jobs: 1, worker });
  const tookSeconds = (performance.now() - startedAt) / 1_000;
  // One that ends does so within this time, since a history with its thread just took less than a third of it.
  const mostSeconds = Math.ceil(2 + 3 * tookSeconds);
  const { tally, lines } = await tallyOf({ from: 1, histories: 3, jobs: 1, worker, mostSeconds });
  expect(lines.filter((line) => line !== "")).toEqual([
    expect.stringMatching(/^seed 2: did not end: no answer in/),
  ]);
  expect(tally).toMatchObject({ histories: 3, bad: 1 });
}, 120_000);
