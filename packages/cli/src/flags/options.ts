import { readFileSync } from "node:fs";
import { invalidField } from "@idmint/core";
import { type Command, Option } from "commander";
import type { Io } from "../process/io.ts";
import { type Context, contextFor, readContexts } from "./contexts.ts";
import { address, duration } from "./parse.ts";

/** The flags that every command accepts, as they were typed. */
export interface GlobalFlags {
  readonly json?: boolean;
  readonly yes?: boolean;
  readonly address?: string;
  readonly timeout?: string;
  readonly tls?: boolean;
  readonly caFile?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly context?: string;
}

/** Where the server is, and how to call it. */
export interface ConnectionSettings {
  readonly address: string;
  /** Longest wait for each call, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * Undefined for plain text. `caPem` is undefined for the certificate authorities that Node trusts; the others prove who
   * calls.
   */
  readonly tls:
    | {
        readonly caPem: Buffer | undefined;
        readonly certPem?: Buffer | undefined;
        readonly keyPem?: Buffer | undefined;
      }
    | undefined;
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
    new Option(
      "--ca-file <file>",
      "trust these certificate authorities (PEM); implies --tls (env IDMINT_CA_FILE)",
    ),
    new Option(
      "--cert-file <file>",
      "client certificate (PEM) that proves who calls; implies --tls",
    ),
    new Option("--key-file <file>", "its private key (PEM)"),
    new Option("--context <name>", "server out of idmint context list (env IDMINT_CONTEXT)"),
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

/**
 * Flags win over the environment, the environment over the context, and that over defaults. Throws INVALID_ARGUMENT that
 * names the source.
 */
export function connectionSettings(command: Command, env: Io["env"]): ConnectionSettings {
  return settingsOf(typedFlags(command), env);
}

/** The same, for flags that were typed. */
export function settingsOf(flags: GlobalFlags, env: Io["env"]): ConnectionSettings {
  const found = contextFor(flags, env, () => readContexts(env));
  return resolveConnection(flags, env, (file) => readFileSync(file), found);
}

/** What was typed of a connection, and what of it is in effect. */
export function connectionSources(
  command: Command,
  env: Io["env"],
  contextName?: string,
): { readonly typed: GlobalFlags; readonly settled: Settled } {
  const typed = typedFlags(command);
  const flags = contextName === undefined ? typed : { ...typed, context: contextName };
  const found = contextFor(flags, env, () => readContexts(env));
  return { typed, settled: settle(flags, env, found) };
}

/** Whether the command or the environment names a server. */
export function namesServer(command: Command, env: Io["env"]): boolean {
  const { address: typed, context } = typedFlags(command);
  const named = [typed, context, env["IDMINT_ADDRESS"], env["IDMINT_CONTEXT"]];
  return named.some((name = "") => name !== "");
}

/** A value, and the flag, variable or context that it comes from. */
interface Sourced {
  readonly value: string;
  readonly source: string;
}

type SettledName = "address" | "caFile" | "certFile" | "keyFile" | "tls" | "token" | "tokenFile";

/** What is in effect of flags, environment and context; what is not there has no value. */
export type Settled = Readonly<Partial<Record<SettledName, Sourced>>>;

const FLAGS: Readonly<Record<SettledName, string>> = {
  address: "--address",
  caFile: "--ca-file",
  certFile: "--cert-file",
  keyFile: "--key-file",
  tls: "--tls",
  token: "--token",
  tokenFile: "--token-file",
};
const VARIABLES: Readonly<Partial<Record<SettledName, string>>> = {
  address: "IDMINT_ADDRESS",
  caFile: "IDMINT_CA_FILE",
  token: "IDMINT_TOKEN",
};
/** A value of one of these hides those of the others that come from farther away. */
const TOGETHER: readonly (readonly SettledName[])[] = [
  ["address"],
  ["caFile"],
  ["tls"],
  ["certFile", "keyFile"],
  ["token", "tokenFile"],
];

/** Pure. A certificate and its key come from one source, and so does a token, itself or by a file. */
function settle(
  flags: GlobalFlags,
  env: Io["env"],
  found: { readonly name: string; readonly context: Context } | undefined,
): Settled {
  const settled: Partial<Record<SettledName, Sourced>> = {};
  const typed = (name: SettledName): Sourced | undefined => sourced(flags[name], FLAGS[name]);
  const variable = (name: SettledName): Sourced | undefined => {
    const key = VARIABLES[name] ?? "";
    // An empty variable counts as unset.
    return env[key] === "" ? undefined : sourced(env[key], key);
  };
  const ofContext = (name: SettledName): Sourced | undefined =>
    sourced(found?.context[name], `context ${found?.name ?? ""}`);
  for (const names of TOGETHER) {
    for (const from of [typed, variable, ofContext]) {
      const values = names.flatMap((name) => {
        const value = from(name);
        return value === undefined ? [] : [[name, value] as const];
      });
      if (values.length === 0) continue;
      Object.assign(settled, Object.fromEntries(values));
      break;
    }
  }
  return settled;
}

function sourced(value: string | boolean | undefined, source: string): Sourced | undefined {
  return value === undefined || value === false ? undefined : { value: String(value), source };
}

/** The pure half of `connectionSettings`. */
export function resolveConnection(
  flags: GlobalFlags,
  env: Io["env"],
  read: (file: string) => Buffer,
  found?: { readonly name: string; readonly context: Context },
): ConnectionSettings {
  const settled = settle(flags, env, found);
  const { value: text, source } = settled.address ?? { value: DEFAULT_ADDRESS, source: "default" };
  const server = address(source)(text);
  const tls = tlsOf(settled, read);
  return {
    address: server,
    timeoutMs: duration("--timeout", { minMs: 1, maxMs: 3_600_000 })(flags.timeout ?? "5s"),
    tls,
    token: tokenOf(settled, read, tls !== undefined || isOnThisMachine(server)),
  };
}

/** Whether what is sent to host:port stays on this machine. */
export function isOnThisMachine(server: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]):\d+$/.test(server);
}

