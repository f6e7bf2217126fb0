// Builds the packages before the pages are run: as they are published, without the sources, on a Node that knows no types. Before
// any test of the run, since a build takes files away for a moment.
import { spawnSync } from "node:child_process";
import path from "node:path";

export default function setup(): void {
  const { status, stderr } = spawnSync(process.execPath, ["scripts/build.ts"], {
    cwd: path.resolve(import.meta.dirname, "../../../../.."),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`no build: ${stderr}`);
}
