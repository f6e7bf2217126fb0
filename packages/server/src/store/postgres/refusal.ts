import { IdmintError } from "@idmint/core";
import { storeRefusesNow, storeUnavailable } from "@idmint/core/server";
import { sessionShared } from "./session.ts";

/**
 * What a database has done for this process: nothing, answered something, or all that a server asks of it. What it refuses
 * before is taken for a fault of the configuration, and later for one that passes.
 */
export type Deeds = "none" | "answered" | "served";

const READ_ONLY = "25006";
const NOT_ALLOWED = "42501";
const LOCK_NOT_AVAILABLE = "55P03";
/** By the server's statement_timeout: several waits that were each short enough took too long together. */
const QUERY_CANCELED = "57014";
/** A statement that this session prepared is not there, or one is that it did not prepare: the session is shared. */
const LOST_STATEMENT: ReadonlySet<string> = new Set(["26000", "42P05"]);
/** A text with characters that no database, or not this one, can store. */
const BAD_TEXT: ReadonlySet<string> = new Set(["22021", "22P05"]);

const PASSWORDS =
  "the password in IDMINT_STORE_PASSWORD (of a ticket database: IDMINT_TICKET_PASSWORD)";

/** What to do about an error of a database that was never reached, by SQLSTATE or by the code of the system. */
const REFUSED: Readonly<Record<string, string>> = {
  "28000": "check the user in its URL, and pg_hba.conf of the server",
  "28P01": `check the user in its URL, and ${PASSWORDS}`,
  "3D000": "check the name of the database in its URL, or create the database",
  [NOT_ALLOWED]: "grant the role what docs/postgres.md lists, or check the user in its URL",
  [READ_ONLY]:
    "switch default_transaction_read_only off, which may be set for the role, the database or the server",
  CERT_HAS_EXPIRED: "renew the certificate of the server",
  DEPTH_ZERO_SELF_SIGNED_CERT: "name its certificate authority with sslrootcert in its URL",
  ERR_TLS_CERT_ALTNAME_INVALID: "check the host in its URL: the certificate is for another one",
  SELF_SIGNED_CERT_IN_CHAIN: "name its certificate authority with sslrootcert in its URL",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "name its certificate authority with sslrootcert in its URL",
};
const NO_PASSWORD = /password must be a (?:non-empty )?string/u;
/** What Node says of a file that a URL names. */
const NO_FILE = /^E[A-Z]+: .*, (?:open|read)\b/u;
const FILES = "check the files that sslrootcert, sslcert and sslkey in its URL name";
/** A limit of one role or database, below that of the server. */
const LIMITED = /too many connections for (?:role|database)/u;
const LIMITS =
  "raise the CONNECTION LIMIT of the role or database (ALTER ROLE, ALTER DATABASE), or lower store.pool_size";
/** Unlike the codes of the system, such as EPIPE, each has a digit. */
const SQL_STATE = /^(?=.*\d)[0-9A-Z]{5}$/u;
const AWAY: Readonly<Record<string, string>> = {
  EAI_AGAIN: "check the host in its URL, and the name service",
  ENOTFOUND: "check the host in its URL",
  "53300": "raise max_connections, or lower store.pool_size",
  "57P03": "wait until it has started",
};

/** Whatever went wrong below, without the password that drivers may put into their errors. */
export function failureOf(
  error: unknown,
  {
    address,
    secret,
    deeds,
  }: { readonly address: string; readonly secret: string; readonly deeds: Deeds },
): IdmintError {
  if (error instanceof IdmintError) return error;
  const code = codeOf(error) ?? "";
  if (LOST_STATEMENT.has(code)) return sessionShared();
  if (isLockTimeout(error)) {
    return storeUnavailable("another session of the database holds a lock for too long");
  }
  if (code === QUERY_CANCELED && deeds !== "none") {
    return storeUnavailable(
      "a statement took too long: other sessions hold locks, or the database is slow",
    );
  }
  const { message = "" } = error as { message?: string };
  const said = secret === "" ? message : message.replaceAll(secret, "…");
  const cause = new Error([code, said].filter((part) => part !== "").join(" "));
  if (BAD_TEXT.has(code)) return badText(said, cause);
  const isRefusal = code === NOT_ALLOWED || code === READ_ONLY;
  if (deeds === "none" || (isRefusal && deeds === "answered")) {
    return refusal(address, said || code, code);
  }
  if (isRefusal) return storeRefusesNow(`PostgreSQL refuses (${said}); ${REFUSED[code]}`, cause);
  return storeUnavailable("PostgreSQL failed or did not answer", cause);
}

/** What says that nothing was done, and that the server answers. */
const HARMLESS: ReadonlySet<string> = new Set([
  LOCK_NOT_AVAILABLE,
  NOT_ALLOWED,
  QUERY_CANCELED,
  ...BAD_TEXT,
]);

/** Nothing was done, and the connection is as good as before. After READ_ONLY another host may be the one to ask. */
export function isHarmless(error: unknown): boolean {
  return HARMLESS.has(codeOf(error) ?? "");
}

/** Whether a statement failed only since a lock was not had in time. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === LOCK_NOT_AVAILABLE;
}

function codeOf(error: unknown): string | undefined {
  return (error as { code?: string }).code;
}

function badText(said: string, cause: Error): IdmintError {
  const text = `a text of the request holds what the database cannot store (${said}); leave such characters out, or make the database with the encoding UTF8`;
  return new IdmintError("INVALID_ARGUMENT", text, { cause });
}

/**
 * An error of a database that has done nothing for this process yet: most likely it is configured wrongly. `said` is what
 * the driver or the server said, without secrets. Later the same error may be a passing one, and is told in general terms.
 */
export function refusal(at: string, said: string, code: string | undefined): IdmintError {
  const text = `PostgreSQL at ${at}`;
  const cause = new Error([code, said].filter(Boolean).join(" "));
  // The driver's own words when the server wants a password and none is configured, and when it has no TLS.
  if (NO_PASSWORD.test(said)) {
    const message = `${text} wants a password, and none is configured; set ${PASSWORDS}`;
    return new IdmintError("STORE_REFUSED", message, { cause });
  }
  const hasNoTls = said.includes("does not support SSL");
  const wayOut =
    (NO_FILE.test(said) ? FILES : REFUSED[code ?? ""]) ??
    (hasNoTls ? "check sslmode in its URL" : undefined);
  if (wayOut !== undefined) {
    return new IdmintError("STORE_REFUSED", `${text} refuses (${said}); ${wayOut}`, { cause });
  }
  const away = LIMITED.test(said) ? LIMITS : AWAY[code ?? ""];
  const told =
    away === undefined && SQL_STATE.test(code ?? "")
      ? `answers with an error (${said}); its log may say more`
      : `does not answer (${said}); ${away ?? "check that it runs, and host and port in its URL"}`;
  return new IdmintError("STORE_UNAVAILABLE", `${text} ${told}`, { cause });
}
