// The packed SDK as users have it: bundled into one file, and loaded by require() from CommonJS.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, expect, inject, onTestFinished, test } from "vitest";
import { startFleet } from "../fake-fleet.ts";

const execute = promisify(execFile);
const packages = path.resolve(import.meta.dirname, "../../..");
const home = mkdtempSync(path.join(tmpdir(), "idmint-bundle-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

// What packages/testkit/test/pack/build.setup.ts provides, as far as this file needs it.
declare module "vitest" {
  interface ProvidedContext {
    readonly tarballs: readonly { readonly folder: string; readonly file: string }[];
  }
}

interface Manifest {
  readonly name: string;
  readonly dependencies: Record<string, string>;
}

/** The packed packages in a node_modules folder; third-party ones come from the workspace. */
async function install(): Promise<void> {
  for (const { folder, file } of inject("tarballs")) {
    if (!["proto", "core", "client"].includes(folder)) continue;
    const source = path.join(packages, folder);
    const text = readFileSync(path.join(source, "package.json"), "utf8");
    const { name, dependencies = {} } = JSON.parse(text) as Partial<Manifest>;
    const target = path.join(home, "node_modules", name ?? "");
    mkdirSync(target, { recursive: true });
    await execute("tar", ["-xzf", file, "--strip-components=1", "-C", target]);
    for (const dependency of Object.keys(dependencies)) {
      if (dependency.startsWith("@idmint/")) continue;
      const link = path.join(home, "node_modules", dependency);
      mkdirSync(path.dirname(link), { recursive: true });
      rmSync(link, { force: true });
      symlinkSync(path.join(source, "node_modules", dependency), link);
    }
  }
}

const installed = install();

const body = `
  const client = createIdClient({ address: process.argv[2] });
  client.tag("orders").next()
    .then(async (id) => { await client.close(); console.log(String(id)); });
`;

async function address(): Promise<string> {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  return servers[0]!.address;
}

test("require() from CommonJS mints an id", async () => {
  await installed;
  const file = path.join(home, "required.cjs");
  writeFileSync(file, `const { createIdClient } = require("@idmint/client");${body}`);
  const { stdout, stderr } = await execute(process.execPath, [file, await address()]);
  expect([stdout, stderr]).toEqual(["1\n", ""]);
});

test("on an older Node.js an import says in one line which one is needed", async () => {
  await installed;
  const versions = '{ ...process.versions, node: "20.20.2" }';
  const pretend = `Object.defineProperty(process, "versions", { value: ${versions} })`;
  for (const [name, load] of [
    ["old.mjs", 'import("@idmint/client").catch((error) => console.log(error.stack))'],
    ["old.cjs", 'try { require("@idmint/client") } catch (error) { console.log(error.stack) }'],
  ] as const) {
    const file = path.join(home, name);
    writeFileSync(file, load);
    const args = ["--import", `data:text/javascript,${pretend}`, file];
    const { stdout } = await execute(process.execPath, args);
    expect(stdout).toBe("@idmint/client needs Node.js 22.13 or newer; this is Node.js 20.20.2\n");
  }
});

for (const format of ["cjs", "esm"] as const) {
  test(`bundled into one ${format} file, it mints an id without anything beside it`, async () => {
    await installed;
    const entry = path.join(home, `entry-${format}.mjs`);
    writeFileSync(entry, `import { createIdClient } from "@idmint/client";${body}`);
    const alone = mkdtempSync(path.join(tmpdir(), "idmint-alone-"));
    onTestFinished(() => rmSync(alone, { recursive: true, force: true }));
    const outfile = path.join(alone, format === "cjs" ? "bundle.cjs" : "bundle.mjs");
    // In ESM bundles esbuild leaves require() of Node's own modules in CommonJS dependencies to the platform.
    const js =
      'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';
    const { warnings } = await build({
      entryPoints: [entry],
      bundle: true,
      platform: "node",
      target: "node22",
      format,
      outfile,
      logLevel: "silent",
      ...(format === "esm" ? { banner: { js } } : {}),
    });
    expect(warnings).toEqual([]);
    const { stdout, stderr } = await execute(process.execPath, [outfile, await address()], {
      cwd: alone,
    });
    expect([stdout, stderr]).toEqual(["1\n", ""]);
  });
}

test("what only servers run is in no bundle", async () => {
  await installed;
  const entry = path.join(home, "inputs.mjs");
  const faces = ["", "/testing", "/unguessable", "/uuid"];
  writeFileSync(entry, faces.map((face) => `export * from "@idmint/client${face}";`).join("\n"));
  const { metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    treeShaking: false,
    platform: "node",
    format: "esm",
    metafile: true,
    write: false,
    logLevel: "silent",
  });
  const ofCore = Object.keys(metafile.inputs).filter((name) => name.includes("@idmint/core/"));
  expect(ofCore).not.toEqual([]);
  expect(ofCore.filter((name) => /\/dist\/(?:kinds|server)\//.test(name))).toEqual([]);
  // Adapters are loaded by whoever asks for one.
  const all = Object.keys(metafile.inputs);
  expect(all.filter((name) => name.includes("@idmint/client/dist/adapters/"))).toEqual([]);
});

test("while a V8 startup snapshot is built no client is made", async () => {
  await installed;
  const entry = path.join(home, "snapshot.mjs");
  writeFileSync(
    entry,
    `import { createIdClient } from "@idmint/client";
     try { createIdClient({ address: "127.0.0.1:1" }); console.log("made"); }
     catch (error) { console.log(error.reason); }
     // Node itself cannot finish a snapshot with its http2 module in it.
     process.exit();`,
  );
  const outfile = path.join(home, "snapshot.cjs");
  await build({
    entryPoints: [entry],
    bundle: true,
    platform: "node",
    format: "cjs",
    outfile,
    logLevel: "silent",
  });
  const blob = path.join(home, "snapshot.blob");
  const { stdout } = await execute(process.execPath, [
    "--snapshot-blob",
    blob,
    "--build-snapshot",
    outfile,
  ]);
  expect(stdout).toBe("CLIENT_CLOSED\n");
});
