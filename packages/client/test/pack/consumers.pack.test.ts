// The packed SDK in projects of its users: ES modules, CommonJS, TypeScript in each of its ways to find types, and jest.
import { execFile } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, inject, onTestFinished, test } from "vitest";
import { startFleet } from "../fake-fleet.ts";

const execute = promisify(execFile);
const resolve = createRequire(import.meta.url).resolve;
const packages = path.resolve(import.meta.dirname, "../../..");
const home = mkdtempSync(path.join(tmpdir(), "idmint-consumers-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** The packed packages in a node_modules folder; third-party ones come from the workspace. */
async function install(): Promise<void> {
  for (const { folder, file } of inject("tarballs")) {
    if (!["proto", "core", "client"].includes(folder)) continue;
    const target = path.join(home, "node_modules/@idmint", folder);
    mkdirSync(target, { recursive: true });
    await execute("tar", ["-xzf", file, "--strip-components=1", "-C", target]);
    const manifest = JSON.parse(readFileSync(path.join(target, "package.json"), "utf8")) as {
      dependencies?: Record<string, string>;
    };
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      if (name.startsWith("@idmint/")) continue;
      link(name, path.join(packages, folder, "node_modules", name));
    }
  }
  link("@types/node", path.join(packages, "../node_modules/@types/node"));
}

function link(name: string, target: string): void {
  const from = path.join(home, "node_modules", name);
  mkdirSync(path.dirname(from), { recursive: true });
  rmSync(from, { force: true });
  symlinkSync(target, from);
}

const installed = install();

/** A project with these files; answers its folder. */
async function project(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  await installed;
  const folder = path.join(home, name);
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(path.join(folder, file), text);
  return folder;
}

async function address(): Promise<string> {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  return servers[0]!.address;
}

async function outcome(file: string, args: readonly string[], cwd: string): Promise<string> {
  const run: Promise<{ stdout: string; stderr: string }> = execute(
    process.execPath,
    [file, ...args],
    { cwd },
  );
  const { stdout, stderr } = await run.catch((error: unknown) => error as Awaited<typeof run>);
  return `${stdout}${stderr}`;
}

const program = `
async function main(): Promise<void> {
  const options: IdClientOptions = { address: process.argv[2] ?? "" };
  const client: IdClient = createIdClient(options);
  const id: bigint = await client.tag("orders").next();
  const segments: readonly Segment[] = await client.tag("orders").take(5);
  await client.close();
  const error: IdmintError | undefined = refusal();
  const stand: TestIdClient = createTestIdClient();
  const hidden: UnguessableOptions | undefined = undefined;
  console.log(String(id), String(await stand.tag("t").next()), error instanceof IdmintError);
  console.log([...idsOf(segments)].length, decodeUuid(uuid.v7())?.version, typeof hidden);
}
function refusal(): IdmintError | undefined {
  try {
    createIdClient({ address: "http://127.0.0.1:7600" });
    return undefined;
  } catch (error) {
    return error as IdmintError;
  }
}
main();
`;
const names =
  "createIdClient, type IdClient, type IdClientOptions, idsOf, IdmintError, type Segment";
const typescript = `import { ${names} } from "@idmint/client";
import { createTestIdClient, type TestIdClient } from "@idmint/client/testing";
import type { UnguessableOptions } from "@idmint/client/unguessable";
import { decodeUuid, uuid } from "@idmint/client/uuid";
${program}`;

const strict = { strict: true, noEmitOnError: true, types: ["node"] };
const esNext = { target: "es2022", lib: ["es2022", "esnext.disposable"] };
const ways = {
  "node10, CommonJS": { type: "commonjs", module: "commonjs", moduleResolution: "node10" },
  "node16, CommonJS": { type: "commonjs", module: "node16", moduleResolution: "node16" },
  "nodenext, CommonJS": { type: "commonjs", module: "nodenext", moduleResolution: "nodenext" },
  "node16, ES modules": { type: "module", module: "node16", moduleResolution: "node16" },
  "bundler, ES modules": { type: "module", module: "esnext", moduleResolution: "bundler" },
} as const;

for (const [way, { type, ...compiler }] of Object.entries(ways)) {
  test(`TypeScript compiles against it, and the program mints an id (${way})`, async () => {
    // Our own types are checked too where they are hardest to find; it takes long.
    const skipLibCheck = !["node10", "node16"].includes(compiler.moduleResolution);
    const compilerOptions = { ...strict, skipLibCheck, ...esNext, ...compiler };
    const folder = await project(way.replaceAll(/\W+/g, "-"), {
      "package.json": JSON.stringify({ name: "project", type }),
      "tsconfig.json": JSON.stringify({ compilerOptions, files: ["main.ts"] }),
      "main.ts": typescript,
    });
    expect(await outcome(resolve("typescript5/bin/tsc"), ["-p", "."], folder)).toBe("");
    expect(await outcome("main.js", [await address()], folder)).toBe("1 1 true\n5 7 undefined\n");
  });
}

test("import and require() share one copy of everything", async () => {
  const folder = await project("both", {
    "main.mjs": `import * as imported from "@idmint/client";
      import * as testing from "@idmint/client/testing";
      import { createRequire } from "node:module";
      const require = createRequire(import.meta.url);
      const required = require("@idmint/client");
      for (const [name, value] of Object.entries(imported)) console.log(name, required[name] === value);
      console.log(require("@idmint/client/testing").createTestIdClient === testing.createTestIdClient);
      try { testing.createTestIdClient().tag(""); } catch (error) { console.log(error instanceof required.IdmintError); }`,
  });
  const output = (await outcome("main.mjs", [], folder)).trim().split("\n");
  expect(output.length).toBeGreaterThanOrEqual(6);
  for (const line of output) expect(line).toMatch(/true$/);
});

test("jest runs tests that use it", async () => {
  const folder = await project("jest", {
    "package.json": JSON.stringify({ name: "project" }),
    "ids.test.js": `const { createIdClient, IdmintError } = require("@idmint/client");
      const { createTestIdClient } = require("@idmint/client/testing");
      const { uuid } = require("@idmint/client/uuid");
      test("real ids", async () => {
        const client = createIdClient({ address: process.env.ADDRESS });
        expect(await client.tag("orders").next()).toBe(1n);
        await client.close();
      });
      test("the stand-in, and errors", async () => {
        const tag = createTestIdClient().tag("orders");
        expect(await tag.next()).toBe(1n);
        tag.failWith("SERVER_UNAVAILABLE");
        await expect(tag.next()).rejects.toThrow(IdmintError);
        await expect(tag.next()).rejects.toThrow(Error);
        expect(uuid.v7()).toHaveLength(36);
      });`,
  });
  const run = execute(process.execPath, [resolve("jest/bin/jest"), "--ci"], {
    cwd: folder,
    env: { ...process.env, ADDRESS: await address() },
  });
  const { stderr } = await run.catch((error: unknown) => error as { stderr: string });
  expect(stderr).toContain("Tests:       2 passed, 2 total");
});

test("the CommonJS bundle has what the ES modules have", async () => {
  // Peers of two of them; all tests before this one do without.
  await installed;
  for (const peer of ["@nestjs/common", "@opentelemetry/api"]) {
    link(peer, path.join(packages, "client/node_modules", peer));
  }
  const folder = await project("bundle", {
    "main.mjs": `import { createRequire } from "node:module";
      import { readdirSync } from "node:fs";
      const require = createRequire(import.meta.url);
      const bundle = require("../node_modules/@idmint/client/dist/bundle.cjs");
      for (const name of Object.keys(bundle)) {
        const module = await import("@idmint/client" + (name === "index" ? "" : "/" + name));
        console.log(name, String(Object.keys(module)) === String(Object.keys(bundle[name]).toSorted()));
      }`,
  });
  const dist = path.join(home, "node_modules/@idmint/client/dist");
  const faces = readdirSync(dist, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".d.cts"))
    .map((name) => `${path.basename(name, ".d.cts")} true`);
  const output = (await outcome("main.mjs", [], folder)).trim().split("\n");
  expect(output.toSorted()).toEqual(faces.toSorted());
});
