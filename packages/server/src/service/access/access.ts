import { timingSafeEqual } from "node:crypto";
import { type Clock, IdmintError, type Timers } from "@idmint/core";
import {
  type AccessFile,
  type AccessStore,
  bearerOf,
  certified,
  createKnownState,
  decide,
  fileRead,
  judgeToken,
  keptFound,
  keptOf,
  type KeptCallers,
  type KnownToken,
  listRead,
  type Principal,
  principalsKnown,
  provesSomebody,
  type Right,
  Rights,
  rolesText,
  TOKEN_BEGINNING,
  type Subject,
  type TokenList,
} from "@idmint/core/server";
import { within } from "../call.ts";
import type { Emit } from "../events.ts";
import { hashOfSecret } from "./new-token.ts";

/** A look at the store is given up after this time. */
const LOOK_MS = 1_000;
/** Looks that were given up and have not settled yet; a store that never settles them gets no more. */
const MAX_UNSETTLED = 4;
/** Headers that were found right. Each token has one, or a few that differ in spaces. */
const MAX_PROVED = 20_000;

export interface AccessPorts {
  readonly store: AccessStore;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly emit: Emit;
  /** What an earlier run of this server kept of the list. */
  readonly kept?: KeptCallers | undefined;
  /** Fulfils when what is kept of the list, if anything is, is on the disk. */
  readonly saved?: () => Promise<void>;
}

export interface AccessOptions {
  readonly intervalMs: number;
  /** For how long the store's list is believed without the store; undefined: for ever. */
  readonly maxOfflineMs: number | undefined;
  /** What callers who show nothing may do; `at-first`: everything, as long as there are no principals. */
  readonly anonymous: Rights | "at-first" | "none";
}

/** What a call wants: any of these roles, for the tags that its request is about. */
interface Wanted extends Subject {
  readonly about: (request: unknown) => string;
}

/** What a call shows of its caller. */
export interface Shown {
  /** The value of the header `authorization`. */
  readonly authorization: () => string | undefined;
  /** Names in the certificate of its connection; empty without one that was verified. */
  readonly certificateNames: () => readonly string[];
}

/**
 * Who callers are, and what they may. All tokens are in memory: an unknown one never reaches the store.
 *
 * INVARIANTS
 * - A secret is compared by its hash, in a time that does not depend on it, and is kept nowhere. A header that was found right
 *   stands for its token until the next change of the list.
 * - Nobody is let in by what is not known. Without a list, or with one that is too old, tokens of the store are UNAVAILABLE:
 *   another server may know. Whoever shows a token or certificate that is not right is never taken for anonymous.
 */
export class Access {
  readonly #ports: AccessPorts;
  readonly #options: AccessOptions;
  readonly #state = createKnownState();
  /** Tokens by the header that proved them. */
  #proved = new Map<string, KnownToken>();
  readonly #listeners: (() => void)[] = [];
  readonly #refreshing: (() => void)[] = [];
  readonly #endings: (() => void)[] = [];
  /** How far the wall clock is ahead of the monotonic one, as of the last look: reading it takes longer than all the rest. */
  #wallAheadMs: number;
  #isLooking = false;
  #unsettled = 0;
  #unread: IdmintError | undefined;
  #unreadSince: number | undefined;
  #isStopped = false;
  #stopTimer: (() => void) | undefined;

