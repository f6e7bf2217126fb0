import type { Io } from "./io.ts";

/**
 * Mentions of this command in hints and examples: its name, followed by a subcommand or by what a usage line goes on
 * with.
 */
const MENTION =
  /(?<![\w/.@-])idmint (?=(?:start-dev|serve|migrate|store|token|config|doctor|ticket|id|tag|worker|node|audit|context|stop-issuing|resume-issuing|verify|bench|watch|figures|health|status|version|completion|help)\b|\[options\])/g;

/**
 * The command that a person types to run this program where it runs: in a clone a script, in a package a local binary.
 */
export function commandName({ env }: Pick<Io, "env">): string {
  // The script of a clone says how it was called.
  const typed = env["IDMINT_COMMAND"];
  if (typed !== undefined && typed !== "") return typed;
  // It was started by npx, or by a script of a package that depends on this one, so there is no `idmint` on the path.
  return env["npm_lifecycle_event"] === undefined ? "idmint" : "npx idmint";
}

/** A text for people, in which every command reads as they have to type it. */
export function asTyped(text: string, io: Pick<Io, "env">): string {
  const name = commandName(io);
  return name === "idmint" ? text : text.replaceAll(MENTION, () => `${name} `);
}
