import { bounded } from "@idmint/core";
import { storeIsAnother, storeUnavailable, type Tag } from "@idmint/core/server";
import { nodeTimers } from "../../../timers.ts";
import { DEFAULT_TIMEOUT_MS, type EtcdConfig } from "../../shared/config.ts";
import { storeClosed } from "../../shared/failures.ts";
import { passingPins, type StorePin } from "../../pins/pin.ts";
import { CallFailure, errorOf } from "../cluster/failure.ts";
import { GuardState } from "../cluster/guard-state.ts";
import type { Member } from "../cluster/member.ts";
import { type Ask, type Effect, Members } from "../cluster/members.ts";
import type { KeyValue, Op, OpAnswer, Range } from "../cluster/protocol.ts";
import { Watch } from "../cluster/watch.ts";
import { StoreClock } from "./clocks-state.ts";
import { Keys } from "./keys.ts";
import { inLanes, partsOf } from "./lanes.ts";
import { Proof, type Standing } from "./proof.ts";

/** Most calls at once, running and waiting for each other. */
const MAX_RUNNING = 1_000;
/** Most tags whose rows are kept, so that a grant needs no reading. */
const MAX_KEPT = 10_000;
/** Most operations of a transaction that is put together here; etcd takes 128. */
export const MAX_OPS = 100;
/** Most rows of one transaction that changes them; what goes with a row is within the limit too. */
export const MAX_ROWS = 64;
/** How often a transaction is sent again because somebody else wrote what it compares. */
const MAX_CONFLICTS = 1_000;
/** How long after its deadline a call may take to notice, in milliseconds. */
const LATE_MS = 100;

/** What a transaction answered. */
export interface Done {
  readonly answers: readonly OpAnswer[];
  readonly standing: Standing;
  /** etcd's revision after it. */
  readonly revision: string;
}

/** How a transaction is made. */
export interface TxnOptions {
  readonly effect: Effect;
  /** Default: refuse. */
  readonly fenced?: "allow" | "refuse";
  /** Proves anew that the cluster is the accepted one. Default: only where a connection was not used for it yet. */
  readonly prove?: boolean;
}

/** A row and the revision of etcd at which it was written; undefined and "0" where there is none. */
export interface Kept {
  readonly tag: Tag | undefined;
  readonly modRevision: string;
}

/** This server's row as its last acknowledged renewal left it. */
export interface OwnRow {
  readonly id: string;
  /** Of the store's history that it was renewed in. */
  readonly incarnation: string;
  readonly renewals: bigint;
  /** Revision of etcd at which it was written. */
  readonly revision: string;
}

/** This process's access to one store in an etcd. */
export class Etcd {
  readonly keys: Keys;
  readonly clock: StoreClock = new StoreClock();
  /** Rows as this process saw them last. Whatever is done by them compares their revisions. */
  readonly kept: Map<string, Kept> = new Map();
  /** What was found of compaction, and when to look again, on the monotonic clock. */
  readonly compaction = { lookAt: 0, trouble: "" };
  /** When members that are not asked are looked at next, on the monotonic clock. */
  lookAroundAt = 0;
  /** Counts the give-backs that this process began. */
  lowered = 0;
  /** This server's lease. */
  lease: { readonly id: string; readonly ttlS: number } | undefined;
  /** Undefined before this server was renewed. */
  ownRow: OwnRow | undefined;
  /** The row as an earlier life of the server left it, and whether the store was found to have that in its history. */
  earlier: OwnRow | undefined;
  hasEarlier = false;
  readonly config: EtcdConfig;
  readonly pin: StorePin;
  readonly #members: Members;
  readonly #guard = new GuardState();
  readonly #proof: Proof;
  readonly #timeoutMs: number;
  /** By tag: the end of the last piece of work that has the tag to itself. */
  readonly #lanes = new Map<string, Promise<void>>();
  #standing: Standing | undefined;
  #hasWorked = false;
  #running = 0;
  readonly #onIdle: (() => void)[] = [];
  #closing: Promise<void> | undefined;
  #watch: Watch | undefined;

