// The pages docs/go.md, docs/java.md and docs/python.md: code that lies in packages/testkit/polyglot, and shell lines.
import { readFileSync } from "node:fs";
import path from "node:path";

export const LANGUAGES = ["go", "java", "python"] as const;

export type Language = (typeof LANGUAGES)[number];

const root = path.resolve(import.meta.dirname, "../../../..");
/** The name of a file on a line of its own, and the block that has its text. */
const FILE = /^`([\w./-]+)`:\n\n```(\w+)\n([^]*?)^```$/gm;

export function pageOf(language: Language): string {
  return path.join(root, "docs", `${language}.md`);
}

/** Where the callers of a language lie. */
export function callersOf(language: Language): string {
  return path.join(root, "packages/testkit/polyglot", language);
}

/** The files that a page shows, by their names. */
export function filesOf(page: string): ReadonlyMap<string, string> {
  return new Map([...page.matchAll(FILE)].map(([, name = "", , text = ""]) => [name, text]));
}

/** The page with the present text of each file. */
export function refreshed(language: Language): string {
  const page = readFileSync(pageOf(language), "utf8");
  return page.replace(FILE, (_, name: string, kind: string) => {
    const text = readFileSync(path.join(callersOf(language), name), "utf8");
    return `\`${name}\`:\n\n\`\`\`${kind}\n${text}\`\`\``;
  });
}

/** The shell lines of a chapter. */
export function linesOf(page: string, chapter: string): string {
  const text = page.split(/^## /m).find((part) => part.startsWith(`${chapter}\n`)) ?? "";
  const lines = /^```sh\n([^]*?)^```$/m.exec(text)?.[1];
  if (lines === undefined) throw new Error(`no shell lines in chapter "${chapter}"`);
  return lines;
}
