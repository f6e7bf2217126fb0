import type { Config, ConfigFlag, ConfigSources } from "@idmint/server";
import { type Command, Option } from "commander";
import type { Io } from "../process/io.ts";

/** Variables with the server's prefix that only the command line reads. */
const OWN_VARIABLES = [
  "IDMINT_ADDRESS",
  "IDMINT_CA_FILE",
  "IDMINT_COMMAND",
  "IDMINT_CONFIG_HOME",
  "IDMINT_CONTEXT",
  "IDMINT_IMPORT_PASSWORD",
  "IDMINT_TOKEN",
];

/** Flags of the store: where it is and how to reach it. All others are about serving. */
const STORE_FLAGS = /^(?:config|store-.*|allow-unsafe-store)$/;

/** The flags of what a server keeps of its store. */
const MEMORY_FLAGS = /^(?:config|snowflake-cache-file)$/;

/** The same for ticket databases. */
const TICKET_FLAGS = /^(?:config|ticket-.*|allow-unsafe-store)$/;

const WANTED: Readonly<Record<"memory" | "store" | "ticket", RegExp>> = {
  memory: MEMORY_FLAGS,
  store: STORE_FLAGS,
  ticket: TICKET_FLAGS,
};

/** The flags of the server's table that each command has. */
const ADDED = new WeakMap<Command, readonly ConfigFlag[]>();

/**
 * Adds flags from the server's table of options. The server package is imported only for the commands that need it:
 * it would double the start-up time of a command like `id next`.
 */
export async function addConfigFlags(
  command: Command,
  which: "all" | keyof typeof WANTED,
): Promise<void> {
  const { configFlags } = await import("@idmint/server");
  const flags = configFlags().filter(({ name }) => which === "all" || WANTED[which].test(name));
  for (const { flags: usage, description } of flags)
    command.addOption(new Option(usage, description));
  ADDED.set(command, flags);
}

/** The sources of the configuration: this command's flags, and the environment. */
export function configSources(command: Command, io: Io): ConfigSources {
  const flags: Record<string, string | boolean> = {};
  for (const { flags: usage, name } of ADDED.get(command) ?? []) {
    const attribute = new Option(usage).attributeName();
    if (command.getOptionValueSource(attribute) !== "cli") continue;
    flags[name] = command.getOptionValue(attribute) as string | boolean;
  }
  return { env: io.env, flags, otherEnv: OWN_VARIABLES };
}

/** Loads the server's configuration from this command's flags, the environment, the file and the defaults. */
export async function loadServerConfig(command: Command, io: Io): Promise<Config> {
  const { loadConfig } = await import("@idmint/server");
  return loadConfig(configSources(command, io));
}
