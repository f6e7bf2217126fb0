import { IdmintError } from "../errors.ts";
import type { KindName } from "../kinds/table.ts";
import { wordOf } from "../kinds/typed.ts";

/** When a caller may try again after the store could not be asked, in milliseconds. */
const RETRY_AFTER_MS = 200;

/** The store was not reached, or its outcome is not known: what it may have granted is never used. */
export function storeUnavailable(text: string, cause?: unknown): IdmintError {
  return new IdmintError("STORE_UNAVAILABLE", text, { retryAfterMs: RETRY_AFTER_MS, cause });
}

/** The store answers, and refuses what it let this server do before. Callers try again; operators read what it said. */
export function storeRefusesNow(text: string, cause: unknown): IdmintError {
  const metadata = { refusal: "true" };
  return new IdmintError("STORE_UNAVAILABLE", text, {
    metadata,
    retryAfterMs: RETRY_AFTER_MS,
    cause,
  });
}

/** Whether a store only counts as away since it refuses. */
export function isRefusal({ metadata }: IdmintError): boolean {
  return metadata["refusal"] !== undefined;
}

/** The store went back: ids granted since may be granted again, so nothing is issued until an operator has looked. */
export function storeWentBack(detail: string, tag?: string): IdmintError {
  const what = tag === undefined ? "" : ` for tag "${tag}"`;
  return wentBack(what, tag === undefined ? { detail } : { detail, tag });
}

/** The store as a whole is another one than the accepted. Polls show it, and when it is over; see `isOfStore`. */
export function storeIsAnother(detail: string): IdmintError {
  return wentBack("", { detail, scope: "store" });
}

export function isOfStore({ metadata }: IdmintError): boolean {
  return metadata["scope"] === "store";
}

/** Another store answers than the one that this server belongs to. It counts as away: the right one may come back. */
export function storeIsForeign(storeId: string, pinned: string): IdmintError {
  return new IdmintError(
    "STORE_UNAVAILABLE",
    `another store answers at the store's address: its id is ${storeId}, and this server belongs to ${pinned}; mend the address, or see idmint store adopt`,
    { metadata: { store_id: storeId, pinned }, retryAfterMs: RETRY_AFTER_MS },
  );
}

/** A tag's counter in Redis that another store keeps. */
export function redisIsForeign(
  { redisServer, key }: { readonly redisServer: string; readonly key: string },
  owner: string,
  own: string,
): IdmintError {
  return new IdmintError(
    "STORE_REFUSED",
    `the key ${key} in Redis "${redisServer}" belongs to another store: its id is ${owner}, and this server belongs to ${own}; let redis.urls lead to another Redis or another database number, or delete the key when that store is gone`,
    { metadata: { redis_server: redisServer, key, owner, store_id: own } },
  );
}

/** The same of a cluster, none of whose members that answer is of the store. */
export function noMemberAnswers(strangers: string, pinned: string, cause: unknown): IdmintError {
  return new IdmintError(
    "STORE_UNAVAILABLE",
    `no member of the store answers; ${strangers}; mend the address, or see idmint store adopt`,
    { metadata: { pinned }, retryAfterMs: RETRY_AFTER_MS, cause },
  );
}

/** Whether a store only counts as away since it is another one. */
export function isForeign({ metadata }: IdmintError): boolean {
  return metadata["pinned"] !== undefined;
}

function wentBack(what: string, metadata: Readonly<Record<string, string>>): IdmintError {
  return new IdmintError(
    "STORE_EPOCH_CHANGED",
    `the store went back${what}: ${metadata["detail"]}; nothing is issued until an operator accepts it with: idmint store accept --gap N`,
    { metadata },
  );
}

/** There is no such tag, and how to make it. */
/** `kind`: of which kind it has to be for what was asked of it. */
export function tagNotFound(tag: string, kind: KindName = "segment"): IdmintError {
  return new IdmintError(
    "TAG_NOT_FOUND",
    `tag "${tag}" does not exist; create it with: idmint tag create ${tag} --kind ${wordOf(kind)}`,
    { metadata: { tag } },
  );
}

/** An operator paused the tag. */
export function tagPaused(tag: string): IdmintError {
  return new IdmintError(
    "TAG_PAUSED",
    `tag "${tag}" is paused; an operator resumes it with: idmint tag resume ${tag}`,
    { metadata: { tag } },
  );
}
