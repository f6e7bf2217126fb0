// The pages of docs/adapters with the packed SDK, installed by npm into an empty project, as ES modules and as CommonJS. In
// full with IDMINT_LONG=1: every page, with the newest and the oldest versions that it names.
import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { createTestDatabase } from "@idmint/testkit/postgres";
import { SequenceKind } from "@idmint/proto";
import { expect, inject, onTestFinished, test } from "vitest";
import { RealFleet } from "../real-fleet.ts";
import { type Adapter, ADAPTERS, COMPILER, readPage, tagsOf, writePage } from "./page.ts";

// What packages/testkit/test/pack/build.setup.ts provides, as far as this file needs it.
declare module "vitest" {
  interface ProvidedContext {
    readonly tarballs: readonly { readonly folder: string; readonly file: string }[];
  }
}

const execute = promisify(execFile);
const client = path.resolve(import.meta.dirname, "../..");
const IS_LONG = process.env["IDMINT_LONG"] === "1";
const LONG_MS = 600_000;
const SEQUENCE = { $case: "sequence", value: SequenceKind.create() } as const;

/** The oldest versions that the pages name; the newest ones are those of this package's tests. */
const OLDEST: Readonly<Record<Adapter, Readonly<Record<string, string>>>> = {
  drizzle: { "drizzle-orm": "0.40.0" },
  fastify: { fastify: "5.0.0" },
  nestjs: {
    "@nestjs/common": "11.1.0",
    "@nestjs/core": "11.1.0",
    "@nestjs/platform-fastify": "11.1.0",
    "@nestjs/terminus": "11.0.0",
  },
  prisma: { "@prisma/client": "7.0.0", "@prisma/adapter-pg": "7.0.0", prisma: "7.0.0" },
  typeorm: { typeorm: "1.0.0" },
};
const { devDependencies: NEWEST } = JSON.parse(
  readFileSync(path.join(client, "package.json"), "utf8"),
) as { devDependencies: Readonly<Record<string, string>> };

const all = ADAPTERS.flatMap((adapter) =>
  (["newest", "oldest"] as const).flatMap((versions) =>
    (["module", "commonjs"] as const).map((type) => ({ adapter, versions, type })),
  ),
);
const cases = IS_LONG
  ? all
  : all.filter((one) => Object.values(one).join(" ") === "drizzle newest module");

test.each(cases)(
  "the page of $adapter, $versions versions, as $type",
  async ({ adapter, versions, type }) => {
    const page = readPage(adapter);
    const folder = writePage(page);
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const main = page.files.get("main.ts") ?? "";
    if (type === "commonjs") {
      const manifest = { name: `with-${adapter}`, private: true, type };
      writeFileSync(path.join(folder, "package.json"), JSON.stringify(manifest));
      writeFileSync(path.join(folder, "main.ts"), withoutTopLevelAwait(main));
      const schema = page.files.get("prisma/schema.prisma");
      if (schema !== undefined) {
        const generated = schema.replace("generator client {", '$&\n  moduleFormat = "cjs"');
        writeFileSync(path.join(folder, "prisma/schema.prisma"), generated);
      }
    }
    const compilerOptions = { ...COMPILER, rootDir: "." };
    const files = [...page.files.keys()].filter((name) => name.endsWith(".ts"));
    const tsconfig = { compilerOptions, files };
    writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
    await using fleet = await RealFleet.start(1);
    await using database = await createTestDatabase();
    const [address = ""] = fleet.addresses;
    for (const { name, kind } of tagsOf(page)) {
      await fleet.createTag(name, kind === "sequence" ? { kind: SEQUENCE } : {});
    }
    for (const sql of page.sql) await database.query(sql);
    const env = {
      ...process.env,
      IDMINT_ADDRESS: address,
      DATABASE_URL: database.url,
      // The client needs no engine; the command would fetch one.
      PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true",
      NODE_ENV: "",
    };
    const run = async (command: string, ...args: readonly string[]): Promise<string> => {
      const { stdout } = await execute(command, args, { cwd: folder, env }).catch(
        (error: unknown) => {
          const { stdout: out, stderr } = error as { stdout: string; stderr: string };
          throw new Error(`${command} ${args.join(" ")}\n${out}${stderr}`);
        },
      );
      return stdout;
    };
    const wanted = page.packages.flatMap((name) => wordOf(adapter, versions, name));
    await run("npm", "install", "--no-audit", "--no-fund", "--prefer-offline", ...wanted);
    const isPrisma = page.commands.includes("npx prisma generate");
    if (isPrisma) await run(path.join(folder, "node_modules/.bin/prisma"), "generate");
    await run(path.join(folder, "node_modules/.bin/tsc"), "-p", ".");
    expect(await run(process.execPath, "main.js")).toBe(page.printed);
  },
  LONG_MS,
);

/** What npm is told: the tarballs for the SDK, and a version for everything else. */
function wordOf(adapter: Adapter, versions: "newest" | "oldest", name: string): readonly string[] {
  if (name === "@idmint/client") {
    return inject("tarballs").flatMap(({ folder, file }) =>
      ["client", "core", "proto"].includes(folder) ? [file] : [],
    );
  }
  const old = versions === "oldest" ? OLDEST[adapter][name] : undefined;
  const version = old ?? NEWEST[name] ?? rootVersionOf(name);
  return [`${name}@${version}`];
}

function rootVersionOf(name: string): string {
  const file = path.resolve(client, "../..", "package.json");
  const { devDependencies } = JSON.parse(readFileSync(file, "utf8")) as {
    devDependencies: Readonly<Record<string, string>>;
  };
  // The command goes with the client that it makes.
  return (
    devDependencies[name] ?? (name === "prisma" ? NEWEST["@prisma/client"] : undefined) ?? "latest"
  );
}

/** The same program for CommonJS, which has no await outside of functions. */
function withoutTopLevelAwait(main: string): string {
  const lines = main.split("\n");
  const imports = lines.filter((line) => line.startsWith("import "));
  const rest = lines.filter((line) => !line.startsWith("import "));
  return `${imports.join("\n")}\nvoid (async () => {\n${rest.join("\n")}\n})();\n`;
}
