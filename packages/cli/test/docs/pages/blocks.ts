// The blocks of code on the pages for users, as printed.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { root } from "../snippets.ts";

export interface Block {
  /** Where it begins: PAGE:LINE. */
  readonly place: string;
  readonly language: string;
  /** Why it is not run, a word of `FRAGMENTS`; undefined: it is run. */
  readonly fragment: string | undefined;
  readonly code: string;
  /** Where it is to be saved: its first line says so. */
  readonly file: string | undefined;
}

/** README, the docs, and the READMEs of packages. CONTRIBUTING's commands are run by whoever runs the tests. */
export function pages(): readonly string[] {
  const docs = readdirSync(path.join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => path.posix.join("docs", name));
  const packages = readdirSync(path.join(root, "packages"))
    .map((name) => `packages/${name}/README.md`)
    .filter((name) => existsSync(path.join(root, name)));
  return [
    "README.md",
    ...docs,
    ...packages.filter((name) => name !== "packages/testkit/README.md"),
  ];
}

const FENCE = /^( *)```(\w*)(?: fragment=(\w+))?(.*)\n([^]*?)^ *```$/gm;
const NAMED = /^(?:\/\/|#) ([\w./-]+\.\w+)\n/;

/** The blocks of a page, in their order. A mark is a word behind the language, which no reader of the page sees. */
export function blocksOf(page: string): readonly Block[] {
  const text = readFileSync(path.join(root, page), "utf8");
  return [...text.matchAll(FENCE)].map((match) => {
    const [, indent = "", language = "", fragment, rest = "", body = ""] = match;
    const place = `${page}:${text.slice(0, match.index).split("\n").length}`;
    if (rest !== "") throw new Error(`${place}: "${rest.trim()}" means nothing`);
    if (language === "") throw new Error(`${place}: of which language?`);
    const code = body.replaceAll(new RegExp(`^${indent}`, "gm"), "");
    const file = language === "sh" ? undefined : NAMED.exec(code)?.[1];
    return { place, language, fragment, code, file };
  });
}
