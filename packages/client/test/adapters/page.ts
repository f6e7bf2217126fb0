// The pages of docs/adapters as projects: what they say to install, their files, their commands, and what they print.
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const client = path.resolve(import.meta.dirname, "../..");
const root = path.resolve(client, "../..");

export type Adapter = "drizzle" | "fastify" | "nestjs" | "prisma" | "typeorm";
export const ADAPTERS: readonly Adapter[] = ["drizzle", "fastify", "nestjs", "prisma", "typeorm"];

export interface Page {
  readonly adapter: Adapter;
  /** Text by name. */
  readonly files: ReadonlyMap<string, string>;
  /** What `npm install` is told to install. */
  readonly packages: readonly string[];
  /** What is typed besides. */
  readonly commands: readonly string[];
  readonly sql: readonly string[];
  /** What the program prints. */
  readonly printed: string;
}

/** A file's name stands in the first line of its block. */
const NAMED = /^(?:\/\/|#) ([\w./-]+\.\w+)\n/;

export function readPage(adapter: Adapter): Page {
  const text = readFileSync(path.join(root, "docs/adapters", `${adapter}.md`), "utf8");
  const blocks = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(
    ([, language = "", code = ""]) => ({
      language,
      code,
      name: NAMED.exec(code)?.[1],
    }),
  );
  const of = (language: string): readonly string[] =>
    blocks
      .filter((one) => one.language === language && one.name === undefined)
      .map(({ code }) => code);
  const lines = of("sh").flatMap((code) => code.trim().split("\n"));
  const installs = lines.filter((line) => line.startsWith("npm install "));
  return {
    adapter,
    files: new Map(blocks.flatMap(({ name, code }) => (name === undefined ? [] : [[name, code]]))),
    packages: installs.flatMap((line) =>
      line
        .split(" ")
        .slice(2)
        .filter((word) => !word.startsWith("--")),
    ),
    commands: lines.filter((line) => !installs.includes(line)),
    sql: of("sql"),
    printed: of("text").join(""),
  };
}

/** The tags that a page makes, with their kind. */
export function tagsOf({ commands }: Page): readonly { name: string; kind: string }[] {
  const made = /^idmint tag create (?<name>\w+)(?: --kind (?<kind>sequence))?$/;
  return commands.flatMap((line) => {
    const { name, kind = "segment" } = made.exec(line)?.groups ?? {};
    return name === undefined ? [] : [{ name, kind }];
  });
}

/** As the pages' readers have it: strict, ES modules, and decorators as TypeORM and NestJS want them. */
export const COMPILER = {
  target: "es2023",
  lib: ["es2023", "esnext.disposable"],
  module: "nodenext",
  strict: true,
  skipLibCheck: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  strictPropertyInitialization: true,
  noEmitOnError: true,
  types: ["node"],
};

/** A folder with the files of a page, below another one. Remove it. */
export function writePage(page: Page, below: string = tmpdir()): string {
  const { adapter, files } = page;
  const folder = mkdtempSync(path.join(below, `idmint-${adapter}-`));
  writeFileSync(
    path.join(folder, "package.json"),
    JSON.stringify({ name: `with-${adapter}`, private: true, type: "module" }),
  );
  for (const [name, text] of files) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}
