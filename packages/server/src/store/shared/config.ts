import { IdmintError, invalidField } from "@idmint/core";
import type { AskTimes, AuditNote } from "@idmint/core/server";
import { UNSAFE_SETTINGS } from "./backends.ts";
import { etcdPlace, MAX_MEMBERS } from "./etcd-url.ts";
import { hostUrls, SSL_MODES } from "./host-urls.ts";

interface Expecting {
  /** Id of the store that is meant, for whoever opens it with no other memory of it. Default: whichever is there. */
  readonly expectId?: string | undefined;
}

/** A store in one SQLite file, for one host. */
export interface SqliteConfig extends Expecting {
  readonly backend: "sqlite";
  /** Path of the database file; its -wal, -shm and .witness lie beside it. */
  readonly path: string;
  /** Whether `migrateStore` may make the file. Nothing else ever makes one. Default: false. */
  readonly create?: boolean;
  /** Longest wait for one answer, in milliseconds; 100 … 60,000. Default: 3,000. */
  readonly timeoutMs?: number;
  /** Names out of UNSAFE_SETTINGS. */
  readonly allowUnsafe: readonly string[];
}

/** A store in a PostgreSQL database, 14 or later. */
export interface PostgresConfig extends Expecting {
  readonly backend: "postgres";
  /**
   * postgres://user:password@host:port,host:port/database?sslmode=… of a primary and its standbys, in any order. It is
   * never logged, and no error shows it.
   */
  readonly url: string;
  /**
   * Longest wait for one answer, in milliseconds; then the socket is destroyed and the outcome is unknown. 100 …
   * 60,000. Default: 3,000. The database server's own time-outs come first: they are five sixths of it, and four sixths
   * for locks.
   */
  readonly timeoutMs?: number;
  /** Longest wait for a new connection, in milliseconds; 100 … 60,000. Default: 1,500. */
  readonly connectTimeoutMs?: number;
  /** Most connections of this process; 1 … 100. Default: 4. */
  readonly poolSize?: number;
  /** Set for one of several databases that tags are spread over: its name, and the names of all in order. */
  readonly place?: { readonly member: string; readonly members: readonly string[] };
  /** What pg_stat_activity shows. Default: idmint. */
  readonly applicationName?: string;
  /** Names out of UNSAFE_SETTINGS. */
  readonly allowUnsafe: readonly string[];
}

/** A store in several PostgreSQL databases. Each tag is in one of them. */
export interface SpreadConfig extends Expecting {
  readonly backend: "spread";
  /** By name; at least two. */
  readonly databases: ReadonlyMap<string, PostgresConfig>;
}

/** A store below a prefix of an etcd, 3.4 or later. */
export interface EtcdConfig extends Expecting {
  readonly backend: "etcd";
  /** host:port of the members, with IPv6 hosts in brackets; 1 … 16. */
  readonly hosts: readonly string[];
  /** What all keys begin with; it begins and ends with a slash. */
  readonly prefix: string;
  /** Set: with TLS, and these files in PEM. Default of the authorities: those that Node trusts. */
  readonly tls?: {
    readonly caFile?: string | undefined;
    readonly certFile?: string | undefined;
    readonly keyFile?: string | undefined;
  };
  readonly user?: string | undefined;
  /** It is never logged, and no error shows it. */
  readonly password?: string | undefined;
  /** Longest wait for one answer, in milliseconds; 100 … 60,000. Default: 3,000. One member has half of it. */
  readonly timeoutMs?: number;
  /** Names out of UNSAFE_SETTINGS. */
  readonly allowUnsafe: readonly string[];
}

/** Which store, and how to reach it. */
export type StoreConfig = SqliteConfig | PostgresConfig | SpreadConfig | EtcdConfig;

/** What an operator says when a store is accepted. */
export interface AcceptOptions {
  /** How long servers whose rows may be lost go on without the store; null: for ever. */
  readonly maxOfflineMs?: number | null;
  /** Hosts of the URL that do not answer are stopped, and stay so. */
  readonly oldPrimaryIsStopped?: boolean;
  /** It is a copy that goes on by itself, under an id of its own. */
  readonly newStore?: boolean;
  /** Also claims of servers that reach the end of a tag are taken. */
  readonly trustClaims?: boolean;
  /** Who accepts it, for the audit trail. */
  readonly by?: AuditNote;
  /** How long servers are waited for. Default: ASK_TIMES. */
  readonly askTimes?: AskTimes | undefined;
}

