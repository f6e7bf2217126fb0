import { readFileSync } from "node:fs";
import { invalidField } from "@idmint/core";
import { type Command, Option } from "commander";
import type { Io } from "../process/io.ts";
import { address, duration } from "./parse.ts";

/** The flags that every command accepts, as they were typed. */
interface GlobalFlags {
  readonly json?: boolean;
  readonly yes?: boolean;
  readonly address?: string;
  readonly timeout?: string;
  readonly tls?: boolean;
  readonly caFile?: string;
  readonly token?: string;
  readonly tokenFile?: string;
}

/** Where the server is, and how to call it. */
export interface ConnectionSettings {
  readonly address: string;
  /** Longest wait for each call, in milliseconds. */
  readonly timeoutMs: number;
  /** Undefined for plain text. `caPem` is undefined for the certificate authorities that Node trusts. */
  readonly tls: { readonly caPem: Buffer | undefined } | undefined;
  /** What proves who calls; undefined: nothing. */
  readonly token: string | undefined;
}

/** Where a server listens unless told otherwise. */
export const DEFAULT_ADDRESS = "127.0.0.1:7600";

const GLOBAL_GROUP = "Global options:";

/** --json and --yes, which every command accepts. */
export function addOutputOptions(command: Command): void {
  const options = [
    new Option("--json", "print data as JSON on stdout, and failures as JSON on stderr"),
    new Option("--yes", "answer yes when a command asks before it goes on"),
  ];
  for (const option of options) command.addOption(option.helpGroup(GLOBAL_GROUP));
}

/**
 * The options that say how to reach a server, --json and --yes, for a command and its subcommands. Call it last, so that
 * help shows them last.
 */
export function addConnectionOptions(command: Command): void {
  for (const subcommand of command.commands) addConnectionOptions(subcommand);
  addRootOptions(command);
}

/** Adds the same options to one command only. They mean the same before and after the name of a subcommand. */
export function addRootOptions(command: Command): void {
  const options = [
    new Option(
      "--address <host:port>",
      `server to call (env IDMINT_ADDRESS; default ${DEFAULT_ADDRESS})`,
    ),
    new Option("--timeout <time>", "longest wait for each call, 1ms to 1h (default 5s)"),
    new Option("--tls", "use TLS"),
    new Option("--ca-file <file>", "trust these certificate authorities (PEM); implies --tls"),
    new Option("--token-file <file>", "file with the token that proves who calls"),
    new Option(
      "--token <text>",
      "the token itself; other users of this machine can see it, so prefer --token-file or IDMINT_TOKEN",
    ),
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

/** Whether --yes was typed. */
export function isConfirmed(command: Command): boolean {
  return typedFlags(command).yes === true;
}

/** Flags win over the environment, the environment over defaults. Throws INVALID_ARGUMENT that names the source. */
export function connectionSettings(command: Command, env: Io["env"]): ConnectionSettings {
  return resolveConnection(typedFlags(command), env, (file) => readFileSync(file));
}

/** Whether the command or the environment names a server. */
export function namesServer(command: Command, env: Io["env"]): boolean {
  return (typedFlags(command).address ?? env["IDMINT_ADDRESS"] ?? "") !== "";
}

/** The pure half of `connectionSettings`. */
export function resolveConnection(
  flags: GlobalFlags,
  env: Io["env"],
  read: (file: string) => Buffer,
): ConnectionSettings {
  const variable = env["IDMINT_ADDRESS"];
  // An empty variable counts as unset.
  const isFromEnv = flags.address === undefined && variable !== undefined && variable !== "";
  const parseAddress = address(isFromEnv ? "IDMINT_ADDRESS" : "--address");
  const server = parseAddress((isFromEnv ? variable : flags.address) ?? DEFAULT_ADDRESS);
  const tls = tlsOf(flags, read);
  return {
    address: server,
    timeoutMs: duration("--timeout", { minMs: 1, maxMs: 3_600_000 })(flags.timeout ?? "5s"),
    tls,
    token: tokenOf(flags, env, read, tls !== undefined || isOnThisMachine(server)),
  };
}

/** Whether what is sent to host:port stays on this machine. */
export function isOnThisMachine(server: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]):\d+$/.test(server);
}

/** The token, and where it comes from. It is never shown, not even when it is wrong. */
function tokenOf(
  { token, tokenFile }: GlobalFlags,
  env: Io["env"],
  read: (file: string) => Buffer,
  isSafe: boolean,
): string | undefined {
  const source =
    token !== undefined ? "--token" : tokenFile !== undefined ? "--token-file" : "IDMINT_TOKEN";
  const found = token ?? (tokenFile === undefined ? env["IDMINT_TOKEN"] : textOf(tokenFile, read));
  const text = found?.trim() ?? "";
  if (text === "" && source === "IDMINT_TOKEN") return undefined;
  if (!/^[\u0021-\u007e]{1,4096}$/.test(text)) {
    throw invalidField(source, "must be the text of a token, as idmint token create printed it");
  }
  if (isSafe) return text;
  throw invalidField(
    source,
    "would go to another machine in plain text, where others can read it: add --tls or --ca-file",
  );
}

function textOf(file: string, read: (file: string) => Buffer): string {
  try {
    return read(file).toString("utf8");
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : "unreadable";
    throw invalidField("--token-file", `names a file that cannot be read (${why}): ${file}`);
  }
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
