import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import {
  DEFAULT_RESERVE_AHEAD_MS,
  type FieldViolation,
  IdmintError,
  instanceViolation,
  invalidField,
  invalidFields,
  MAX_COUNT_AS_SEGMENTS,
  MAX_WAITERS,
  reserveAheadViolation,
} from "@idmint/core";
import { isOnThisMachine, resolveAddresses } from "./servers/addresses.ts";
import type { IdClientEvent } from "./events.ts";

/** TLS settings. All values are PEM text or its bytes, never a path: the SDK reads no files. */
export interface TlsOptions {
  /** Certificates of the authorities to trust. Default: the ones that Node.js trusts. */
  readonly ca?: string | Uint8Array | undefined;
  /** The client's own certificate, for servers that ask for one. Needs `key`. Default: none. */
  readonly cert?: string | Uint8Array | undefined;
  /** The private key of `cert`. Default: none. */
  readonly key?: string | Uint8Array | undefined;
  /** The name that the server's certificate must have. Default: the host of the address. */
  readonly serverName?: string | undefined;
}

/** Options for tags of kind snowflake, whose ids this client makes itself. */
export interface WorkerOptions {
  /**
   * The name under which this client leases worker ids. With a stable name, such as a pod's, it gets the same worker id
   * after a restart. Clients that run at the same time need different names, also within one process, or they take the
   * worker id from each other. Default: the host's name and a random part. Range: 1 … 126 characters of
   * A–Z a–z 0–9 . _ : / # -, beginning with a letter or digit; backup workers append #1 to #3.
   */
  readonly instance?: string | undefined;
  /** The data center in the ids. Default: the tag's. Range: 0 … 2^data_center_bits − 1 of the tag. */
  readonly dataCenter?: number | undefined;
  /**
   * How far ahead this client reserves time, in milliseconds. It makes ids for that long while no server answers. It renews
   * the reservation three times in that time. If it restarts under another name, its old worker id becomes free that much
   * later. Default: 3,000. Range: 1,000 … 60,000.
   */
  readonly reserveAheadMs?: number | undefined;
}

/** Options of `createIdClient`. Unknown names and values out of range are INVALID_ARGUMENT; no value is clamped. */
export interface IdClientOptions {
  /**
   * The server: `host:port`, or a target of gRPC (`dns:///ids.example:7600`, `unix:/run/idmint.sock`). It is no URL: leave
   * out `http://`, and set `tls` for TLS. The client connects there itself, whatever proxy the environment names.
   */
  readonly address?: string | undefined;
  /**
   * Several servers of one fleet (one store), instead of `address`. The client learns all others from these. Each tag prefers
   * one server, moves to its next choice when that one fails, and returns when it is well again. Range: 1 … 64 addresses.
   */
  readonly addresses?: readonly string[] | undefined;
  /**
   * Where this program runs, as the servers' `node.zone` says it. Servers of this zone are asked first; those of other zones,
   * by their weight, when none of it can serve. When no server is in it, all are asked by their weight. Default: "", all are
   * asked by their weight. Range: up to 64 characters of A–Z a–z 0–9 . _ : -, beginning with a letter or digit.
   */
  readonly zone?: string | undefined;
  /**
   * TLS: `true` trusts the authorities that Node.js trusts; an object has details. It applies to servers that the client
   * learns of as well, so their certificates must have the names that they advertise, or `serverName`. Default: `false`,
   * plain text.
   */
  readonly tls?: boolean | TlsOptions | undefined;
  /**
   * The token that proves who this program is, or a function that returns the current one. The function is called for each
   * request, so that tokens can be changed while the program runs; it must be quick. Tokens are sent over TLS, and without it
   * only to this machine. Proxies that the environment names (`grpc_proxy`, `http_proxy`) are not used. Default: none. Range:
   * 1 … 4,096 printable ASCII characters without spaces.
   */
  readonly token?: string | (() => string) | undefined;

