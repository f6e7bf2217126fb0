import { type FieldViolation, IdmintError } from "@idmint/core";
import { backendOf, BACKENDS } from "../store/shared/backends.ts";
import {
  readEnvironment,
  readFlags,
  readYaml,
  type SourceReading,
  type Written,
} from "./sources.ts";
import { isHttpSafe } from "./http.ts";
import { keepsLedger } from "./ledger.ts";
import type { Option } from "./option.ts";
import { type Config, OPTIONS } from "./table.ts";
import { isLoopback } from "./types.ts";

/** Where options come from, besides the defaults. */
export interface ConfigSources {
  /** Environment variables, e.g. process.env. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Parsed flags, by name without dashes. */
  readonly flags?: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
  /** Variables that begin with IDMINT_ but do not configure the server. */
  readonly otherEnv?: readonly string[];
  /** Defaults that replace the table's, by key. */
  readonly defaults?: Readonly<Record<string, string>>;
}

const EMPTY: SourceReading = { values: new Map(), faults: [] };

/** An option as it was found. */
interface FoundOption {
  readonly key: string;
  /** As it was written, without secrets; undefined: it has no value. */
  readonly shown: string | undefined;
  /** A flag, a variable, a place in the file, or `default`. */
  readonly source: string;
}

/** What was found in all sources. There is a configuration when nothing is wrong. */
export type ConfigReading = { readonly options: readonly FoundOption[] } & (
  | { readonly config: Config; readonly violations: readonly [] }
  | { readonly config: undefined; readonly violations: readonly FieldViolation[] }
);

/**
 * Loads the configuration. Flags win over the environment, the environment over the YAML file that one of them names,
 * and the file over the defaults: what somebody typed for this run is what they mean.
 * Throws an INVALID_ARGUMENT that lists every fault with its source and shows no secret.
 */
export function loadConfig(sources: ConfigSources): Config {
  const { config, violations } = readConfig(sources);
  if (config !== undefined) return config;
  const lines = violations.map(({ field, description }) => `${field} ${description}`);
  throw new IdmintError("INVALID_ARGUMENT", lines.join("; "), { violations });
}

/** Reads the configuration, and says of each option where it comes from. Nothing that is wrong hides anything else. */
export function readConfig(sources: ConfigSources): ConfigReading {
  const options = Object.values(OPTIONS);
  const env = readEnvironment(sources.env ?? {}, options, sources.otherEnv ?? []);
  const flags = readFlags(sources.flags ?? {}, options);
  const path = (flags.values.get("config") ?? env.values.get("config"))?.text;
  const file = path === undefined || path === "" ? EMPTY : readYaml(path, options);
  const readings = [flags, env, file];
  const violations: FieldViolation[] = readings
    .flatMap((reading) => reading.faults)
    .map(({ source, fault }) => ({ field: source, description: fault }));
  const values: Record<string, unknown> = {};
  const found: FoundOption[] = [];
  for (const [name, option] of Object.entries(OPTIONS)) {
    const { key } = option;
    const written = writtenOf(option, readings, sources.defaults ?? {});
    found.push({
      key,
      source: written.source ?? "default",
      shown: shownText(option, written.text),
    });
    const value = written.text === undefined ? undefined : option.type.parse(written.text);
    if (value === undefined && written.text !== undefined) {
      violations.push({ field: written.source ?? key, description: refusal(option, written.text) });
      Object.defineProperty(values, name, { get: unreadable });
    } else values[name] = value;
  }
  // Each name of the table now has a value of its type, or throws when a rule reads it.
  const config = values as unknown as Config;
  violations.push(...RULES.flatMap((rule) => violationsOf(rule, config)));
  return violations.length === 0
    ? { options: found, config, violations: [] }
    : { options: found, config: undefined, violations };
}

