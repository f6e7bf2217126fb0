import { readFileSync } from "node:fs";
import { invalidField } from "@idmint/core";
import { type Command, Option } from "commander";
import type { Io } from "./io.ts";
import { address, duration } from "./parse.ts";

/** What every command line may say, flags as they were typed. */
interface GlobalFlags {
  readonly json?: boolean;
  readonly address?: string;
  readonly timeout?: string;
  readonly tls?: boolean;
  readonly caFile?: string;
}

/** Where the server is and how to speak with it. */
export interface ConnectionSettings {
  readonly address: string;
  /** For each call, in milliseconds. */
  readonly timeoutMs: number;
  /** undefined: plain text. `caPem` undefined: the certificate authorities that Node trusts. */
  readonly tls: { readonly caPem: Buffer | undefined } | undefined;
}

/** Where a server listens unless told otherwise. */
export const DEFAULT_ADDRESS = "127.0.0.1:7600";

const GLOBAL_GROUP = "Global options:";

/** --json, for every command. */
export function addOutputOptions(command: Command): void {
  command.addOption(
    new Option("--json", "data as JSON on stdout, failures as JSON on stderr").helpGroup(
      GLOBAL_GROUP,
    ),
  );
}

/** How to reach a server, and --json, for a command and its subcommands. Called last, so that help shows them last. */
export function addConnectionOptions(command: Command): void {
  for (const subcommand of command.commands) addConnectionOptions(subcommand);
  addRootOptions(command);
}

/** The same for one command alone: before the command's name they mean what they mean behind it. */
export function addRootOptions(command: Command): void {
  const options = [
    new Option(
      "--address <host:port>",
      `server to call (env IDMINT_ADDRESS; default ${DEFAULT_ADDRESS})`,
    ),
    new Option("--timeout <time>", "longest wait for each call, 1ms to 1h (default 5s)"),
    new Option("--tls", "speak TLS"),
    new Option("--ca-file <file>", "trust these certificate authorities, PEM; means --tls"),
  ];
  for (const option of options) command.addOption(option.helpGroup(GLOBAL_GROUP));
  addOutputOptions(command);
}

/**
 * Flags typed anywhere from the root to this command; the one nearest to the command wins. (Commander's own
 * `optsWithGlobals` lets the farthest win.)
 */
function typedFlags(command: Command): GlobalFlags {
  const chain: Command[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent) chain.unshift(at);
  const flags: Record<string, unknown> = {};
  for (const at of chain) {
    for (const [name, value] of Object.entries(at.opts())) {
      if (at.getOptionValueSource(name) === "cli") flags[name] = value;
    }
  }
  return flags;
}

/** Whether --json was typed. */
export function isJson(command: Command): boolean {
  return typedFlags(command).json === true;
}

/** Flags before environment before defaults; throws INVALID_ARGUMENT with the name that was used. */
export function connectionSettings(command: Command, env: Io["env"]): ConnectionSettings {
  return resolveConnection(typedFlags(command), env, (file) => readFileSync(file));
}

/** The pure half of `connectionSettings`. */
export function resolveConnection(
  flags: GlobalFlags,
  env: Io["env"],
  read: (file: string) => Buffer,
): ConnectionSettings {
  const variable = env["IDMINT_ADDRESS"];
  // An empty variable says nothing.
  const isFromEnv = flags.address === undefined && variable !== undefined && variable !== "";
  const parseAddress = address(isFromEnv ? "IDMINT_ADDRESS" : "--address");
  return {
    address: parseAddress((isFromEnv ? variable : flags.address) ?? DEFAULT_ADDRESS),
    timeoutMs: duration("--timeout", { minMs: 1, maxMs: 3_600_000 })(flags.timeout ?? "5s"),
    tls: tlsOf(flags, read),
  };
}

function tlsOf(flags: GlobalFlags, read: (file: string) => Buffer): ConnectionSettings["tls"] {
  if (flags.caFile !== undefined) return { caPem: readPem(flags.caFile, read) };
  return flags.tls === true ? { caPem: undefined } : undefined;
}

function readPem(file: string, read: (file: string) => Buffer): Buffer {
  let pem: Buffer;
  try {
    pem = read(file);
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : "unreadable";
    throw invalidField("--ca-file", `names a file that cannot be read (${why}): ${file}`);
  }
  if (pem.includes("-----BEGIN CERTIFICATE-----")) return pem;
  throw invalidField("--ca-file", `names a file without a PEM certificate: ${file}`);
}
