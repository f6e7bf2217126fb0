// The packed packages side by side in a node_modules folder, as a user has them.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, inject, test } from "vitest";
import { installPacked, link, runIn } from "./packed.ts";

const home = mkdtempSync(path.join(tmpdir(), "idmint-loading-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const manifests = installPacked(inject("tarballs"), home);
// The one library that an adapter of the SDK loads itself; the others load without theirs.
link("@nestjs/common", path.resolve(import.meta.dirname, "../../../client"), home);

const run = (command: string, ...args: readonly string[]): string => runIn(home, command, ...args);

const entries = manifests.flatMap(({ name, exports }) =>
  Object.keys(exports ?? {})
    .filter((entry) => entry !== "./package.json")
    .map((entry) => path.posix.join(name, entry)),
);

test.each(entries)("%s loads with import and with require(), as the same module", (entry) => {
  const script = `import(${JSON.stringify(entry)}).then((imported) => {
    if (imported !== require(${JSON.stringify(entry)})) throw new Error("two copies");
    console.log(Object.keys(imported).length);
  });`;
  expect(run(process.execPath, "--input-type=commonjs", "--eval", script)).toMatch(/^\d+\n$/);
});
