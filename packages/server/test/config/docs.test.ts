import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { configurationDocs } from "../../src/config/docs.ts";

test("docs/configuration.md is what `pnpm generate` makes of the table of options", () => {
  const file = path.resolve(import.meta.dirname, "../../../../docs/configuration.md");
  expect(readFileSync(file, "utf8")).toBe(configurationDocs());
});
