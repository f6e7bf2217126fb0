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

const TOOLS = {
  etcdctl: { packages: ["etcd-client"], libraries: [] },
  jq: { packages: ["jq"], libraries: ["libjq1", "libonig5"] },
  "redis-cli": { packages: ["redis-tools"], libraries: ["libjemalloc2", "liblzf1"] },
} as const;

export const TOOL_NAMES = ["etcdctl", "jq", "redis-cli"] as const;

/** A program that pages type beside ours; installed at the first call when the machine has none. */
export function toolProgram(name: keyof typeof TOOLS): Program {
  return debianFiles({
    name,
    ...TOOLS[name],
    find: (unpacked) => programOf(unpacked, [name]),
    hint: `no ${name} for the tests: install the package ${TOOLS[name].packages[0]}`,
  });
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
