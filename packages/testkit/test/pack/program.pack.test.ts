// The program of the package `idmint` as it is published: a bundle. What it finds by its own place (a thread, a child process,
// the console, the docs) or loads only when needed must be there.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseSync } from "oxc-parser";
import { afterAll, expect, inject, onTestFailed, test } from "vitest";
import { Api } from "../../src/fleet/api.ts";
import { Child } from "../../src/fleet/child.ts";
import { installPacked, type Manifest, runIn } from "./packed.ts";

const home = mkdtempSync(path.join(tmpdir(), "idmint-program-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

installPacked(
  inject("tarballs").filter(({ folder }) => folder === "cli"),
  home,
);
const folder = path.join(home, "node_modules/idmint");
const bundle = path.join(folder, "dist/bundle");
const program = path.join(bundle, "main.js");

/** What the modules of the bundle import, by name. */
function imported(): readonly string[] {
  const files = readdirSync(bundle).filter((name) => name.endsWith(".js"));
  const names = files.flatMap((name) => {
    const text = readFileSync(path.join(bundle, name), "utf8");
    const { module } = parseSync(name, text);
    const statics = module.staticImports.map(({ moduleRequest }) => moduleRequest.value);
    const again = module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? []),
    );
    const later = module.dynamicImports.map(({ moduleRequest: { start, end } }) =>
      text.slice(start + 1, end - 1),
    );
    return [...statics, ...again, ...later];
  });
  return [...new Set(names)];
}

test("it has all code of ours, and imports only packages that its own names", () => {
  const manifest = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as Manifest;
  const allowed = new Set(Object.keys(manifest.dependencies ?? {}));
  const packages = imported()
    .filter((name) => !name.startsWith(".") && !name.startsWith("node:"))
    .map((name) => name.split("/", name.startsWith("@") ? 2 : 1).join("/"));
  expect(packages).toEqual(expect.arrayContaining(["commander", "pg"]));
  expect(packages.filter((name) => !allowed.has(name))).toEqual([]);
  expect([...allowed].filter((name) => name.startsWith("@idmint/"))).toEqual([]);
  expect(packages.filter((name) => builtinModules.includes(name))).toEqual([]);
});

test("it runs processes and threads, reads its files, and shows its console and its pages", async () => {
  const config = path.join(home, "idmint.yaml");
  writeFileSync(
    config,
    [
      `store: { url: "sqlite:${path.join(home, "idmint.db")}" }`,
      "grpc: { address: 127.0.0.1:0 }",
      "http: { address: 127.0.0.1:0 }",
      `access: { file: ${path.join(home, "access.yaml")}, anonymous: all }`,
      "processes: 2",
      "",
    ].join("\n"),
  );
  writeFileSync(
    path.join(home, "access.yaml"),
    'principals: { orders: { issue: ["orders.*"] } }\n',
  );
  const server = new Child(program, ["start-dev", "--json", "--config", config], {
    name: "the packed server",
    cwd: home,
  });
  onTestFailed(() => console.log(server.describe()));
  await server.waitForOutput("grpcAddress");
  const { grpcAddress, httpAddress } = JSON.parse(server.stdout) as Record<string, string>;
  using api = new Api(grpcAddress ?? "");
  expect(await api.id("demo")).toBeGreaterThan(0n);

  // A machine that does much else may take longer than the default.
  const where = ["--address", grpcAddress ?? "", "--timeout", "60s"];
  const run = (...args: readonly string[]): string =>
    runIn(home, process.execPath, program, ...args, ...where);
  // A day begins at midnight of its zone, for which the server loads a library.
  run(
    "tag",
    "create",
    "daily",
    "--kind",
    "sequence",
    "--period",
    "day",
    "--time-zone",
    "Asia/Tokyo",
  );
  expect(run("id", "next", "daily")).toMatch(/1\n$/);
  expect(run("status")).toContain("SERVING");

  const page = await fetch(`http://${httpAddress}/console/`);
  expect(await page.text()).toContain("<!doctype html>");
  expect(runIn(home, process.execPath, program, "help", "kinds")).toMatch(/^CHOOSING A KIND\n/);

  server.signal("SIGTERM");
  expect(await server.waitForEnd(30_000)).toEqual({ code: 0, signal: null });
  expect(server.stderr).toMatch(/process=2/);
});
