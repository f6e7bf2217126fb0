import { readFileSync } from "node:fs";
import path from "node:path";
import { KIND_NAMES, KINDS } from "@idmint/core/kinds";
import { expect, test } from "vitest";
import { root } from "./snippets.ts";

const DOC = "docs/choosing.md";

test("docs/choosing.md says of each kind what its table says", () => {
  const text = readFileSync(path.join(root, DOC), "utf8");
  const rows = [...text.matchAll(/^\| `(\w+)` +\|(.*)\|$/gm)].map(([, name, rest]) => ({
    name,
    cells: rest?.split("|").map((cell) => cell.trim()) ?? [],
  }));
  const kinds = rows.filter(({ name }) => KIND_NAMES.some((kind) => kind === name));
  expect(kinds.map(({ name }) => name)).toEqual(KIND_NAMES);
  for (const [at, kind] of KIND_NAMES.entries()) {
    const [orders = "", ids, , wanted = "", excluded = ""] = kinds[at]?.cells ?? [];
    const { orders: allowed, ids: type } = KINDS[kind];
    expect(orders.replaceAll("`", "").split(", ")).toEqual(allowed);
    expect(ids).toBe(type);
    expect(wanted.length * excluded.length, kind).toBeGreaterThan(100);
  }
});
