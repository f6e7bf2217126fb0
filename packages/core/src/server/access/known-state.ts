import type { Clock } from "../../ports.ts";
import { type Right, Rights } from "./rights.ts";
import type { Principal } from "./principal.ts";
import type { Token, TokenList } from "./tokens.ts";

/** What a file says of callers. Its tokens are known whether the store answers or not. */
export interface AccessFile {
  readonly tokens: readonly Token[];
  readonly certificates: readonly CertificatePrincipal[];
}

/** A principal that is proved by a certificate with one of these names. */
interface CertificatePrincipal {
  readonly principal: string;
  readonly rights: readonly Right[];
  readonly names: readonly string[];
}

/** A token as it is known, ready to be compared. */
export interface KnownToken {
  readonly hash: string;
  readonly principal: Principal;
  readonly expiresAtMs: number;
  /** Whether the store said so, and may take it back. */
  readonly isOfStore: boolean;
}

/** What the store said of callers, for the next run of this server. */
export interface KeptCallers {
  readonly tokens: readonly Token[];
  /** On the holder's monotonic clock. */
  readonly believedUntil: number;
}

/** What a server knows of its callers. */
export interface KnownState {
  /** Of the list that the store answered in this run; undefined: none yet. */
  version: string | undefined;
  ofStore: readonly Token[];
  file: AccessFile;
  /** Until when what the store said is believed, on the monotonic clock; -Infinity: it never said anything. */
  believedUntil: number;
  tokens: ReadonlyMap<string, KnownToken>;
  certificates: ReadonlyMap<string, Principal>;
  /** Whom the tokens of Tinyid's clients prove, by the hash of each. */
  tinyid: ReadonlyMap<string, Principal>;
}

const EMPTY_FILE: AccessFile = { tokens: [], certificates: [] };

export function createKnownState(): KnownState {
  return {
    version: undefined,
    ofStore: [],
    file: EMPTY_FILE,
    believedUntil: -Infinity,
    tokens: new Map(),
    certificates: new Map(),
    tinyid: new Map(),
  };
}

/**
 * The store answered a list that was asked for at `sentAt`. True: something changed.
 *
 * INVARIANT: a list is believed for max_offline after it was *asked for*, as long as the server itself issues without its
 * store. So a token that was revoked while the server could not hear of it ends with that time.
 */
export function listRead(
  state: KnownState,
  { version, tokens }: TokenList,
  sentAt: number,
  maxOfflineMs: number | undefined,
): boolean {
  state.believedUntil = maxOfflineMs === undefined ? Infinity : sentAt + maxOfflineMs;
  if (tokens === undefined) return false;
  state.version = version;
  state.ofStore = tokens;
  arrange(state);
  return true;
}

/**
 * An earlier run of this server kept what the store had answered it.
 *
 * INVARIANT: it is believed until the earlier run would have stopped believing it. A restart makes it last no longer, and the
 * store is asked for the whole list.
 */
export function keptFound(state: KnownState, { tokens, believedUntil }: KeptCallers): void {
  state.ofStore = tokens;
  state.believedUntil = believedUntil;
  arrange(state);
}

/** What to keep for the next run; undefined: the store never said anything. */
export function keptOf({ ofStore: tokens, believedUntil }: KnownState): KeptCallers | undefined {
  return believedUntil === -Infinity ? undefined : { tokens, believedUntil };
}

export function fileRead(state: KnownState, file: AccessFile): void {
  state.file = file;
  arrange(state);
}

function known(token: Token, isOfStore: boolean): readonly [string, KnownToken] {
  const { id, principal: name, rights, hash, expiresAtMs } = token;
  const principal = { name, proof: "token", tokenId: id, rights: new Rights(rights) } as const;
  return [id, { hash, principal, expiresAtMs, isOfStore }];
}

function arrange(state: KnownState): void {
  const { ofStore, file } = state;
  // What the file says of a token stands, since its operator changes it without the store.
  state.tokens = new Map([
    ...ofStore.map((token) => known(token, true)),
    ...file.tokens.map((token) => known(token, false)),
  ]);
  state.certificates = new Map(
    file.certificates.flatMap(({ principal: name, rights, names }) => {
      const principal = {
        name,
        proof: "certificate",
        tokenId: "",
        rights: new Rights(rights),
      } as const;
      return names.map((one) => [one, principal] as const);
    }),
  );
}

/**
 * What is known of whether there are principals. `unknown`: nobody told yet, so there may be some whom anonymous callers must
 * not be taken for. A list that grew old still says that there were none, or that there were some; of an earlier run it says
 * that there were none only as long as it is believed.
 */
export function principalsKnown(
  { tokens, certificates, tinyid, version, believedUntil }: KnownState,
  clock: Clock,
): "some" | "none" | "unknown" {
  if (tokens.size > 0 || certificates.size > 0 || tinyid.size > 0) return "some";
  return version !== undefined || clock.now() <= believedUntil ? "none" : "unknown";
}

/** Whether somebody who shows something could be proved right: by the file, or by a list that is believed. */
export function provesSomebody(
  { certificates, file, tinyid, believedUntil }: KnownState,
  clock: Clock,
): boolean {
  if (certificates.size > 0 || file.tokens.length > 0 || tinyid.size > 0) return true;
  return clock.now() <= believedUntil;
}

/** What a token that is well-formed is worth. Its secret is compared by whoever asks. */
export function judgeToken(
  state: KnownState,
  id: string,
  { now, wallMs }: { readonly now: number; readonly wallMs: number },
): KnownToken | "invalid" | "unknown" {
  const token = state.tokens.get(id);
  const isBelieved = now <= state.believedUntil;
  if (token === undefined) return isBelieved ? "invalid" : "unknown";
  if (token.isOfStore && !isBelieved) return "unknown";
  return token.expiresAtMs <= wallMs ? "invalid" : token;
}

/** Who is proved by a certificate with these names. More than one: nobody, since it cannot be both. */
export function certified(state: KnownState, names: readonly string[]): Principal | undefined {
  const found = new Map<string, Principal>();
  for (const name of names) {
    const principal = state.certificates.get(name);
    if (principal !== undefined) found.set(principal.name, principal);
  }
  const [only] = found.values();
  return found.size === 1 ? only : undefined;
}
