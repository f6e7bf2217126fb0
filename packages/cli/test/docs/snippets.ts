import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { cleanEnv, CLI, untilEnd } from "../spawn.ts";
import type { CommandResult } from "../support.ts";

export const root: string = path.resolve(import.meta.dirname, "../../../..");

/** The code blocks of one language in a chapter of a document, as printed. */
export function snippets(file: string, title: string, language: string): readonly string[] {
  const text = readFileSync(path.join(root, file), "utf8");
  const chapter = text.split(/^#+ /m).find((part) => part.startsWith(`${title}\n`));
  if (chapter === undefined) throw new Error(`${file} has no chapter "${title}"`);
  const fences = [...chapter.matchAll(/^```(\w+)\n([^]*?)^```$/gm)];
  return fences.flatMap(([, found, code]) => (found === language ? [code ?? ""] : []));
}

/** The one code block of a chapter in a language. */
export function snippet(file: string, title: string, language: string): string {
  const [only, ...others] = snippets(file, title, language);
  if (only === undefined || others.length > 0) throw new Error(`${file}: ${title}: not one block`);
  return only;
}

/** Words of a line of shell: separated by spaces, single quotes around what has some. */
export function words(line: string): readonly string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
}

/** Runs lines as `sh` does, in the folder of the clone, with the CLI from source where there is none on the path. */
export function shell(
  lines: string,
  { env = {}, input = "" }: { env?: Readonly<Record<string, string>>; input?: string } = {},
): Promise<CommandResult> {
  const cli = CLI.map((word) => `'${word}'`).join(" ");
  const script = lines
    .replaceAll(/(^|\$\()idmint /gm, `$1${cli} `)
    .replaceAll(/^npx pnpm@10 exec node /gm, `'${process.execPath}' `);
  const child = spawn("sh", ["-ec", script], {
    cwd: root,
    env: { ...cleanEnv(), ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  // A shell that reads nothing may have ended already: then even an empty text cannot be written.
  if (input === "") child.stdin.end();
  else child.stdin.end(input);
  return untilEnd(child);
}
