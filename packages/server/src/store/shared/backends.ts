import { resolve } from "node:path";
import { etcdPlace, MAX_MEMBERS } from "./etcd-url.ts";
import { hostUrls, MAX_HOSTS, SSL_MODES } from "./host-urls.ts";

/**
 * Settings that an operator may allow by name, although ids may repeat after a crash.
 *
 * - `fsync`: PostgreSQL runs with fsync=off.
 * - `full_page_writes`: PostgreSQL runs with full_page_writes=off.
 * - `synchronous_commit`: the server's synchronous_commit is kept although it is weaker than `on`.
 * - `synchronous_standby_names`: the store names standbys, and nobody waits for them. Nothing is accepted by itself then.
 * - `network_filesystem`: the SQLite file lies on a file system whose locks cannot be relied on.
 * - `shared_folder`: others may write in the folder of the SQLite file, and put another one in its place.
 * - `auto_compaction`: etcd keeps all revisions. No id repeats for that, but etcd is full some day.
 */
export const UNSAFE_SETTINGS = [
  "fsync",
  "full_page_writes",
  "synchronous_commit",
  "synchronous_standby_names",
  "network_filesystem",
  "shared_folder",
  "auto_compaction",
] as const;

/** The backends that URLs of stores name. */
export type BackendName = "sqlite" | "postgres" | "etcd";

/** What is known of a backend by the URLs of its stores. No password stands in them. */
interface Backend {
  /** What its URLs begin with. */
  readonly schemes: readonly string[];
  /** How they are written. */
  readonly form: string;
  readonly isUrl: (text: string) => boolean;
  /** Where the store is, to be shown to people. */
  readonly placeOf: (url: string) => string;
  /** Whether the URL names servers of which one takes over from another. */
  readonly failsOver: (url: string) => boolean;
  /** Whether one store may be several of its databases. */
  readonly spreads: boolean;
  /** Whether it can keep a ledger of who was given which ids. */
  readonly keepsLedger: boolean;
}

/** One row for each backend. Whoever knows more of backends has a record by their names, so that the compiler finds it. */
export const BACKENDS: Readonly<Record<BackendName, Backend>> = {
  sqlite: {
    schemes: ["sqlite:"],
    form: "sqlite:PATH",
    isUrl: (text) => /^sqlite:./.test(text),
    placeOf: (url) => `sqlite:${resolve(filePathOf(url))}`,
    failsOver: () => false,
    spreads: false,
    keepsLedger: true,
  },
  postgres: {
    schemes: ["postgres:", "postgresql:"],
    form: `postgres://user@host:port,…/database (up to ${MAX_HOSTS} hosts: a primary and its standbys; a Unix socket as %2Frun%2Fpostgresql in the place of the host; sslmode only ${SSL_MODES.join(", ")}; target_session_attrs only read-write or primary)`,
    isUrl: isDatabaseUrl,
    placeOf: databasePlace,
    failsOver: (url) => (hostUrls(url)?.length ?? 1) > 1,
    spreads: true,
    keepsLedger: true,
  },
  etcd: {
    schemes: ["etcd:", "etcds:"],
    form: `etcd://host:port,…/prefix (up to ${MAX_MEMBERS} members of one cluster; etcds:// with TLS; the user in store.user)`,
    isUrl: (text) => etcdPlace(text) !== undefined,
    // No part of it is secret.
    placeOf: (url) => url,
    failsOver: () => false,
    spreads: false,
    keepsLedger: false,
  },
};

/** The backend of a URL that was found good. */
export function backendOf(url: string): BackendName {
  for (const name of Object.keys(BACKENDS) as readonly BackendName[]) {
    if (BACKENDS[name].schemes.some((scheme) => url.startsWith(scheme))) return name;
  }
  throw new Error("a URL of no backend was taken for good");
}

/** The file that a URL of SQLite names. */
export function filePathOf(url: string): string {
  return url.slice("sqlite:".length);
}

function isDatabaseUrl(text: string): boolean {
  return (hostUrls(text) ?? [":"]).every((url) => {
    if (!URL.canParse(url)) return false;
    const { password, searchParams } = new URL(url);
    return password === "" && !searchParams.has("password");
  });
}

/** Built from the parts that may be shown, so that no part is shown by oversight. */
function databasePlace(text: string): string {
  const [first, ...others] = (hostUrls(text) ?? [text]).map((url) => new URL(url));
  if (first === undefined) return "";
  const { username, pathname, searchParams } = first;
  const user = username === "" ? "" : `${username}@`;
  // The folder of a Unix socket stands in a parameter.
  const socket = searchParams.get("host");
  const end = socket === null ? "" : `?host=${encodeURIComponent(socket)}`;
  const hosts = [first, ...others].map(({ host }) => host).join(",");
  return `postgres://${user}${hosts}${pathname}${end}`;
}
