import { readFileSync } from "node:fs";
import path from "node:path";
import { KIND_NAMES, KINDS } from "@idmint/core/kinds";
import { expect, test } from "vitest";
import { idmint } from "./support.ts";
import { root, snippet, words } from "./snippets.ts";

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

test("the command lines of docs/choosing.md run as printed, without a server", async () => {
  const lines = snippet(DOC, "Choosing a kind", "sh").trimEnd().split("\n");
  expect(lines.length).toBe(3);
  for (const line of lines) {
    const [, ...args] = words(line);
    // oxlint-disable-next-line no-await-in-loop
    const { exitCode, out, err } = await idmint(args, { env: { IDMINT_ADDRESS: "127.0.0.1:1" } });
    expect([exitCode, err], line).toEqual([0, expect.stringMatching(/^idmint: dry run/)]);
    expect(out).toContain(args[2]);
  }
});
