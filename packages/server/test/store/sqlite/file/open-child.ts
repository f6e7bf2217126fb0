// A process that opens a store, after making it where it is told to, and writes how that went to standard output. With
// "nobody" as second argument it is root no more by then.
import { writeSync } from "node:fs";
import type { SqliteConfig } from "../../../../src/store/open-store.ts";
// All of it is loaded before: root may read it wherever this clone lies, others may not.
import { migrate, open } from "../../../../src/store/sqlite/backend.ts";

const NOBODY = 65_534;

const [config = "", as = ""] = process.argv.slice(2);
if (as === "nobody" && process.getuid?.() === 0) {
  process.setgid?.(NOBODY);
  process.setuid?.(NOBODY);
}
try {
  const parsed = JSON.parse(config) as SqliteConfig;
  if (parsed.create === true) migrate(parsed, { dryRun: false });
  const store = await open(parsed);
  await store.close();
  writeSync(1, "open\n");
} catch (error) {
  writeSync(1, `${error instanceof Error ? error.message : String(error)}\n`);
}