/** The text of an option in the first source that has it, and that source; without one it is a default. */
function writtenOf(
  { key, default: byDefault }: Option<unknown>,
  readings: readonly SourceReading[],
  defaults: Readonly<Record<string, string>>,
): { readonly text: string | undefined; readonly source: string | undefined } {
  let written: Written | undefined;
  for (const reading of readings) written ??= reading.values.get(key);
  return { text: written?.text ?? defaults[key] ?? byDefault, source: written?.source };
}

function refusal(option: Option<unknown>, text: string): string {
  const shown =
    option.isSecret === true || text.includes("://") ? "" : `, got ${JSON.stringify(text)}`;
  return `must be ${option.type.accepts}${shown}`;
}

/** What people may see of an option: no secret, and of a URL neither its user nor its query, which may hold one. */
function shownText(option: Option<unknown>, text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  if (option.isSecret === true) return "(secret)";
  return text.replaceAll(/:\/\/[^/\s]*@/g, "://").replaceAll(/\?[^\s]*/g, "?…");
}

class Unreadable extends Error {}

function unreadable(): never {
  throw new Unreadable();
}

/** A rule that reads an option whose value is wrong has nothing to say. */
function violationsOf(
  rule: (config: Config) => readonly FieldViolation[],
  config: Config,
): readonly FieldViolation[] {
  try {
    return rule(config);
  } catch (thrown) {
    if (thrown instanceof Unreadable) return [];
    throw thrown;
  }
}

/** Faults of options that are each fine but contradict one another. */
const RULES: readonly ((config: Config) => readonly FieldViolation[])[] = [
  tlsContradictions,
  addressContradictions,
  dropInContradictions,
  databaseContradictions,
  etcdContradictions,
  httpContradictions,
  ledgerContradictions,
  gapContradictions,
  alarmContradictions,
];

function tlsContradictions(config: Config): readonly FieldViolation[] {
  const found: FieldViolation[] = [];
  const { tlsCertFile, tlsKeyFile, tlsClientCaFile, tlsPeerCaFile } = config;
  if ((tlsCertFile === undefined) !== (tlsKeyFile === undefined)) {
    found.push({ field: "tls.cert_file and tls.key_file", description: "must be set together" });
  }
  for (const [field, file] of [
    ["tls.client_ca_file", tlsClientCaFile],
    ["tls.peer_ca_file", tlsPeerCaFile],
  ] as const) {
    if (file !== undefined && tlsCertFile === undefined) {
      found.push({ field, description: "needs tls.cert_file and tls.key_file" });
    }
  }
  return found;
}

function ledgerContradictions({ ledger, storeUrl }: Config): readonly FieldViolation[] {
  if (ledger !== "on" || keepsLedger(storeUrl)) return [];
  return [{ field: "ledger", description: "must be off: a store in etcd keeps no ledger" }];
}

function addressContradictions(config: Config): readonly FieldViolation[] {
  const { tlsCertFile, insecure, grpcAddress, adminAddress } = config;
  if (tlsCertFile !== undefined || insecure) return [];
  const addresses = [
    ["grpc.address", grpcAddress],
    ["admin.address", adminAddress],
  ] as const;
  return addresses.flatMap(([field, its]) => {
    if (its === undefined || isLoopback(its)) return [];
    const description = `${its.host}:${its.port} can be reached from other machines: set tls.cert_file and tls.key_file, or --insecure to do without`;
    return [{ field, description }];
  });
}

/** Whoever switches callers over should hear at the start that nobody answers them. */
function dropInContradictions(config: Config): readonly FieldViolation[] {
  const { httpAddress, httpLeaf, httpTinyid, tinyidTokens } = config;
  if (tinyidTokens !== undefined && !httpTinyid) {
    return [{ field: "tinyid.tokens", description: "needs http.tinyid" }];
  }
  const wanted = [...(httpLeaf ? ["http.leaf"] : []), ...(httpTinyid ? ["http.tinyid"] : [])];
  if (httpAddress === "none") {
    return wanted.map((field) => ({ field, description: "needs an http.address" }));
  }
  if (isHttpSafe(config)) return [];
  const description = `would be answered in plain text at ${httpAddress.host}:${httpAddress.port}, which other machines can reach: set http.tls, or --insecure if the network is safe`;
  return wanted.map((field) => ({ field, description }));
}