/** The token. It is never shown, not even when it is wrong. */
function tokenOf(
  { token, tokenFile }: Settled,
  read: (file: string) => Buffer,
  isSafe: boolean,
): string | undefined {
  const found = token ?? tokenFile;
  if (found === undefined) return undefined;
  const text = (token?.value ?? fileText(found, read)).trim();
  assertTokenText(text, found.source);
  if (isSafe) return text;
  throw invalidField(
    found.source,
    "would go to another machine in plain text, where others can read it: add --tls or --ca-file",
  );
}

export function assertTokenText(text: string, source: string): void {
  if (/^[\u0021-\u007e]{1,4096}$/.test(text)) return;
  throw invalidField(source, "must be the text of a token, as idmint token create printed it");
}

function fileText(file: Sourced, read: (file: string) => Buffer): string {
  return readFrom(file, read).toString("utf8");
}

function readFrom({ value, source }: Sourced, read: (file: string) => Buffer): Buffer {
  try {
    return read(value);
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : "unreadable";
    throw invalidField(source, `names a file that cannot be read (${why}): ${value}`);
  }
}

function tlsOf(
  { tls, caFile, certFile, keyFile }: Settled,
  read: (file: string) => Buffer,
): ConnectionSettings["tls"] {
  const alone =
    (certFile === undefined) !== (keyFile === undefined) ? (certFile ?? keyFile) : undefined;
  if (alone !== undefined) {
    throw invalidField(alone.source, "needs --cert-file and --key-file together, from one source");
  }
  if (tls === undefined && caFile === undefined && certFile === undefined) return undefined;
  const pem = (file: Sourced | undefined, what: string): Buffer | undefined =>
    file === undefined ? undefined : readPem(file, what, read);
  return {
    caPem: pem(caFile, "CERTIFICATE"),
    certPem: pem(certFile, "CERTIFICATE"),
    keyPem: pem(keyFile, "PRIVATE KEY"),
  };
}

function readPem(file: Sourced, what: string, read: (file: string) => Buffer): Buffer {
  const pem = readFrom(file, read);
  if (pem.includes(`${what}-----`) && pem.includes("-----BEGIN ")) return pem;
  const name = what === "CERTIFICATE" ? "certificate" : "private key";
  throw invalidField(file.source, `names a file without a PEM ${name}: ${file.value}`);
}
