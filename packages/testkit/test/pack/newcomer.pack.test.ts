// What somebody does first with the published packages, in an empty folder: a server by npx, ids in a shell, the SDK as an
// ES module, as CommonJS and in TypeScript. IDMINT_LONG=1 installs the tarballs by npm, with all that they need from its
// registry; otherwise they are unpacked as npm does it, and third-party packages come from the workspace.
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { installPacked, runIn } from "./packed.ts";

const root = path.resolve(import.meta.dirname, "../../../..");
const home = mkdtempSync(path.join(tmpdir(), "idmint-newcomer-"));
// npm takes a folder above for the project's own unless this one has a manifest.
writeFileSync(path.join(home, "package.json"), '{ "private": true }\n');

/** Whatever configures idmint or npm here is none of a newcomer's. */
const env: Record<string, string> = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(?:IDMINT_|npm_(?!config_))/.test(name)),
  ),
  PATH: `${path.dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
  IDMINT_CONFIG_HOME: path.join(home, "none"),
};

function install(): void {
  const tarballs = inject("tarballs");
  if (process.env["IDMINT_LONG"] === "1") {
    runIn(home, "npm", "install", "--no-audit", "--no-fund", ...tarballs.map(({ file }) => file));
    return;
  }
  installPacked(tarballs, home);
  const manifest = path.join(home, "node_modules/idmint/package.json");
  const { bin } = JSON.parse(readFileSync(manifest, "utf8")) as { bin: Record<string, string> };
  mkdirSync(path.join(home, "node_modules/.bin"));
  for (const [name, file] of Object.entries(bin)) {
    chmodSync(path.join(home, "node_modules/idmint", file), 0o755);
    symlinkSync(path.join("../idmint", file), path.join(home, "node_modules/.bin", name));
  }
}

const NPX = ["npx", "--no-install", "idmint"] as const;
let address = "";
/** Ends the server as Ctrl-C does, and answers what it logged. */
let stop: () => Promise<string>;

beforeAll(async () => {
  install();
  const ports = ["--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0", "--json"];
  const [command, ...args] = NPX;
  // In a group of its own, as a terminal has it: Ctrl-C goes to npx and to the server.
  const server = spawn(command, [...args, "start-dev", ...ports], {
    cwd: home,
    env,
    detached: true,
  });
  let said = "";
  server.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const ended = new Promise<number | null>((resolve) => {
    server.once("close", resolve);
  });
  stop = async () => {
    const isRunning = server.exitCode === null && server.signalCode === null;
    if (isRunning && server.pid !== undefined) process.kill(-server.pid, "SIGINT");
    await ended;
    return said;
  };
  const line = await Promise.race([
    new Promise<string>((resolve) => {
      server.stdout.setEncoding("utf8").once("data", resolve);
    }),
    ended.then((code) => Promise.reject(new Error(`the server ended with ${code}: ${said}`))),
  ]);
  address = (JSON.parse(line) as { grpcAddress: string }).grpcAddress;
});

afterAll(async () => {
  await stop();
  rmSync(home, { recursive: true, force: true });
});

/** What npx runs, without npx, which takes longer than the command. */
const BIN = [path.join(home, "node_modules/.bin/idmint")] as const;

function run([command, ...rest]: typeof NPX | typeof BIN, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, [...rest, ...args], {
    cwd: home,
    env: { ...env, IDMINT_ADDRESS: address },
    encoding: "utf8",
  });
  // npm itself may warn on stderr.
  expect(status, `${args.join(" ")}: ${stderr}`).toBe(0);
  return stdout;
}

test("npx idmint mints ids, explains itself and completes words", () => {
  expect(run(NPX, "id", "next", "demo")).toMatch(/^\d+\n$/);
  // A page of the docs, which the package carries.
  expect(run(BIN, "help", "kinds")).toMatch(/^CHOOSING A KIND\n/);
  expect(run(BIN, "completion", "bash", "--", "id", "next", "de")).toBe("words\ndemo\n");
  const bench = run(BIN, "bench", "--mode", "sdk", "--calls", "1000", "--json");
  expect(JSON.parse(bench)).toMatchObject({ calls: 1_000, repeats: 0 });
});

/** The first program of the SDK's README, as printed but for the port. */
function firstProgram(): string {
  const text = readFileSync(path.join(root, "packages/client/README.md"), "utf8");
  const [, code = ""] = /^```js\n([^]*?)^```$/m.exec(text) ?? [];
  expect(code).toContain("127.0.0.1:7600");
  return code.replaceAll("127.0.0.1:7600", address);
}

const PRINTED = /^\d+n\n\d+\n\d+\n\d+n\n\[\s*\{ base: \d+n, increment: 1, count: \d+ \}/;

test("the first program of the SDK's README runs as printed, as an ES module", () => {
  writeFileSync(path.join(home, "first.mjs"), firstProgram());
  expect(runIn(home, process.execPath, "first.mjs")).toMatch(PRINTED);
});

test("the same program runs as CommonJS", () => {
  const code = firstProgram()
    .replace(/import (\{.*\}) from (".*");/, "const $1 = require($2);")
    .replace("await using client", "const client");
  writeFileSync(
    path.join(home, "first.cjs"),
    `(async () => {\n${code}\nawait client.close();\n})();\n`,
  );
  expect(runIn(home, process.execPath, "first.cjs")).toMatch(PRINTED);
});

test("the same program compiles as TypeScript, strictly, and runs", () => {
  const folder = path.join(home, "typescript");
  mkdirSync(folder);
  writeFileSync(path.join(folder, "package.json"), '{ "type": "module" }\n');
  writeFileSync(path.join(folder, "first.ts"), firstProgram());
  const types = path.join(home, "node_modules/@types");
  if (process.env["IDMINT_LONG"] !== "1") {
    mkdirSync(types, { recursive: true });
    symlinkSync(path.join(root, "node_modules/@types/node"), path.join(types, "node"));
  }
  const options = ["--strict", "--module", "nodenext", "--target", "es2022"];
  const more = ["--lib", "es2022,esnext.disposable", "--types", "node"];
  runIn(folder, path.join(root, "node_modules/.bin/tsc"), ...options, ...more, "first.ts");
  expect(runIn(folder, process.execPath, "first.js")).toMatch(PRINTED);
});

test("Ctrl-C ends the server, which then has given its ids back", async () => {
  expect(await stop()).toMatch(/givenBack\D{1,3}[1-9]/);
});
