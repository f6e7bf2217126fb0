// A build of another release: the same source, with another version, and maybe one more step of PostgreSQL's schema.
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";

const repository = path.resolve(import.meta.dirname, "../../../..");
/** What a command line consists of. */
const PACKAGES = ["cli", "coordination", "core", "proto", "server"];
const STEPS = "packages/server/src/store/postgres/migrations/index.ts";

/** A step of the schema, as the newer release has it. */
export interface NewerStep {
  readonly name: string;
  readonly sql: string;
  /** The oldest schema whose servers may go on. */
  readonly worksFrom: number;
}

/** Makes the build in a folder that does not exist yet; answers the entry of its command line. */
export function newerBuild(folder: string, version: string, step?: NewerStep): string {
  mkdirSync(folder);
  for (const name of PACKAGES) {
    for (const part of ["src", "node_modules", "package.json"]) {
      const from = path.join(repository, "packages", name, part);
      if (!existsSync(from)) continue;
      const to = path.join(folder, "packages", name, part);
      // Links between packages are relative, so those of the copy lead to the copy.
      cpSync(from, to, { recursive: true, verbatimSymlinks: true });
    }
  }
  symlinkSync(path.join(repository, "node_modules"), path.join(folder, "node_modules"));
  change(path.join(folder, "packages/cli/package.json"), /"version": "[^"]*"/u, () => {
    return `"version": "${version}"`;
  });
  if (step !== undefined) {
    change(path.join(folder, STEPS), /= \[(.*)\];/u, (_, known) => {
      const number = known.split(",").length + 1;
      return `= [${known}, ${JSON.stringify({ number, ...step })}];`;
    });
  }
  return path.join(folder, "packages/cli/src/main.ts");
}

function change(file: string, find: RegExp, by: (whole: string, part: string) => string): void {
  const text = readFileSync(file, "utf8");
  if (!find.test(text)) throw new Error(`${file} has no ${String(find)}`);
  writeFileSync(file, text.replace(find, by));
}