  /**
   * How long the ids in memory last at the peak rate, in milliseconds. An outage of that length goes unnoticed; a larger
   * value wastes more ids when a process dies. Default: 60,000. Range: 1,000 … 3,600,000.
   */
  readonly holdForMs?: number | undefined;
  /** Fewest ids to fetch at once. Default: 100. Range: 1 … `max`. */
  readonly min?: number | undefined;
  /** Most ids to fetch at once. Default: 1,000,000. Range: `min` … 10,000,000, up to the server's own limit. */
  readonly max?: number | undefined;
  /**
   * The SDK fetches the next segment in the background once this share of the current one is used. Small values ride out
   * longer outages. Default: 0.1. Range: above 0 … 1.
   */
  readonly prefetchShare?: number | undefined;
  /**
   * How long ids may be kept before use, in milliseconds. The tag's `max_age` applies if it is shorter. Default: the tag's
   * `max_age`. Range: 1,000 … 86,400,000.
   */
  readonly maxAgeMs?: number | undefined;

  /**
   * How long `next`, `take` and `warm` wait unless the call says otherwise, in milliseconds. Shortly before, they are
   * refused with SEGMENT_NOT_READY. While no server has ever been reached they are refused after about a second, with
   * SERVER_UNAVAILABLE. Default: 5,000. Range: 1 … 3,600,000.
   */
  readonly deadlineMs?: number | undefined;
  /**
   * How long one server may take to answer a request, in milliseconds; then the next server is asked. It is the gRPC
   * deadline of every request. A request for a segment is given twice that while its server answers others. Default: 2,000.
   * Range: 100 … 60,000.
   */
  readonly rpcDeadlineMs?: number | undefined;
  /** Most calls that may wait for one tag; further calls are OVERLOADED. Default: 10,000. Range: 1 … 1,000,000. */
  readonly maxWaiters?: number | undefined;
  /**
   * Most tags that one client may use; further tags are OVERLOADED. Names that are no tags, or not the caller's, count for five
   * seconds, and tags that were never used for one. Default: 10,000. Range: 1 … 1,000,000.
   */
  readonly maxTags?: number | undefined;

  /** Options for tags of kind snowflake. Default: see `WorkerOptions`. */
  readonly worker?: WorkerOptions | undefined;

  /**
   * Called with what happens inside, for logs and metrics, outside of the asynchronous context of any request. It must be quick.
   * What it throws is ignored, and so is the rejection of an async function. Default: none.
   */
  readonly onEvent?: ((event: IdClientEvent) => void) | undefined;
}

/** Options with defaults filled in and everything checked. */
export interface ResolvedOptions {
  readonly addresses: readonly string[];
  readonly zone: string;
  readonly tls: false | TlsOptions;
  readonly token: (() => string) | undefined;
  readonly holdForMs: number;
  readonly min: number;
  readonly max: number;
  readonly prefetchShare: number;
  readonly maxAgeMs: number;
  readonly deadlineMs: number;
  readonly rpcDeadlineMs: number;
  readonly maxWaiters: number;
  readonly maxTags: number;
  readonly worker: ResolvedWorkerOptions;
  readonly onEvent: ((event: IdClientEvent) => void) | undefined;
}

/** Options of kind snowflake with defaults filled in. */
export interface ResolvedWorkerOptions {
  readonly instance: string;
  /** Undefined: that of the tag. */
  readonly dataCenter: number | undefined;
  readonly reserveAheadMs: number;
}

/** Longest wait that a call may ask for, in milliseconds. */
export const MAX_DEADLINE_MS = 3_600_000;

type NumberOption = Exclude<
  keyof ResolvedOptions,
  "addresses" | "onEvent" | "prefetchShare" | "tls" | "token" | "worker" | "zone"
>;

/** Whole numbers: default, least, most. */
const WHOLE: Readonly<Record<NumberOption, readonly [number, number, number]>> = {
  holdForMs: [60_000, 1_000, 3_600_000],
  min: [100, 1, MAX_COUNT_AS_SEGMENTS],
  max: [1_000_000, 1, MAX_COUNT_AS_SEGMENTS],
  // The default never applies: a tag's max_age is at most this.
  maxAgeMs: [86_400_000, 1_000, 86_400_000],
  deadlineMs: [5_000, 1, MAX_DEADLINE_MS],
  rpcDeadlineMs: [2_000, 100, 60_000],
  maxWaiters: [MAX_WAITERS, 1, 1_000_000],
  maxTags: [10_000, 1, 1_000_000],
};

const NAMES: ReadonlySet<string> = new Set([
  ...Object.keys(WHOLE),
  "address",
  "addresses",
  "onEvent",
  "prefetchShare",
  "tls",
  "token",
  "worker",
  "zone",
]);