  /** `pin`: which store this process works with; by default the expected one, or the first that is found. */
  constructor(config: EtcdConfig, pin: StorePin = passingPins(config.expectId).of("")) {
    this.config = config;
    this.pin = pin;
    this.keys = new Keys(config.prefix);
    this.#proof = new Proof(this.#guard, pin, this.keys);
    this.#members = new Members(config);
    this.#timeoutMs = config.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  }

  /** Lets the calls before it end, which their time-outs see to, then closes the connections. */
  async close(): Promise<void> {
    this.#closing ??= this.#end();
    await this.#closing;
  }

  /** Calls `heard` when an operator may have changed something. The keys are written by changes alone, not by grants. */
  listen(heard: () => void): void {
    if (this.#watch !== undefined || this.#closing !== undefined) return;
    const keys = (["access", "revision", "store", "traffic"] as const).map((name) =>
      this.keys.one(name),
    );
    this.#watch = new Watch(this.#members, keys, heard);
  }

  async #end(): Promise<void> {
    this.#watch?.close();
    while (this.#running > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    this.#members.close();
  }

  /** Runs one call of the store; whatever goes wrong becomes an IdmintError. */
  async run<T>(
    work: (session: Session) => Promise<T>,
    timeoutMs: number = this.#timeoutMs,
  ): Promise<T> {
    if (this.#closing !== undefined) throw storeClosed();
    if (this.#running >= MAX_RUNNING)
      throw storeUnavailable("too many requests wait for the store");
    this.#running++;
    const deadlineMs = performance.now() + timeoutMs;
    const working = work(new Session(this, deadlineMs)).finally(() => {
      this.#running--;
      if (this.#running === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    });
    try {
      return await bounded(working, timeoutMs + LATE_MS, nodeTimers, () => {
        throw storeUnavailable("the store did not answer in time");
      });
    } catch (error) {
      const { id } = this.pin;
      const strangers = id === undefined ? undefined : { told: this.troubles, pinned: id };
      throw errorOf(error, !this.#hasWorked, strangers);
    }
  }

  /** The store's wall clock, milliseconds since 1970. */
  now(): number {
    return this.clock.at(Date.now(), performance.now());
  }

  /** Remembers a row. */
  keep(name: string, kept: Kept): void {
    this.kept.delete(name);
    this.kept.set(name, kept);
    const [oldest] = this.kept.keys();
    if (this.kept.size > MAX_KEPT && oldest !== undefined) this.kept.delete(oldest);
  }

  /** What keeps members from being used, in words, of each that is not. */
  get troubles(): readonly string[] {
    return this.#members.troubles;
  }

  /** Names what keeps a member from being used; empty: nothing. */
  name(at: string, trouble: string): void {
    this.#members.name(at, trouble);
  }

  /**
   * Calls of one member, about nothing that the guard looks at: before the store is known of any, and then of one that proved
   * that it is of that store.
   */
  async ask<T>(deadlineMs: number, work: (ask: Ask) => Promise<T>): Promise<T> {
    const asked = async (member: Member, ask: Ask): Promise<T> => {
      if (this.pin.id !== undefined && !member.isProved) await this.#prove(member, ask);
      return work(ask);
    };
    const answer = await this.#members.run("any", deadlineMs, this.#attemptMs, asked);
    this.#hasWorked = true;
    return answer;
  }

  /** Asks all members at once, whichever store they are of; see Members.askAll. */
  async askAll<T>(work: (ask: Ask) => Promise<T>): Promise<ReadonlyMap<string, CallFailure | T>> {
    return this.#members.askAll(performance.now() + this.#timeoutMs / 4, work);
  }

  /** A member has half of the time, so that another one can be asked. */
  get #attemptMs(): number {
    return this.#timeoutMs / 2;
  }

  /**
   * Runs operations in one transaction, on the store that was accepted.
   *
   * INVARIANT: what is answered was done in the cluster and under the record that were judged. The transaction compares the
   * key `store`, whose random names no other store has, and which every accept changes: so it does nothing in another store
   * to which the address leads meanwhile, and nothing is learned of that one. Its header has the cluster's id and a revision
   * that is not below any that was seen when it was sent. The connection is one over which the cluster proved itself.
   */
  async transact(
    deadlineMs: number,
    ops: readonly Op[],
    { effect, fenced = "refuse", prove = false }: TxnOptions,
  ): Promise<Done> {
    for (let attempt = 1; attempt <= MAX_CONFLICTS; attempt++) {
      const done = await this.#members.run(
        effect,
        deadlineMs,
        this.#attemptMs,
        async (member, ask) => {
          const mustProve = (prove && attempt === 1) || !member.isProved;
          const standing = mustProve ? undefined : this.#standing;
          const known = standing ?? (await this.#prove(member, ask));
          if (known.fenced !== "" && fenced === "refuse") throw storeIsAnother(known.fenced);
          return this.#transact(member, ask, ops, known);
        },
      );
      if (done !== undefined) {
        this.#hasWorked = true;
        return done;
      }
    }
    throw storeUnavailable("the record of the store changes all the time");
  }

  async #transact(
    member: Member,
    ask: Ask,
    ops: readonly Op[],
    standing: Standing,
  ): Promise<Done | undefined> {
    const { record, value } = standing;
    const sentAt = this.#guard.seen;
    const compare = [{ key: this.keys.one("store"), value }];
    const { header, succeeded, answers } = await ask("txn", { compare, success: ops, failure: [] });
    if (header === null) throw new CallFailure("unknown", member.at, "an answer without a header");
    if (!succeeded) {
      member.isProved = false;
      this.#standing = undefined;
      return undefined;
    }
    const { clusterId, revision } = header;
    const found = this.#guard.checkHeader(record, clusterId, BigInt(revision), sentAt);
    if (found !== "" && standing.fenced === "") throw storeIsAnother(found);
    return { answers, standing, revision };
  }

  async #prove(member: Member, ask: Ask): Promise<Standing> {
    const standing = await this.#proof.prove(member, ask);
    this.#standing = standing.fenced === "" ? standing : undefined;
    return standing;
  }

  /** Takes note of a transaction of this process that wrote. */
  wrote({ standing, revision }: Done): void {
    this.#guard.wrote(standing.record, BigInt(revision));
  }

  /**
   * Runs work that has some tags to itself within this process: one transaction of a tag is in flight, so that its own do not
   * meet each other. Others wait, in the order in which they came.
   */
  async alone<T>(tags: readonly string[], deadlineMs: number, work: () => Promise<T>): Promise<T> {
    const before = tags.map((tag) => this.#lanes.get(tag)).filter((lane) => lane !== undefined);
    const { promise, resolve } = Promise.withResolvers<void>();
    // Places are taken in one turn, so nobody waits for somebody who waits for them.
    for (const tag of tags) this.#lanes.set(tag, promise);
    const all = Promise.all(before);
    try {
      await bounded(all, deadlineMs - performance.now(), nodeTimers, () => {
        throw storeUnavailable("the requests before this one took too long");
      });
      return await work();
    } finally {
      // Whoever gave up waiting passes on the wait for those before.
      void this.#leave(all, tags, promise, resolve);
    }
  }

  async #leave(
    before: Promise<unknown>,
    tags: readonly string[],
    lane: Promise<void>,
    resolve: () => void,
  ): Promise<void> {
    await before;
    resolve();
    for (const tag of tags) if (this.#lanes.get(tag) === lane) this.#lanes.delete(tag);
  }
}

/** One call of the store, and the time it has. */
export class Session {
  readonly etcd: Etcd;
  readonly keys: Keys;
  readonly deadlineMs: number;

  constructor(etcd: Etcd, deadlineMs: number) {
    this.etcd = etcd;
    this.keys = etcd.keys;
    this.deadlineMs = deadlineMs;
  }

  /**
   * Operations of one transaction that may change something.
   *
   * INVARIANT: etcd refuses it when it is full. It counts the room that a transaction needs by the puts of the outermost one
   * alone, and everything here is in transactions within that, so a put of nothing goes with them.
   */
  async write(ops: readonly Op[], options: Partial<TxnOptions> = {}): Promise<Done> {
    const room = { put: { key: this.keys.one("room"), value: Buffer.of() } };
    const how = { effect: "once", ...options } as const;
    const done = await this.etcd.transact(this.deadlineMs, [...ops, room], how);
    this.etcd.wrote(done);
    return done;
  }

  /** Keys, out of one transaction for each MAX_OPS ranges. */
  async read(
    ranges: readonly Range[],
    options: Omit<Partial<TxnOptions>, "effect"> = {},
  ): Promise<readonly (readonly KeyValue[])[]> {
    const how = { ...options, effect: "any" } as const;
    const pages = await inLanes(partsOf(ranges, MAX_OPS), async (part) => {
      const ops = part.map((range) => ({ range }));
      const { answers } = await this.etcd.transact(this.deadlineMs, ops, how);
      return answers.map(({ range }) => range?.kvs ?? []);
    });
    return pages.flat();
  }

  /** The keys of a range, at most `limit`, in pages. */
  async readAll(
    range: Range,
    limit: number,
    options: Omit<Partial<TxnOptions>, "effect"> = {},
  ): Promise<readonly KeyValue[]> {
    const all: KeyValue[] = [];
    for (let from = range.key; all.length < limit;) {
      const page = Math.min(limit - all.length, PAGE);
      const [kvs = []] = await this.read([{ ...range, key: from, limit: page }], options);
      all.push(...kvs);
      const last = kvs.at(-1);
      if (kvs.length < page || last === undefined) break;
      from = Buffer.concat([last.key, Buffer.of(0)]);
    }
    return all;
  }

  /**
   * Before a transaction that met another one is tried again. What it is tried on came with the refusal and is the newest,
   * so it is tried at once; whoever lost several times in a row pauses first, for a random time that grows.
   */
  async afterConflict(count: number, failure?: CallFailure): Promise<void> {
    const mostMs = count % BURST === 0 ? Math.min(MAX_PAUSE_MS, 2 ** (count / BURST)) : 0;
    const pauseMs = Math.random() * mostMs;
    if (count > MAX_CONFLICTS || performance.now() + pauseMs >= this.deadlineMs) {
      throw failure ?? storeUnavailable("other servers change the same keys all the time");
    }
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Keys of one page. */
const PAGE = 1_000;
/** Longest pause after a conflict, in milliseconds. */
const MAX_PAUSE_MS = 32;
/** How often in a row a transaction is tried at once. */
const BURST = 4;
