import { debianFiles, type Program, programOf } from "./debian.ts";

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
