import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { invalidField } from "@idmint/core";
import type { Io } from "../process/io.ts";

/** How to reach a server that has a name. Files are named by absolute paths. */
export interface Context {
  readonly address: string;
  readonly tls?: boolean;
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly tokenFile?: string;
  /** The token itself. The file that holds it is for its owner alone. */
  readonly token?: string;
}

export interface Contexts {
  /** The one that is used where nothing else names a server. */
  readonly current: string | undefined;
  readonly byName: ReadonlyMap<string, Context>;
}

type Env = Io["env"];

const NO_CONTEXTS: Contexts = { current: undefined, byName: new Map() };
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const MAX_CONTEXTS = 1_000;
const TEXTS = ["address", "caFile", "certFile", "keyFile", "tokenFile", "token"] as const;
const FIELDS: readonly string[] = [...TEXTS, "tls"];

/** Where contexts are kept; undefined: nothing names a place. */
export function contextsFile(env: Env): string | undefined {
  const { IDMINT_CONFIG_HOME: own = "", XDG_CONFIG_HOME: xdg = "" } = env;
  const home = env["HOME"] ?? env["USERPROFILE"] ?? "";
  if (own !== "") return path.resolve(own, "contexts.json");
  if (path.isAbsolute(xdg)) return path.join(xdg, "idmint", "contexts.json");
  return home === "" ? undefined : path.join(home, ".config", "idmint", "contexts.json");
}

/** Throws for a name that cannot be one. */
export function assertContextName(name: string): string {
  if (NAME.test(name)) return name;
  const text =
    "must be 1 to 64 characters of A–Z a–z 0–9 . _ -, the first of them a letter or digit";
  throw invalidField("name", text, "INVALID_NAME");
}

/**
 * All contexts; none where there is no file.
 *
 * INVARIANT: a file that others can read or write is not used: its tokens may be known to them, and its addresses theirs.
 */
export function readContexts(env: Env): Contexts {
  const file = contextsFile(env);
  if (file === undefined) return NO_CONTEXTS;
  let text: string;
  try {
    const { mode } = statSync(file);
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw invalidField(file, `may hold tokens, and others can read it; run: chmod 600 ${file}`);
    }
    text = readFileSync(file, "utf8");
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown)) throw thrown;
    if (thrown.code === "ENOENT") return NO_CONTEXTS;
    throw thrown.code === "INVALID_ARGUMENT"
      ? thrown
      : invalidField(file, `cannot be read (${String(thrown.code)})`);
  }
  return parseContexts(text, file);
}

function parseContexts(text: string, file: string): Contexts {
  const wrong = (why: string): Error => invalidField(file, `is no file of contexts: ${why}`);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw wrong("it holds no JSON");
  }
  if (!isRecord(json) || !isRecord(json["contexts"])) throw wrong("contexts is missing");
  const { current, contexts } = json;
  const byName = new Map<string, Context>();
  for (const [name, context] of Object.entries(contexts)) {
    if (!NAME.test(name) || !isContext(context)) throw wrong(`context ${JSON.stringify(name)}`);
    byName.set(name, context);
  }
  if (current !== undefined && (typeof current !== "string" || !byName.has(current))) {
    throw wrong("current names no context");
  }
  return { current, byName };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isContext(value: unknown): value is Context {
  if (!isRecord(value) || typeof value["address"] !== "string") return false;
  const areTexts = TEXTS.every((name) => ["string", "undefined"].includes(typeof value[name]));
  const isFlag = ["boolean", "undefined"].includes(typeof value["tls"]);
  return areTexts && isFlag && Object.keys(value).every((name) => FIELDS.includes(name));
}

/** Replaces the file at once, so that a crash leaves the one before. It is its owner's alone from the first byte. */
export function writeContexts(env: Env, { current, byName }: Contexts): string {
  if (byName.size > MAX_CONTEXTS) {
    throw invalidField("name", `would be one of more than ${MAX_CONTEXTS} contexts; remove some`);
  }
  const file = contextsFile(env);
  if (file === undefined)
    throw invalidField("IDMINT_CONFIG_HOME", "must name a folder: HOME is not set");
  const next = `${file}.${process.pid}`;
  const json = {
    ...(current === undefined ? {} : { current }),
    contexts: Object.fromEntries(byName),
  };
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    rmSync(next, { force: true });
    writeFileSync(next, `${JSON.stringify(json, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    chmodSync(next, 0o600);
    renameSync(next, file);
    return file;
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown";
    throw invalidField(file, `cannot be written (${code})`);
  }
}

/** What names a server besides a context. */
interface Named {
  readonly context?: string;
  readonly address?: string;
}

/**
 * The context that a command uses: the one that a flag or variable names, else the current one.
 *
 * INVARIANT: a token goes to the server that it was added for. So the current context is not used, no part of it, where a flag
 * or variable names another server; whoever wants that names the context too.
 */
export function contextFor(
  { context, address }: Named,
  env: Env,
  read: () => Contexts,
): { readonly name: string; readonly context: Context } | undefined {
  const variable = env["IDMINT_CONTEXT"] ?? "";
  const wanted = context ?? (variable === "" ? undefined : variable);
  if (wanted === undefined && (address ?? env["IDMINT_ADDRESS"] ?? "") !== "") return undefined;
  const { current, byName } = read();
  const name = wanted ?? current;
  if (name === undefined) return undefined;
  const found = byName.get(name);
  if (found !== undefined) return { name, context: found };
  const field = context === undefined ? "IDMINT_CONTEXT" : "--context";
  throw unknownContext(field, byName);
}

export function unknownContext(field: string, byName: Contexts["byName"]): Error {
  const all = [...byName.keys()].toSorted();
  const known =
    all.length === 0
      ? "there is none yet: idmint context add makes one"
      : `must be one of ${all.join(", ")}`;
  return invalidField(field, known, "UNKNOWN_VALUE");
}