/** Longest wait for one answer of the store unless configured, in milliseconds. */
export const DEFAULT_TIMEOUT_MS = 3_000;
/** An accept writes every tag, so it may take longer than what a server waits for. */
export const ACCEPT_TIMEOUT_MS = 60_000;

/** Longest wait for a new connection unless configured, in milliseconds. */
export const DEFAULT_CONNECT_TIMEOUT_MS = 1_500;

/** Throws for a configuration that cannot be meant. */
export function checkSqlite(config: SqliteConfig): void {
  checkCommon(config);
  if (config.path === "" || config.path.includes("\0") || config.path.startsWith(":")) {
    throw invalidField("path", "must name a file");
  }
}

/** Throws for a configuration that cannot be meant. */
export function checkPostgres(config: PostgresConfig): void {
  checkCommon(config);
  checkUrl(config.url);
  checkRange("connect_timeout", config.connectTimeoutMs, 100, 60_000);
  checkRange("pool_size", config.poolSize, 1, 100);
}

/** Throws for a configuration that cannot be meant. */
export function checkEtcd(config: EtcdConfig): void {
  checkCommon(config);
  const { hosts, prefix, user, password, tls } = config;
  if (etcdPlace(`etcd://${hosts.join(",")}${prefix}`)?.prefix !== prefix) {
    throw invalidField(
      "url",
      `must name 1 to ${MAX_MEMBERS} different members as host:port, and a prefix of A–Z a–z 0–9 . _ - between slashes`,
    );
  }
  if ((user === undefined) !== (password === undefined)) {
    throw invalidField("user", "must be set together with the password, or neither of them");
  }
  if ((tls?.certFile === undefined) !== (tls?.keyFile === undefined)) {
    throw invalidField("tls_cert_file", "must be set together with tls_key_file");
  }
}

function checkCommon({ allowUnsafe, timeoutMs }: EtcdConfig | PostgresConfig | SqliteConfig): void {
  for (const name of allowUnsafe) {
    if ((UNSAFE_SETTINGS as readonly string[]).includes(name)) continue;
    throw invalidField("allow_unsafe", `knows ${UNSAFE_SETTINGS.join(", ")}, got ${name}`);
  }
  checkRange("timeout", timeoutMs, 100, 60_000);
}

/** Throws for a bad URL, without repeating it: it may hold a password. */
function checkUrl(text: string): void {
  const [first] = hostUrls(text) ?? [];
  if (first !== undefined) {
    const { username, password, pathname } = new URL(first);
    if ([username, password, pathname].every(isEncodedWell)) return;
  }
  throw invalidField(
    "url",
    `must be postgres://user:password@host:port,host:port/database, with other characters than letters and digits as %XX, a Unix socket as %2Frun%2Fpostgresql in the place of the host, and as sslmode one of ${SSL_MODES.join(", ")}`,
  );
}

function isEncodedWell(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

function checkRange(field: string, value: number | undefined, min: number, max: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max)) return;
  throw invalidField(field, `must be ${min} to ${max}, got ${value}`);
}

/** Refuses a store whose settings may repeat ids after a crash, unless all of them are allowed by name. */
export function refuseUnsafe(
  found: ReadonlyMap<string, string>,
  allowed: readonly string[],
  hint = "",
): void {
  const refused = [...found].filter(([name]) => !allowed.includes(name));
  if (refused.length === 0) return;
  const names = refused.map(([name]) => name).join(",");
  const text = refused.map(([, description]) => description).join("; ");
  const mayBeAllowed = refused.every(([name]) =>
    (UNSAFE_SETTINGS as readonly string[]).includes(name),
  );
  const risk = mayBeAllowed ? `; --allow-unsafe-store=${names} takes the risk` : "";
  throw new IdmintError("STORE_UNSAFE", `${text}: ids may repeat after a crash${hint}${risk}`, {
    metadata: { settings: names },
  });
}