const TLS_NAMES: ReadonlySet<string> = new Set(["ca", "cert", "key", "serverName"]);

/** Checks all options at once and fills in defaults. Throws INVALID_ARGUMENT that names every bad one. */
export function resolveOptions(given: IdClientOptions): ResolvedOptions {
  // Callers without types may give anything.
  const anything: unknown = given;
  if (typeof anything !== "object" || anything === null) {
    throw invalidField("options", 'must be an object, as in { address: "ids.example:7600" }');
  }
  const options = given;
  const violations: FieldViolation[] = [];
  const refuse = (field: string, description: string): void => {
    violations.push({ field, description });
  };
  for (const name of Object.keys(options)) {
    if (!NAMES.has(name)) refuse(name, "is not an option of createIdClient");
  }
  const whole = (name: NumberOption): number => {
    const [standard, least, most] = WHOLE[name];
    const value = options[name] ?? standard;
    if (!Number.isInteger(value) || value < least || value > most) {
      refuse(name, `must be a whole number from ${least} to ${most}, got ${String(value)}`);
    }
    return value;
  };
  const resolved: ResolvedOptions = {
    addresses: resolveAddresses(options, refuse),
    zone: resolveZone(options.zone, refuse),
    tls: resolveTls(options.tls, refuse),
    token: resolveToken(options, refuse),
    holdForMs: whole("holdForMs"),
    min: whole("min"),
    max: whole("max"),
    prefetchShare: options.prefetchShare ?? 0.1,
    maxAgeMs: whole("maxAgeMs"),
    deadlineMs: whole("deadlineMs"),
    rpcDeadlineMs: whole("rpcDeadlineMs"),
    maxWaiters: whole("maxWaiters"),
    maxTags: whole("maxTags"),
    worker: resolveWorker(options.worker ?? {}, refuse),
    onEvent: options.onEvent,
  };
  const { min, max, prefetchShare, onEvent } = resolved;
  if (min > max) refuse("min", `must be at most max (${max}), got ${min}`);
  if (typeof prefetchShare !== "number" || !(prefetchShare > 0 && prefetchShare <= 1)) {
    refuse("prefetchShare", `must be above 0 and at most 1, got ${String(prefetchShare)}`);
  }
  if (onEvent !== undefined && typeof onEvent !== "function")
    refuse("onEvent", "must be a function");
  if (violations.length > 0) throw invalidFields(violations);
  return resolved;
}

type Refuse = (field: string, description: string) => void;

function resolveZone(zone: string | undefined, refuse: Refuse): string {
  if (zone === undefined || zone === "") return "";
  // Callers without types may give anything.
  if (typeof zone === "string" && /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/.test(zone)) return zone;
  refuse(
    "zone",
    "must be empty, or up to 64 characters of A–Z a–z 0–9 . _ : -, the first of them a letter or digit",
  );
  return "";
}

/**
 * To be called with what a function of a caller answered. It may be async though nobody awaits it, and a rejection that nobody
 * hears of ends the process.
 */
export function ignoreRejection(answer: unknown): void {
  if (typeof answer !== "object" || answer === null || !("then" in answer)) return;
  void Promise.resolve(answer).catch(() => undefined);
}

/** Whether a header can hold the text. What is not right is never shown: it may be most of a secret. */
function isHeaderText(text: unknown): boolean {
  return typeof text === "string" && /^[\u0021-\u007e]{1,4096}$/.test(text);
}

const TOKEN = "1 to 4,096 printable characters without spaces";

/** What is most likely wrong with a text that is no token: it is not shown. */
function hintOf(text: unknown): string {
  if (typeof text === "object" && text !== null && "then" in text) return ", and no promise";
  if (typeof text !== "string") return "";
  if (isHeaderText(text.trim())) return " (it has a space or a line break at an end: trim() it)";
  return "";
}

