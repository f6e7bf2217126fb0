import { IdmintError } from "@idmint/core";
import { storeUnavailable } from "@idmint/core/server";

/** What one host of a URL said, or that it said nothing. */
export type Look =
  | {
      readonly type: "server";
      readonly address: string;
      /** The cluster's system identifier: the same for a primary and its standbys. */
      readonly cluster: string;
      /** When the server was started, to the microsecond: two names of one server say the same. */
      readonly startedAt: string;
      /** Whether it takes writes. */
      readonly isPrimary: boolean;
    }
  | { readonly type: "silent"; readonly address: string; readonly error: IdmintError };

/** Which host is the only primary. Undefined: none of them at the moment. */
export type Choice =
  | { readonly type: "primary"; readonly at: number }
  | { readonly type: "refused"; readonly error: IdmintError };

/**
 * Chooses the primary out of all hosts of a URL.
 *
 * INVARIANT: a host is used only when it takes writes and no other host that answers does, or is of another cluster. A host
 * that is silent may be a primary too: what it is asked to grant, or has granted since, is for the proof in every statement
 * (identity.ts) and for who accepts the new primary.
 */
export function choosePrimary(looks: readonly Look[]): Choice {
  const servers = looks.filter((look) => look.type === "server");
  const [first, ...others] = servers;
  const alien = others.find(({ cluster }) => cluster !== first?.cluster);
  if (first !== undefined && alien !== undefined) {
    return refused(
      `the URL names two clusters: ${first.address} is of ${first.cluster}, ${alien.address} of ${alien.cluster}; name the hosts of one primary and its standbys`,
    );
  }
  const primaries = servers.filter(({ isPrimary }) => isPrimary);
  const [primary, second] = primaries;
  if (primary === undefined) return { type: "refused", error: withoutPrimary(looks) };
  const other = primaries.find(({ startedAt }) => startedAt !== primary.startedAt);
  if (other !== undefined) {
    return refused(
      `${primary.address} and ${other.address} of one URL are both primaries; stop the old one, so that nothing is granted by both`,
    );
  }
  if (second !== undefined) {
    return refused(
      `${primary.address} and ${second.address} of one URL are one server; name it once`,
    );
  }
  return { type: "primary", at: looks.indexOf(primary) };
}

function refused(message: string): Choice {
  return { type: "refused", error: new IdmintError("STORE_REFUSED", message) };
}

function withoutPrimary(looks: readonly Look[]): IdmintError {
  const silent = looks.filter((look) => look.type === "silent");
  // One that refuses for good is worth more words than others that are away.
  const told = silent.find(({ error }) => !error.retryable) ?? silent[0];
  if (silent.length === looks.length && told !== undefined) return told.error;
  const each = looks.map(({ type, address }) =>
    type === "server"
      ? `${address} is a standby, or takes no writes`
      : `${address} does not answer`,
  );
  return storeUnavailable(
    `no host of the URL is a primary: ${each.join("; ")}; promote one, or name the primary too`,
  );
}
