// A short run of the nemesis on the smallest site, and that its judges notice what is planted into its histories.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { judge } from "../../nemesis/judge/judge.ts";
import { PLANTS } from "../../nemesis/judge/plant.ts";
import { notices } from "../../nemesis/nemesis.ts";
import { isClean, print } from "../../nemesis/report.ts";
import { run } from "../../nemesis/run.ts";
import { sqliteStage } from "../../nemesis/sites/sqlite.ts";
import { seededRandom } from "../fleet-support.ts";

const MINUTES = 0.2;

test(
  "two servers on one SQLite file keep their promises, and each class of planted fault is noticed",
  { timeout: 180_000 },
  async () => {
    const out = mkdtempSync(path.join(tmpdir(), "idmint-nemesis-"));
    onTestFinished(() => rmSync(out, { recursive: true, force: true }));
    const seed = String(seededRandom().seed);
    const lines: string[] = [];
    await using ran = await run({
      seed,
      minutes: MINUTES,
      out,
      stages: [async () => sqliteStage()],
      print: (line) => lines.push(line),
    });
    const verdicts = [await judge(ran.cases[0]!)];
    print({ seed, minutes: MINUTES, windows: ran.journal.windows, verdicts });
    expect(verdicts.map(({ violations }) => violations)).toEqual([
      { repeats: [], order: [], aboveFloor: [], ledger: [], refusals: [] },
    ]);
    expect(isClean(verdicts)).toBe(true);
    expect(verdicts[0]?.calls).toBeGreaterThan(1_000);
    expect(lines.length).toBeGreaterThan(5);
    for (const name of Object.keys(PLANTS))
      expect([name, await notices(ran, name)]).toEqual([name, true]);
  },
);