  constructor(ports: AccessPorts, options: AccessOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#wallAheadMs = ports.wallClock() - ports.clock.now();
    if (ports.kept !== undefined) keptFound(this.#state, ports.kept);
  }

  /** Looks for the first time, and then again and again. A store that does not answer is asked again. */
  async start(): Promise<void> {
    await this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopTimer?.();
    for (const end of [...this.#refreshing.splice(0), ...this.#endings]) end();
  }

  /** Called when it stops. */
  onStop(end: () => void): void {
    this.#endings.push(end);
  }

  /** Takes what a file says from now on. */
  takeFile(file: AccessFile): void {
    fileRead(this.#state, file);
    this.#changed();
  }

  /** Takes whom Tinyid's tokens prove from now on, by their hashes. */
  takeTinyidTokens(principals: ReadonlyMap<string, Principal>): void {
    this.#state.tinyid = principals;
  }

  /**
   * Whether a token that a client of Tinyid sends shows nothing of it. Such a client always sends one, which is none of ours, so
   * where callers may show nothing and no such token is known, it is one of them.
   */
  saysNothing(tinyidToken: string): boolean {
    const isOurs = tinyidToken.startsWith(TOKEN_BEGINNING);
    return this.#options.anonymous instanceof Rights && this.#state.tinyid.size === 0 && !isOurs;
  }

  /** Whom a token proves that a client of Tinyid sends; undefined: it is none of Tinyid's. */
  ofTinyidToken(token: string): Principal | undefined {
    const { tinyid } = this.#state;
    return tinyid.size === 0 ? undefined : tinyid.get(hashOfSecret(token).toString("hex"));
  }

  /** Whether somebody is known who may be let in. */
  get principals(): "some" | "none" | "unknown" {
    return principalsKnown(this.#state, this.#ports.clock);
  }

  /** What the next run of this server is to know; undefined: nothing. */
  get kept(): KeptCallers | undefined {
    return keptOf(this.#state);
  }

  /** Why the store's list could not be read at the last look; undefined: it was read. */
  get unread(): IdmintError | undefined {
    return this.#unread;
  }

  /** Whether a list is known, and anybody who would not be told that callers cannot be known now. */
  get knowsCallers(): boolean {
    // Before there is a list, what is good at other servers is refused here.
    if (this.kept === undefined) return false;
    const { anonymous } = this.#options;
    if (anonymous instanceof Rights || provesSomebody(this.#state, this.#ports.clock)) return true;
    return anonymous === "at-first" && this.principals === "none";
  }

  /** What a caller may do who has been let in. */
  rightsOf(principal: Principal | undefined): readonly Right[] {
    const { anonymous } = this.#options;
    const rights = principal?.rights ?? (anonymous instanceof Rights ? anonymous : EVERYTHING);
    return rights.list;
  }

  /** Called after each look, whether it showed something or not. */
  onLook(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Fulfils when a look that began after this call has ended, or soon anyway. */
  refresh(): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      this.#refreshing.push(resolve);
      if (!this.#isLooking) void this.#look();
    });
  }

  /** Who a caller is; undefined: anonymous. Throws UNAUTHENTICATED for what is shown and not right. */
  identify(shown: Shown): Principal | undefined {
    // Before there are principals nothing proves anything, and a header need not be looked for.
    if (this.principals === "none") return undefined;
    const header = shown.authorization();
    if (header !== undefined) return this.#ofHeader(header);
    if (this.#state.certificates.size === 0) return undefined;
    return certified(this.#state, shown.certificateNames());
  }

  /** Refuses whoever is anonymous, where that is not allowed. */
  assertKnown(principal: Principal | undefined): void {
    const { anonymous } = this.#options;
    if (principal !== undefined || anonymous instanceof Rights) return;
    const { principals } = this;
    if (principals === "none" && anonymous === "at-first") return;
    throw principals === "unknown" ? notKnownYet() : NOBODY;
  }

  /** See decide. Nothing is read of a request about which nobody has to be known. */
  authorise(principal: Principal | undefined, wanted: Wanted, request: unknown): void {
    const { anonymous } = this.#options;
    const holder = principal ?? (anonymous instanceof Rights ? { rights: anonymous } : undefined);
    if (holder === undefined) {
      this.assertKnown(principal);
      return;
    }
    const name = wanted.about(request);
    if (decide(holder, wanted, name) === "allowed") return;
    throw notAllowed(principal, wanted, name);
  }

  #ofHeader(header: string): Principal {
    const now = this.#ports.clock.now();
    const times = { now, wallMs: now + this.#wallAheadMs };
    const proved = this.#proved.get(header);
    const isBelieved = proved?.isOfStore !== true || times.now <= this.#state.believedUntil;
    if (proved !== undefined && isBelieved && times.wallMs < proved.expiresAtMs) {
      return proved.principal;
    }
    const parts = bearerOf(header);
    if (parts === undefined) throw BAD_TOKEN;
    const token = judgeToken(this.#state, parts.id, times);
    if (token === "unknown") throw notKnownYet();
    if (token === "invalid") throw BAD_TOKEN;
    if (!timingSafeEqual(hashOfSecret(parts.secret), Buffer.from(token.hash, "hex"))) {
      throw BAD_TOKEN;
    }
    if (this.#proved.size < MAX_PROVED) this.#proved.set(header, token);
    return token.principal;
  }

  #changed(): void {
    this.#proved = new Map();
  }

  async #look(): Promise<void> {
    const { clock, timers, wallClock } = this.#ports;
    this.#isLooking = true;
    this.#stopTimer?.();
    const waiting = this.#refreshing.splice(0);
    const startedAt = clock.now();
    this.#wallAheadMs = wallClock() - startedAt;
    await this.#read(startedAt);
    for (const done of waiting) done();
    for (const listener of this.#listeners) listener();
    this.#isLooking = false;
    if (this.#isStopped) return;
    const hasWaiters = this.#refreshing.length > 0;
    const waitMs = hasWaiters ? 0 : startedAt + this.#options.intervalMs - clock.now();
    this.#stopTimer = timers.after(Math.max(0, waitMs), () => void this.#look());
  }

  async #read(sentAt: number): Promise<void> {
    const list = await this.#ask(sentAt);
    const { timers, saved } = this.#ports;
    if (list === undefined) return;
    if (listRead(this.#state, list, sentAt, this.#options.maxOfflineMs)) this.#changed();
    try {
      // Whoever made or revoked a token is not answered before a next run of this server would know of it. What could not be
      // written is tried again.
      await within(async () => saved?.(), LOOK_MS, timers);
    } catch {
      // The file of leases tells that it cannot be written.
    }
  }

  /** Undefined where the store does not answer: what is known grows old. */
  async #ask(sentAt: number): Promise<TokenList | undefined> {
    if (this.#unsettled >= MAX_UNSETTLED) return undefined;
    const { store, timers, emit } = this.#ports;
    this.#unsettled++;
    const asked = store.readTokens(this.#state.version).finally(() => this.#unsettled--);
    try {
      const list = await within(() => asked, LOOK_MS, timers);
      if (this.#unreadSince !== undefined) {
        emit({ type: "callers-read", afterMs: this.#ports.clock.now() - this.#unreadSince });
      }
      this.#unread = undefined;
      this.#unreadSince = undefined;
      return list;
    } catch (thrown) {
      this.#unread = IdmintError.from(thrown);
      this.#unreadSince ??= sentAt;
      emit({ type: "callers-unread", error: this.#unread });
      return undefined;
    }
  }
}

const NOBODY: IdmintError = Object.freeze(
  new IdmintError(
    "UNAUTHENTICATED",
    "this server wants to know its callers: send a token as the header `authorization: Bearer …`, or show a client certificate that it knows",
  ),
);

/** One text for whatever is wrong, so that nobody learns which tokens there are. */
const BAD_TOKEN: IdmintError = Object.freeze(
  new IdmintError(
    "UNAUTHENTICATED",
    "the token is not valid: it is mistyped, unknown, revoked or expired; idmint token list shows those that there are",
  ),
);

function notKnownYet(): IdmintError {
  const text = "this server has not heard from its store for too long to know its callers";
  return new IdmintError("STORE_UNAVAILABLE", text, { retryAfterMs: 1_000 });
}

/** What everybody may where nobody has to be known. */
const EVERYTHING = new Rights([
  { role: "issue", tags: "*" },
  { role: "admin", tags: "*" },
]);

/** Says which role is missing and who gives it. A stranger is asked to say who it is first. */
function notAllowed(
  principal: Principal | undefined,
  { roles, isBeginning }: Subject,
  name: string,
): IdmintError {
  const role = rolesText(roles);
  const tags = isBeginning ? `${name.slice(0, 128)}*` : name.slice(0, 128);
  const lacks = `the role ${role} for "${tags}"`;
  if (principal === undefined) {
    const text = `callers without a token do not have ${lacks} (access.anonymous): send a token that has it as the header \`authorization: Bearer …\``;
    return new IdmintError("UNAUTHENTICATED", text, { metadata: { role } });
  }
  const text = `principal "${principal.name}" lacks ${lacks}; whoever has the role admin for "*" can give it, by a new token (idmint token create), or it stands in access.file`;
  return new IdmintError("PERMISSION_DENIED", text, {
    metadata: { principal: principal.name, role },
  });
}
