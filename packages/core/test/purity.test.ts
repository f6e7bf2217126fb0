import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { parseSync } from "oxc-parser";
import { expect, test } from "vitest";

const folder = path.resolve(import.meta.dirname, "..");

// Time, randomness, I/O and ways to reach them. All of these are passed in by the caller.
const forbidden = new Set([
  "AbortController",
  "AbortSignal",
  "Atomics",
  "Buffer",
  "Date",
  "Function",
  "SharedArrayBuffer",
  "Temporal",
  "WebAssembly",
  "WebSocket",
  "clearImmediate",
  "clearInterval",
  "clearTimeout",
  "console",
  "crypto",
  "eval",
  "fetch",
  "global",
  "globalThis",
  "module",
  "performance",
  "process",
  "queueMicrotask",
  "require",
  "self",
  "setImmediate",
  "setInterval",
  "setTimeout",
  "structuredClone",
  "window",
]);

interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

/** What a file imports and which forbidden names it uses; empty when it is pure. */
function impurities(file: string, text: string): string[] {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) return errors.map((error) => error.message);
  const found: string[] = [];
  visit(program as unknown as Node, found);
  return found;
}

function visit(node: Node, found: string[]): void {
  judge(node, found);
  for (const [field, value] of Object.entries(node)) {
    if (isName(node, field)) continue;
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (isNode(child)) visit(child, found);
    }
  }
}

/** `x` in `a.x`, `{ x: 1 }` or `class { x }` is a name, not the global. */
function isName(node: Node, field: string): boolean {
  if (node["computed"] === true) return false;
  if (node.type === "Property" && node["shorthand"] === true) return false;
  return (node.type === "MemberExpression" && field === "property") || field === "key";
}

function judge(node: Node, found: string[]): void {
  switch (node.type) {
    case "ImportDeclaration":
    case "ExportNamedDeclaration":
    case "ExportAllDeclaration":
    case "ImportExpression":
    case "TSImportType":
      judgeSource(node["source"], found);
      break;
    case "TSExternalModuleReference":
    case "MetaProperty":
      found.push(node.type);
      break;
    case "Identifier":
      if (forbidden.has(node["name"] as string)) found.push(node["name"] as string);
      break;
    case "MemberExpression":
      if (isMathRandom(node)) found.push("Math.random");
      break;
    case "VariableDeclarator":
      if (isIdentifier(node["init"], "Math")) found.push("an alias of Math");
      break;
  }
}

function judgeSource(source: unknown, found: string[]): void {
  if (source === null || source === undefined) return;
  const value = isNode(source) ? source["value"] : source;
  if (typeof value !== "string") found.push("an import whose name is computed");
  else if (!/^\.{1,2}\//.test(value)) found.push(`import of ${value}`);
}

function isMathRandom(node: Node): boolean {
  if (!isIdentifier(node["object"], "Math")) return false;
  const property = node["property"] as Node;
  if (node["computed"] !== true) return isIdentifier(property, "random");
  return property["value"] !== undefined ? property["value"] === "random" : true;
}

function isIdentifier(value: unknown, name: string): boolean {
  return isNode(value) && value.type === "Identifier" && value["name"] === name;
}

test("core depends on no package", () => {
  const manifest = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as object;
  const kinds = Object.keys(manifest).filter((key) => /dependencies/i.test(key));
  expect(kinds).toEqual([]);
});

test("core imports nothing but its own files, and touches no clock, randomness or I/O", () => {
  const source = path.join(folder, "src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" });
  const sources = files.filter((file) => /\.[cm]?[jt]sx?$/.test(file));
  expect(sources.length).toBeGreaterThan(0);
  const report = sources.flatMap((file) =>
    impurities(file, readFileSync(path.join(source, file), "utf8")).map(
      (what) => `${file}: ${what}`,
    ),
  );
  expect(report).toEqual([]);
});

test("core's relative imports stay in its source folder", () => {
  const source = path.join(folder, "src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" });
  const outside = files
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => {
      const text = readFileSync(path.join(source, file), "utf8");
      const { staticImports } = parseSync(file, text).module;
      return staticImports
        .map((entry) => path.resolve(source, path.dirname(file), entry.moduleRequest.value))
        .filter((target) => !target.startsWith(source + path.sep));
    });
  expect(outside).toEqual([]);
});

// The check itself is checked: each of these must be found.
test.each([
  ['import "node:fs"', "import of node:fs"],
  ['import type { A } from "node:timers/promises"', "import of node:timers/promises"],
  ['export { a } from "fs"', "import of fs"],
  ['export * from "pkg"', "import of pkg"],
  ['const a = await import("node:net")', "import of node:net"],
  ["const a = await import(name)", "an import whose name is computed"],
  ['type A = import("node:fs").Stats', "import of node:fs"],
  ['import fs = require("fs")', "TSExternalModuleReference"],
  ['const fs = require("fs")', "require"],
  ["const t = Date.now()", "Date"],
  ["const t = { Date }", "Date"],
  ["const t = new Date()", "Date"],
  ["let t: Date", "Date"],
  ["setTimeout(f, 1)", "setTimeout"],
  ["a[setTimeout](f)", "setTimeout"],
  ["Math.random()", "Math.random"],
  ['Math["random"]()', "Math.random"],
  ["const { random } = Math", "an alias of Math"],
  ["globalThis.x", "globalThis"],
  ["process.env", "process"],
  ["const u = import.meta.url", "MetaProperty"],
  ["a?.b ?? performance.now()", "performance"],
])("impure: %s", (text, what) => {
  expect(impurities("a.ts", text)).toContain(what);
});

test.each([
  "clock.performance()",
  "const a = { process: 1, setTimeout() {} }",
  "class A { fetch() { return this.process } }",
  'import { a } from "./a.ts"; export { b } from "../b.ts"',
  "Math.max(1, 2)",
])("pure: %s", (text) => {
  expect(impurities("a.ts", text)).toEqual([]);
});
