import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const cli = path.resolve(import.meta.dirname, "..");

/** Starts the command on a Node.js that says to be of this version. */
function startOn(version: string): { code: number | null; output: string } {
  const versions = `{ ...process.versions, node: "${version}" }`;
  const pretend = `Object.defineProperty(process, "versions", { value: ${versions} })`;
  const args = ["-C", "idmint-source", "--import", `data:text/javascript,${pretend}`];
  const main = path.join(cli, "src/main.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [...args, main, "--version"], {
    encoding: "utf8",
  });
  return { code: status, output: stdout + stderr };
}

test("on an older Node.js the command says in one line which one it needs", () => {
  const manifest = readFileSync(path.join(cli, "package.json"), "utf8");
  const { engines } = JSON.parse(manifest) as { engines: { node: string } };
  const oldest = engines.node.replace(">=", "");
  for (const version of ["20.20.2", "22.12.0"]) {
    expect(startOn(version)).toEqual({
      code: 1,
      output: `idmint needs Node.js ${oldest} or newer; this is Node.js ${version}\n`,
    });
  }
  expect(startOn(`${oldest}.0`).code).toBe(0);
});