/** Throws UNAUTHENTICATED where the option's function fails, or returns no token. */
function resolveToken(
  { token, tls, address, addresses = address === undefined ? [] : [address] }: IdClientOptions,
  refuse: Refuse,
): (() => string) | undefined {
  if (token === undefined) return undefined;
  if (typeof token !== "function" && !isHeaderText(token)) {
    refuse("token", `must be a text of ${TOKEN}${hintOf(token)}, or a function`);
  }
  const isPlain = tls === undefined || tls === false;
  if (isPlain && Array.isArray(addresses) && !addresses.every(isOnThisMachine)) {
    refuse("token", "would go to another machine in plain text: set tls");
  }
  return () => {
    const text = typeof token === "function" ? askFor(token) : token;
    if (isHeaderText(text)) return text;
    ignoreRejection(text);
    const fault = `the function of the option token must return ${TOKEN}${hintOf(text)}`;
    throw new IdmintError("UNAUTHENTICATED", fault);
  };
}

function askFor(token: () => string): string {
  try {
    return token();
  } catch (cause) {
    // What it says may hold a secret, so only the cause has it.
    const fault = "the function of the option token failed; see the cause";
    throw new IdmintError("UNAUTHENTICATED", fault, { cause });
  }
}

function resolveTls(tls: boolean | TlsOptions | undefined, refuse: Refuse): false | TlsOptions {
  if (tls === undefined || tls === false) return false;
  if (tls === true) return {};
  if (typeof tls !== "object" || tls === null) {
    refuse("tls", "must be true, false or an object");
    return false;
  }
  for (const name of Object.keys(tls)) {
    if (!TLS_NAMES.has(name)) refuse(`tls.${name}`, "is not an option of tls");
  }
  for (const name of ["ca", "cert", "key"] as const) {
    if (tls[name] !== undefined && !isPem(tls[name])) {
      refuse(`tls.${name}`, "must be PEM: text or bytes, with -----BEGIN in it, and no path");
    }
  }
  if (tls.serverName !== undefined && !isHostName(tls.serverName)) {
    refuse("tls.serverName", "must be the name of a host, as in ids.example");
  }
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    refuse(
      tls.cert === undefined ? "tls.cert" : "tls.key",
      "is required: cert and key must be given together",
    );
  }
  return tls;
}

function isPem(value: unknown): boolean {
  if (value instanceof Uint8Array) return Buffer.from(value).includes("-----BEGIN ");
  return typeof value === "string" && value.includes("-----BEGIN ");
}

function isHostName(value: unknown): boolean {
  return typeof value === "string" && /^[A-Za-z0-9._:[\]-]{1,253}$/.test(value);
}

const WORKER_NAMES: ReadonlySet<string> = new Set(["dataCenter", "instance", "reserveAheadMs"]);
const MAX_DATA_CENTER = 2 ** 16 - 1;
/** Backup workers append their number to the name of the instance. */
const LONGEST_SUFFIX = "#3";

function resolveWorker(worker: WorkerOptions, refuse: Refuse): ResolvedWorkerOptions {
  // Callers without types may give anything.
  const given: unknown = worker;
  if (typeof given !== "object" || given === null) {
    refuse("worker", "must be an object");
    return { instance: "", dataCenter: undefined, reserveAheadMs: 0 };
  }
  for (const name of Object.keys(worker)) {
    if (!WORKER_NAMES.has(name)) refuse(`worker.${name}`, "is not an option of worker");
  }
  const { instance = randomInstance(), dataCenter, reserveAheadMs } = worker;
  const resolved = {
    instance,
    dataCenter,
    reserveAheadMs: reserveAheadMs ?? DEFAULT_RESERVE_AHEAD_MS,
  };
  const violations = [
    instanceViolation("worker.instance", instance === "" ? "" : `${instance}${LONGEST_SUFFIX}`),
    reserveAheadViolation("worker.reserveAheadMs", resolved.reserveAheadMs),
  ];
  for (const violation of violations) {
    if (violation !== undefined) refuse(violation.field, violation.description);
  }
  if (
    dataCenter !== undefined &&
    !(Number.isInteger(dataCenter) && dataCenter >= 0 && dataCenter <= MAX_DATA_CENTER)
  ) {
    const range = `a whole number from 0 to ${MAX_DATA_CENTER}`;
    refuse("worker.dataCenter", `must be ${range}, got ${String(dataCenter)}`);
  }
  return resolved;
}

/** Another name for each client, with what a host's name may hold and an instance's may not left out. */
function randomInstance(): string {
  const host = hostname()
    .replaceAll(/[^A-Za-z0-9.-]/g, "")
    .replace(/^[^A-Za-z0-9]+/, "");
  return `${host.slice(0, 64) || "host"}/${randomBytes(8).toString("hex")}`;
}
