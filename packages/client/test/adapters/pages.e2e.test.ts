// What docs/adapters says to type, typed: each page's project is type-checked, and run against a server and PostgreSQL.
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import ts from "typescript5";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SequenceKind } from "@idmint/proto";
import { createTestDatabase } from "@idmint/testkit/postgres";
import { RealFleet } from "../real-fleet.ts";
import {
  ADAPTERS,
  COMPILER,
  linkPackages,
  type Page,
  readPage,
  tagsOf,
  writePage,
} from "./page.ts";
import { makePrismaClient } from "./prisma-client.ts";

const execute = promisify(execFile);
const root = path.resolve(import.meta.dirname, "../../../..");
const SEQUENCE = { $case: "sequence", value: SequenceKind.create() } as const;

const home = mkdtempSync(path.join(tmpdir(), "idmint-pages-"));
const projects = ADAPTERS.map((adapter) => {
  const page = readPage(adapter);
  const folder = writePage(page, home);
  linkPackages(folder, page.packages);
  return { page, folder };
});
// The servers of the tests are in this process: what takes it long is done before they are there.
beforeAll(async () => {
  for (const { page, folder } of projects) {
    await prepare(page, folder);
    transpile(folder);
  }
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

test("every page compiles with what it says to install", async () => {
  const compilerOptions = {
    ...COMPILER,
    // What the sources of the SDK are written for; its packed form is compiled as printed by pages.pack.test.ts.
    lib: ["es2024", "esnext.disposable"],
    noEmit: true,
    customConditions: ["idmint-source"],
    allowImportingTsExtensions: true,
  };
  // One program, since every one of them would read the sources of the SDK again.
  linkPackages(home, ["@types/node"]);
  const include = projects.map(({ folder }) => `${path.basename(folder)}/*.ts`);
  writeFileSync(path.join(home, "tsconfig.json"), JSON.stringify({ compilerOptions, include }));
  const tsc = path.join(root, "node_modules/.bin/tsc");
  const { stdout } = await execute(tsc, ["-p", home]).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(stdout).toBe("");
});

test.each(projects)("the page of $page.adapter prints what it says", async (project) => {
  const { page, folder } = project;
  await using fleet = await RealFleet.start(1);
  await using database = await createTestDatabase();
  const [address = ""] = fleet.addresses;
  const env = { ...process.env, IDMINT_ADDRESS: address, DATABASE_URL: database.url };
  for (const { name, kind } of tagsOf(page)) {
    await fleet.createTag(name, kind === "sequence" ? { kind: SEQUENCE } : {});
  }
  for (const sql of page.sql) await database.query(sql);
  const run = (file: string) =>
    execute(process.execPath, ["-C", "idmint-source", file], { cwd: folder, env });
  const { stdout, stderr } = await run("main.js");
  expect([stdout, stderr]).toEqual([page.printed, ""]);
  if (page.pieces.length > 0) expect((await run("pieces.js")).stderr).toBe("");
});

/** What a page's commands make beside its files. */
async function prepare(page: Page, folder: string): Promise<void> {
  if (page.adapter !== "prisma") return;
  expect(page.commands).toContain("npx prisma generate");
  await makePrismaClient(path.join(folder, "prisma/schema.prisma"), path.join(folder, "generated"));
}

/** Each file alone, as editors' tools do it: the types were checked above. */
function transpile(folder: string): void {
  const compilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    rewriteRelativeImportExtensions: true,
  };
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts") || name.startsWith("node_modules")) continue;
    const file = path.join(folder, name);
    const { outputText } = ts.transpileModule(readFileSync(file, "utf8"), { compilerOptions });
    writeFileSync(file.replace(/\.ts$/, ".js"), outputText);
  }
}
