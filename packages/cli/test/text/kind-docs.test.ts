import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { kindDocs } from "../../src/text/kind-docs.ts";

test("docs/kinds.md is what `pnpm generate` makes of the kinds' tables", () => {
  const file = path.resolve(import.meta.dirname, "../../../../docs/kinds.md");
  expect(readFileSync(file, "utf8")).toBe(kindDocs());
});
