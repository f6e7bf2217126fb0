// What tests start as processes and threads: files of the bundle that the run made of the sources (scripts/test-program.ts). Who runs
// a test otherwise, as `mutants --generated` does, starts the sources.
import path from "node:path";

const repository = path.resolve(import.meta.dirname, "../../..");

/** What Node is started with for a source file, which scripts/test-program.ts names. */
export function builtOf(file: string): string {
  const { TEST_PROGRAM: folder } = process.env;
  if (folder === undefined) return path.join(repository, file);
  return path.join(folder, `${path.basename(file, ".ts")}.js`);
}

const MAIN = "packages/cli/src/main.ts";

/** Entry of the command line tool. */
export const CLI: string = builtOf(MAIN);
/** The same from source, for tests that look at the modules of a server. */
export const SOURCE_CLI: string = path.join(repository, MAIN);
