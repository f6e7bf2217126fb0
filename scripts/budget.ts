// A reporter of vitest: prints how long the files of each project took, beside what .ci/budget gives them.
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Reporter, TestModule } from "vitest/node";

const BUDGET = path.resolve(import.meta.dirname, "../.ci/budget");

/** Seconds by the name of a project. */
function budget(): ReadonlyMap<string, number> {
  const lines = readFileSync(BUDGET, "utf8").split("\n");
  const rows = lines.filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    rows.map((row) => {
      const [name = "", seconds = ""] = row.split(/\s+/u);
      return [name, Number(seconds)];
    }),
  );
}

/** What a file took of a worker, in seconds. */
function secondsOf(file: TestModule): number {
  const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } =
    file.diagnostic();
  const ms =
    environmentSetupDuration + prepareDuration + collectDuration + setupDuration + duration;
  return ms / 1_000;
}

/** Several files run at once, so the sum of all is more than a run takes. */
export default class BudgetReporter implements Reporter {
  onTestRunEnd(files: readonly TestModule[]): void {
    const given = budget();
    const projects = Map.groupBy(files, (file) => file.project.name);
    if (projects.size < 2) return;
    console.log("\n seconds of workers: project, files, seconds, budget");
    for (const [name, its] of projects) {
      const seconds = its.reduce((sum, file) => sum + secondsOf(file), 0);
      const most = given.get(name);
      const note = most !== undefined && seconds > most ? "  over" : "";
      const cells = [name.padEnd(8), its.length, Math.round(seconds), most ?? "none"];
      console.log(`  ${cells.map((cell) => String(cell).padStart(6)).join(" ")}${note}`);
    }
  }
}
