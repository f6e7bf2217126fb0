import { status } from "@grpc/grpc-js";
import { IdmintError } from "@idmint/core";
import {
  noMemberAnswers,
  storeIsAnother,
  storeRefusesNow,
  storeUnavailable,
} from "@idmint/core/server";
import { refusalTextOf } from "../../shared/failures.ts";

/**
 * What a failed call means.
 *
 * - `not done`: the cluster did nothing; another member may do it.
 * - `unknown`: it may have been done, or be done later.
 * - `token`: the session of the user is over; after another log-in it may be asked again.
 * - `refused`: nothing was done, and nothing will be until an operator changes something.
 * - `full`: nothing was done, since the space that etcd may use is full.
 * - `compacted`: the revision that was asked for is gone.
 * - `corrupt`: etcd found that its members differ.
 * - `stranger`: the member is of another store, and was asked for nothing else.
 */
export type FailureKind =
  | "compacted"
  | "corrupt"
  | "full"
  | "not done"
  | "refused"
  | "stranger"
  | "token"
  | "unknown";

/** A failed call of a member. */
export class CallFailure extends Error {
  readonly kind: FailureKind;
  readonly said: string;

  constructor(kind: FailureKind, at: string, said: string) {
    super(`etcd at ${at}: ${said}`);
    this.kind = kind;
    this.said = said;
  }
}

/** etcd's own words, by what they mean. Codes alone do not tell: several mean more than one. */
const WORDS: readonly (readonly [RegExp, FailureKind])[] = [
  [/database space exceeded/u, "full"],
  [/invalid auth token|revision of auth store is old/u, "token"],
  [/has been compacted/u, "compacted"],
  [/corrupt/u, "corrupt"],
  [/no leader|too many requests|not supported for learner/u, "not done"],
  // grpc-js: the call never left this process.
  [/^No connection established|^Name resolution failed/u, "not done"],
  [
    /permission denied|user name is empty|authentication failed|authentication is not enabled/u,
    "refused",
  ],
  [/too many operations|request is too large|unknown (?:service|method)/u, "refused"],
];

export function failureOf(at: string, code: status, said: string): CallFailure {
  const kind = WORDS.find(([words]) => words.test(said))?.[1];
  const isRefused = code === status.PERMISSION_DENIED || code === status.UNIMPLEMENTED;
  const byCode = code === status.UNAUTHENTICATED ? "token" : isRefused ? "refused" : "unknown";
  return new CallFailure(kind ?? byCode, at, said);
}

/** Whether a failed call may be made again, at another member, by somebody whom a second time does no harm. */
export function isPassing(error: unknown): error is CallFailure {
  return error instanceof CallFailure && (error.kind === "not done" || error.kind === "unknown");
}

/** Whether asking this member again would change nothing. It did nothing, and another one may do it. */
export function isHopeless(error: unknown): error is CallFailure {
  return error instanceof CallFailure && ["corrupt", "refused", "stranger"].includes(error.kind);
}

const WAYS_OUT: readonly (readonly [RegExp, string])[] = [
  [
    /authentication is not enabled/u,
    "store.user is set, but etcd asks nobody who they are: enable its authentication, or take store.user away",
  ],
  [
    /user name is empty/u,
    "it wants a user: set store.user and the password in IDMINT_STORE_PASSWORD",
  ],
  [
    /authentication failed|invalid auth token/u,
    "check store.user, and the password in IDMINT_STORE_PASSWORD",
  ],
  [
    /permission denied/u,
    "give the user a role that may read and write all keys of the store's prefix; see docs/etcd.md",
  ],
  [/too many operations/u, "do not set --max-txn-ops of etcd below its default, 128"],
  [/request is too large/u, "do not set --max-request-bytes of etcd below its default"],
  [
    /self[- ]signed|unable to verify|unable to get .*issuer|certificate/u,
    "check store.tls_ca_file, and the names in etcd's certificate",
  ],
  [
    /EPROTO|wrong version number|packet length too long|ECONNRESET|Protocol error|first record does not look/u,
    "check whether it speaks TLS: etcds:// is with TLS, etcd:// without",
  ],
  [/Name resolution failed|ENOTFOUND/u, "check its host in store.url"],
];

/**
 * The error for callers. `isNew`: the cluster has done nothing for this process yet, so most likely it is configured
 * wrongly. Later the same words may be of a passing failure. `strangers`: members of
 * other stores than the pinned one.
 */
export function errorOf(
  thrown: unknown,
  isNew: boolean,
  strangers?: { readonly told: readonly string[]; readonly pinned: string },
): IdmintError {
  if (thrown instanceof IdmintError) return thrown;
  if (!(thrown instanceof CallFailure)) return storeUnavailable("the store failed", thrown);
  const { kind, message, said } = thrown;
  if (kind === "corrupt") return storeIsAnother("etcd says that its members differ (CORRUPT)");
  if (kind === "full") {
    return storeRefusesNow(
      "etcd is full (NOSPACE) and takes no writes; compact and defragment it, then disarm the alarm, as docs/etcd.md has it",
      thrown,
    );
  }
  const isSilent = isPassing(thrown) || kind === "stranger";
  if (isSilent && strangers !== undefined && strangers.told.length > 0) {
    return noMemberAnswers(strangers.told.join("; "), strangers.pinned, thrown);
  }
  const wayOut = WAYS_OUT.find(([words]) => words.test(said))?.[1];
  if (!isNew) {
    const isRefused = kind === "refused" || kind === "token";
    return isRefused && wayOut !== undefined
      ? storeRefusesNow(`etcd refuses (${said}); ${wayOut}`, thrown)
      : storeUnavailable("etcd failed or did not answer", thrown);
  }
  if (wayOut === undefined) {
    const text = `${message}; check that it runs and has a quorum, and the hosts and ports in store.url`;
    return new IdmintError("STORE_UNAVAILABLE", text, { cause: thrown });
  }
  return new IdmintError("STORE_REFUSED", `${message}; ${wayOut}`, { cause: thrown });
}

/** Why etcd does not do what it was asked, until an operator changes something; empty for what may pass by itself. */
export function refusalIn(thrown: unknown): string {
  return refusalTextOf(errorOf(thrown, false));
}
