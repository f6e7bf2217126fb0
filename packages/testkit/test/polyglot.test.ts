// The pages of other languages show the very files that the tests compile and run.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { callersOf, filesOf, LANGUAGES, pageOf, refreshed } from "../src/polyglot/pages.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const MAX_LINES = 150;
/** What the tests add, what is empty, and what is made. */
const NOT_SHOWN =
  /^go\.sum$|^(?:load|caller)\/|fakeclock\.go$|FakeClock\.java$|(?:^|\/)(?:(?:Load|Caller)\.java|(?:load|caller)\.py|__init__\.py)$/;
const MADE = /^(?:bin|gen|target|idmint|\.venv|node_modules)\/|__pycache__\//;

describe.each(LANGUAGES)("docs/%s.md", (language) => {
  const page = readFileSync(pageOf(language), "utf8");

  test("shows the callers as they are; `pnpm generate` writes them into it", () => {
    expect(page).toBe(refreshed(language));
  });

  test("shows every file that a user needs", () => {
    const names = readdirSync(callersOf(language), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(callersOf(language), path.join(entry.parentPath, entry.name)))
      .filter((name) => !NOT_SHOWN.test(name) && !MADE.test(name));
    expect([...filesOf(page).keys()].toSorted()).toEqual(names.toSorted());
  });

  test(`has no file of more than ${MAX_LINES} lines`, () => {
    for (const [name, text] of filesOf(page))
      expect(text.trimEnd().split("\n").length, name).toBeLessThanOrEqual(MAX_LINES);
  });
});

test("docs/languages.md has a recipe and a row for each language, in the same order", () => {
  const page = readFileSync(path.join(root, "docs/languages.md"), "utf8");
  const recipes = [...page.matchAll(/^ {2}# (\S+)$/gm)].map(([, language]) => language);
  const table = page.split("|---|---|---|---|\n")[1] ?? "";
  const rows = [...table.matchAll(/^\| ([^|]+) \|/gm)].map(([, language]) => language);
  expect(recipes.length).toBeGreaterThanOrEqual(6);
  expect(rows).toEqual(recipes);
});
