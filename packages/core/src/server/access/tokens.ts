import type { AuditNote } from "../audit/ports.ts";
import type { Right } from "./rights.ts";

/** Most tokens in a store. All of them are in the memory of every server, so that an unknown one is not looked for. */
export const MAX_TOKENS = 10_000;
/** For how long a token that has expired is still listed. */
export const KEPT_EXPIRED_MS = 604_800_000;

/** A token as it is stored. The secret itself is nowhere. */
export interface Token {
  /** Public, random, and never given again. */
  readonly id: string;
  /** Name of the principal whom it proves. */
  readonly principal: string;
  readonly rights: readonly Right[];
  /** SHA-256 of the secret, in hexadecimal digits. */
  readonly hash: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** All tokens of a store at one moment. */
export interface TokenList {
  /** Another random text after every change; empty: nothing was ever changed. */
  readonly version: string;
  /** Undefined: the version is the one that was known. */
  readonly tokens: readonly Token[] | undefined;
}

/**
 * The tokens of a store. They are read and written also where nothing may be granted, since whoever accepts a store that went
 * back has to be known to it.
 */
export interface AccessStore {
  /** `known`: the version of the list that the caller has; undefined: none. */
  readTokens(known: string | undefined): Promise<TokenList>;
  /**
   * Adds one. False: there are MAX_TOKENS already, or one has its id. Those that expired KEPT_EXPIRED_MS ago, by the store's clock, are removed.
   * An outcome that is not known may leave a token whose secret nobody has.
   */
  addToken(token: Token, by?: AuditNote): Promise<boolean>;
  /** Removes one; false: there was none. What is answered outlives whatever the store outlives. */
  removeToken(id: string, by?: AuditNote): Promise<boolean>;
}
