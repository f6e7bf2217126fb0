import type { Io } from "./io.ts";

/** The subcommands that hints and examples speak of, and how a usage line goes on. */
const MENTION =
  /(?<![\w/.@-])idmint (?=(?:start-dev|serve|migrate|store|ticket|id|tag|worker|node|status|version|help)\b|\[options\])/g;

/** What somebody types to run this command line where it runs: in a clone it is a script, in a package a local binary. */
export function commandName({ env }: Pick<Io, "env">): string {
  // The script of a clone says how it was called.
  const typed = env["IDMINT_COMMAND"];
  if (typed !== undefined && typed !== "") return typed;
  // Started by npx, or by a script of a package that depends on this one: there is no `idmint` on the path.
  return env["npm_lifecycle_event"] === undefined ? "idmint" : "npx idmint";
}

/** A text for people, with every command in it as they have to type it. */
export function asTyped(text: string, io: Pick<Io, "env">): string {
  const name = commandName(io);
  return name === "idmint" ? text : text.replaceAll(MENTION, () => `${name} `);
}
