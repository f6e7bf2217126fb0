// The page of other languages links to the very files that the tests compile and run.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { callersOf, filesOf, LANGUAGES, linesOf, page } from "../../src/polyglot/pages.ts";

const MAX_LINES = 150;
/** What the tests add, what is empty, and what is made. */
const NOT_SHOWN =
  /^go\.sum$|^(?:load|caller)\/|fakeclock\.go$|FakeClock\.java$|(?:^|\/)(?:(?:Load|Caller)\.java|(?:load|caller|history)\.py|__init__\.py)$/;
const MADE = /^(?:bin|gen|target|idmint|\.venv|node_modules)\/|__pycache__\//;

describe.each(LANGUAGES)("docs/languages.md of %s", (language) => {
  test("has the lines that set it up and run it", () => {
    expect(linesOf(language).join("\n")).toContain("idmint tag create orders\n");
  });

  test("links to every file that a user needs", () => {
    const names = readdirSync(callersOf(language), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(callersOf(language), path.join(entry.parentPath, entry.name)))
      .filter((name) => !NOT_SHOWN.test(name) && !MADE.test(name));
    expect(filesOf(language).toSorted()).toEqual(names.toSorted());
  });

  test(`has no file of more than ${MAX_LINES} lines`, () => {
    for (const name of filesOf(language)) {
      const text = readFileSync(path.join(callersOf(language), name), "utf8");
      expect(text.trimEnd().split("\n").length, name).toBeLessThanOrEqual(MAX_LINES);
    }
  });
});

test("docs/languages.md has a recipe and a row for each language, in the same order", () => {
  const recipes = [...page.matchAll(/^ {2}# (\S+)$/gm)].map(([, language]) => language);
  const table = page.split("|---|---|---|---|\n")[1] ?? "";
  const rows = [...table.matchAll(/^\| ([^|]+) \|/gm)].map(([, language]) => language);
  expect(recipes.length).toBeGreaterThanOrEqual(6);
  expect(rows).toEqual(recipes);
});