function httpContradictions(config: Config): readonly FieldViolation[] {
  const found: FieldViolation[] = [];
  const { httpAddress, httpApi, httpTls, tlsCertFile } = config;
  if (httpTls === "on" && tlsCertFile === undefined) {
    found.push({ field: "http.tls", description: "needs tls.cert_file and tls.key_file" });
  }
  if (httpApi === "on" && httpAddress !== "none" && !isHttpSafe(config)) {
    const { host, port } = httpAddress;
    const description = `on would take tokens in plain text: ${host}:${port} can be reached from other machines; set http.tls, or --insecure to do without`;
    found.push({ field: "http.api", description });
  }
  return found;
}

function databaseContradictions(config: Config): readonly FieldViolation[] {
  const found: FieldViolation[] = [];
  if (config.storeMoreUrls.size > 0 && !BACKENDS[backendOf(config.storeUrl)].spreads) {
    found.push({ field: "store.more_urls", description: "needs a store.url of PostgreSQL" });
  }
  if (config.storeMoreUrls.size > 0 && config.redisUrls.size > 0) {
    // One query reads the rows of all tags of a Redis server. A database that is down would hold up all of them.
    found.push({
      field: "store.more_urls",
      description:
        "cannot be used together with redis.urls: tags that count in Redis need one store",
    });
  }
  if (config.storeMoreUrls.has("default")) {
    found.push({
      field: "store.more_urls",
      description: "must give each a name other than default, which is store.url",
    });
  }
  return found;
}

function etcdContradictions(config: Config): readonly FieldViolation[] {
  const { storeUrl, storeUser, storePassword, storeTlsCertFile, storeTlsKeyFile } = config;
  const found: FieldViolation[] = [];
  const isEtcd = backendOf(storeUrl) === "etcd";
  if (!isEtcd && storeUser !== undefined) {
    found.push({ field: "store.user", description: "needs a store.url of etcd" });
  }
  if (isEtcd && (storeUser === undefined) !== (storePassword === undefined)) {
    found.push({ field: "store.user and store.password", description: "must be set together" });
  }
  for (const [field, file] of [
    ["store.tls_ca_file", config.storeTlsCaFile],
    ["store.tls_cert_file", storeTlsCertFile],
    ["store.tls_key_file", storeTlsKeyFile],
  ] as const) {
    if (file !== undefined && !storeUrl.startsWith("etcds:")) {
      found.push({ field, description: "needs a store.url that begins with etcds://" });
    }
  }
  if ((storeTlsCertFile === undefined) !== (storeTlsKeyFile === undefined)) {
    const field = "store.tls_cert_file and store.tls_key_file";
    found.push({ field, description: "must be set together" });
  }
  return found;
}

function gapContradictions(config: Config): readonly FieldViolation[] {
  if (config.epochGap === undefined || !failsOver(config)) return [];
  return [
    {
      field: "epoch_gap",
      description:
        "cannot be used with several hosts in one URL: an old primary that still runs may grant past any gap",
    },
  ];
}

function failsOver({ storeUrl, storeMoreUrls }: Config): boolean {
  return [storeUrl, ...storeMoreUrls.values()].some((url) =>
    BACKENDS[backendOf(url)].failsOver(url),
  );
}

function alarmContradictions(config: Config): readonly FieldViolation[] {
  const { alarmWebhookUrl, alarmWebhookToken } = config;
  if (alarmWebhookToken === undefined) return [];
  const field = "alarm.webhook_token";
  if (alarmWebhookUrl === undefined) return [{ field, description: "needs alarm.webhook_url" }];
  const { protocol, hostname } = new URL(alarmWebhookUrl);
  // A URL has an IPv6 host in brackets.
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const isReadable = protocol === "http:" && !isLoopback({ host, port: 0 });
  const description = "would go to another machine in plain text: make alarm.webhook_url https://";
  return isReadable ? [{ field, description }] : [];
}
