// What docs/languages.md has of each language: links to the callers that lie in packages/testkit/polyglot, and shell lines.
import { readFileSync } from "node:fs";
import path from "node:path";

export const LANGUAGES = ["go", "java", "python"] as const;

export type Language = (typeof LANGUAGES)[number];

const root = path.resolve(import.meta.dirname, "../../../..");
/** The page's chapter of a language. */
const CHAPTERS: Readonly<Record<Language, string>> = {
  go: "Go",
  java: "Java",
  python: "Python",
};

export const page: string = readFileSync(path.join(root, "docs/languages.md"), "utf8");

/** Where the callers of a language lie. */
export function callersOf(language: Language): string {
  return path.join(root, "packages/testkit/polyglot", language);
}

/** The names of the files that a user of the language copies, as the page links to them. */
export function filesOf(language: Language): readonly string[] {
  const links = page.matchAll(/\]\(\.\.\/packages\/testkit\/polyglot\/(\w+)\/([\w./-]+)\)/g);
  return [...links].flatMap(([, found, name = ""]) => (found === language ? [name] : []));
}

/** The blocks of shell lines in a chapter. */
export function blocksOf(chapter: string): readonly string[] {
  const text = page.split(/^## /m).find((part) => part.startsWith(`${chapter}\n`)) ?? "";
  const blocks = [...text.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, lines = ""]) => lines);
  if (blocks.length === 0) throw new Error(`no shell lines in chapter "${chapter}"`);
  return blocks;
}

/** The lines that set a language up, and those that run its program. */
export function linesOf(language: Language): readonly [setUp: string, run: string] {
  const [first = "", second = "", ...others] = blocksOf(CHAPTERS[language]);
  if (second === "" || others.length > 0) throw new Error(`${language}: not two blocks of lines`);
  return [first, second];
}
