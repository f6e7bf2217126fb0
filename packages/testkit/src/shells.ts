import { existsSync } from "node:fs";
import path from "node:path";
import { debianFiles, type Program, programOf } from "./debian.ts";
import { prepared } from "./prepared.ts";

/** A shell to type into; installed at the first call when the machine has none. */
export function shellProgram(name: "bash" | "fish" | "zsh"): Program {
  return debianFiles({
    name,
    packages: [name],
    libraries: name === "fish" ? ["fish-common", "libpcre2-32-0"] : [],
    // zsh finds its modules only where it was built for, so an unpacked one is of no use.
    find: (unpacked) => programOf(name === "zsh" ? "/nowhere" : unpacked, [name]),
    hint: `no ${name} for the tests: install the package ${name}`,
  });
}

/** Folder of a program that the machine has, or that is installed at the first call. */
export function programFolder(name: string): string {
  const find = (unpacked: string): Program | undefined => programOf(unpacked, [name]);
  const hint = `no ${name} for the tests: install the package ${name}`;
  return path.dirname(debianFiles({ name, packages: [name], find, hint }).command);
}

/** The oldest Node.js that the packages take; fetched by npm at the first call. */
export function oldNode(): string {
  const file = "node_modules/node/bin/node";
  const folder = prepared({
    name: "node-22.13",
    isThere: (place) => existsSync(path.join(place, file)),
    script: "npm install --silent --no-audit --no-fund --prefix . node@22.13.0",
    hint: "no Node.js 22.13.0 for the tests: let npm reach its registry",
  });
  return path.join(folder, file);
}
