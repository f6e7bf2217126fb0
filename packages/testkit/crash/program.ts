import { spawnSync } from "node:child_process";
import path from "node:path";
import type { Change } from "./planted.ts";

const root = path.resolve(import.meta.dirname, "../../..");

/** Entry of a command line whose failpoints are code: bundled of the sources as they are, but for changes. */
export function crashProgram(changes: readonly Change[] = []): string {
  const script = path.join(root, "scripts/crash-program.ts");
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [script, JSON.stringify(changes)],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`no program was bundled: ${stderr}`);
  return path.join(stdout.trim(), "main.js");
}
