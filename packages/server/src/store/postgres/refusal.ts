import { IdmintError } from "@idmint/core";

const PASSWORDS =
  "the password in IDMINT_STORE_PASSWORD (of a ticket database: IDMINT_TICKET_PASSWORD)";

/** What to do about an error of a database that was never reached, by SQLSTATE or by the code of the system. */
const REFUSED: Readonly<Record<string, string>> = {
  "28000": "check the user in its URL, and pg_hba.conf of the server",
  "28P01": `check the user in its URL, and ${PASSWORDS}`,
  "3D000": "check the name of the database in its URL, or create the database",
  "42501": "grant the role what docs/operations.md lists, or check the user in its URL",
  CERT_HAS_EXPIRED: "renew the certificate of the server",
  DEPTH_ZERO_SELF_SIGNED_CERT: "name its certificate authority with sslrootcert in its URL",
  ERR_TLS_CERT_ALTNAME_INVALID: "check the host in its URL: the certificate is for another one",
  SELF_SIGNED_CERT_IN_CHAIN: "name its certificate authority with sslrootcert in its URL",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "name its certificate authority with sslrootcert in its URL",
};
const NO_PASSWORD = /password must be a (?:non-empty )?string/u;
/** Unlike the codes of the system, such as EPIPE, each has a digit. */
const SQL_STATE = /^(?=.*\d)[0-9A-Z]{5}$/u;
const AWAY: Readonly<Record<string, string>> = {
  EAI_AGAIN: "check the host in its URL, and the name service",
  ENOTFOUND: "check the host in its URL",
  "53300": "raise max_connections, or lower store.pool_size",
  "57P03": "wait until it has started",
};

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
  const wayOut = REFUSED[code ?? ""] ?? (hasNoTls ? "check sslmode in its URL" : undefined);
  if (wayOut !== undefined) {
    return new IdmintError("STORE_REFUSED", `${text} refuses (${said}); ${wayOut}`, { cause });
  }
  const away = AWAY[code ?? ""];
  const told =
    away === undefined && SQL_STATE.test(code ?? "")
      ? `answers with an error (${said}); its log may say more`
      : `does not answer (${said}); ${away ?? "check that it runs, and host and port in its URL"}`;
  return new IdmintError("STORE_UNAVAILABLE", `${text} ${told}`, { cause });
}
