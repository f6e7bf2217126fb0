import { MOVE_FAILED_AFTER_MS, type RedisDoubt, redisIsForeign } from "@idmint/core/server";

/** The fields of a tag's hash, and when Redis forgets them by itself. */
interface Hash {
  readonly fields: Map<string, string>;
  expiresAtMs: number;
  /** Whether a snapshot has it. */
  isKept: boolean;
}

/** What a Redis holds at one moment; `restore` brings it back, as a snapshot would. */
export interface RedisSnapshot {
  readonly hashes: ReadonlyMap<string, Hash>;
  readonly sequences: ReadonlySet<string>;
}

export interface HashesPorts {
  /** Milliseconds since 1970, with fractions. */
  readonly wallClock: () => number;
  readonly name?: string;
}

/** How long an emptiness that nobody ends is remembered, and where a tag moved away. */
const FORGET_VACANCY_MS = 60_000;
const FORGET_MOVED_MS = 3_600_000;

/** What every script of a store is told, and what it finds in the tag's hash. */
export interface Asked {
  readonly tag: string;
  readonly store: string;
  readonly generation: bigint;
}

/**
 * The hashes of one Redis in memory, with the rules that all scripts share (server/src/store/redis/scripts.ts, whose names of
 * fields these are). A test holds it against a real Redis.
 *
 * INVARIANT: a hash that a snapshot has is changed no more: what changes is a copy (`#own`). Few change between two snapshots.
 */
export class RedisHashes {
  readonly name: string;
  /** Of this process, and of this history of its data. */
  runId = "run-1";
  replId = "history-1";
  readonly #wallClock: () => number;
  #hashes = new Map<string, Hash>();
  #sequences = new Set<string>();
  #named = 1;

  constructor({ wallClock, name = "default" }: HashesPorts) {
    this.#wallClock = wallClock;
    this.name = name;
  }

  /** Redis' clock, in whole milliseconds. */
  now(): number {
    return Math.floor(this.#wallClock());
  }

  get sequences(): Set<string> {
    return this.#sequences;
  }

  snapshot(): RedisSnapshot {
    for (const hash of this.#hashes.values()) hash.isKept = true;
    return { hashes: new Map(this.#hashes), sequences: new Set(this.#sequences) };
  }

  restore({ hashes, sequences }: RedisSnapshot): void {
    this.#hashes = new Map(hashes);
    this.#sequences = new Set(sequences);
  }

  /** FLUSHALL. */
  flush(): void {
    this.#hashes.clear();
    this.#sequences.clear();
  }

  /** A key is gone, as by eviction. */
  remove(tag: string): void {
    this.#hashes.delete(tag);
  }

  get tags(): readonly string[] {
    return [...this.#hashes.keys()];
  }

  /** A new process, with whatever data it has. `isPromoted`: one that was a replica, so its history is a new one. */
  begin(isPromoted: boolean): void {
    this.#named++;
    this.runId = `run-${this.#named}`;
    if (isPromoted) this.replId = `history-${this.#named}`;
  }

  fields(tag: string): ReadonlyMap<string, string> {
    return this.#present(tag)?.fields ?? new Map<string, string>();
  }

  get(tag: string, field: string): string | undefined {
    return this.#present(tag)?.fields.get(field);
  }

  /** A field that has a number. */
  number(tag: string, field: string): number {
    return Number(this.get(tag, field) ?? "0");
  }

  set(tag: string, values: Readonly<Record<string, bigint | number | string>>): void {
    let hash = this.#own(tag);
    if (hash === undefined) {
      hash = { fields: new Map(), expiresAtMs: Infinity, isKept: false };
      this.#hashes.set(tag, hash);
    }
    for (const [field, value] of Object.entries(values)) hash.fields.set(field, String(value));
  }

  delete(tag: string, field: string): void {
    this.#own(tag)?.fields.delete(field);
  }

  /** Whether the hash is this store's. Throws STORE_REFUSED when it is another one's. */
  isOwn({ tag, store }: Pick<Asked, "store" | "tag">): boolean {
    const owner = this.get(tag, "store");
    if (owner === undefined || owner === store) return owner !== undefined;
    throw redisIsForeign({ redisServer: this.name, key: `idmint:{${tag}}` }, owner, store);
  }

  /** Why nothing may be issued under this generation, where a tag of that kind has these fields. */
  check(asked: Asked, needed: readonly [string, string]): RedisDoubt | undefined {
    const { tag } = asked;
    const isOwn = this.isOwn(asked);
    const has = this.fields(tag);
    const moved = has.get("moved_at_ms");
    const generation = has.get("generation");
    if (moved !== undefined) return this.#moved(generation, moved);
    if (generation === undefined || needed.some((field) => !has.has(field)))
      return this.missing(tag);
    const isOfThis = has.get("run_id") === this.runId && has.get("replid") === this.replId;
    if (!isOwn || !isOfThis) return { status: "restarted", generation: BigInt(generation) };
    if (generation !== String(asked.generation))
      return { status: "other-generation", generation: BigInt(generation) };
    return undefined;
  }

  /** Notes down that there is nothing, under a name that no other time of emptiness has. */
  missing(tag: string): RedisDoubt {
    let vacancy = this.get(tag, "vacant");
    if (vacancy === undefined) {
      const micros = Math.floor(this.#wallClock() * 1_000);
      vacancy = `${Math.floor(micros / 1_000_000)}.${micros % 1_000_000}`;
      this.set(tag, { vacant: vacancy });
      this.#expire(tag, FORGET_VACANCY_MS);
    }
    return { status: "missing", vacancy };
  }

  /** Begins a generation with these fields; answers why not. */
  seed(
    asked: Asked & { readonly doubt: RedisDoubt },
    values: Readonly<Record<string, bigint | number | string>>,
  ): RedisDoubt | undefined {
    const { tag, store, generation, doubt } = asked;
    this.isOwn(asked);
    const has = this.fields(tag);
    const moved = has.get("moved_at_ms");
    const old = has.get("generation");
    if (moved !== undefined && this.now() - Number(moved) < MOVE_FAILED_AFTER_MS)
      return this.#moved(old, moved);
    if (old !== undefined && generation <= BigInt(old))
      return { status: "other-generation", generation: BigInt(old) };
    const vacancy = doubt.status === "missing" ? doubt.vacancy : "";
    const isEmpty = old === undefined && moved === undefined;
    if (isEmpty && has.get("vacant") !== vacancy) return this.missing(tag);
    this.#hashes.delete(tag);
    this.set(tag, { generation, run_id: this.runId, replid: this.replId, store, ...values });
    return undefined;
  }

  /** Raises a bound of this generation, never lowers it. */
  raise(asked: Asked, field: string, value: bigint): boolean {
    const isOwn = this.isOwn(asked);
    const { tag, generation } = asked;
    const before = this.get(tag, field);
    const isOfIt = isOwn && this.get(tag, "generation") === String(generation);
    if (!isOfIt || before === undefined || value <= BigInt(before)) return false;
    this.set(tag, { [field]: value });
    return true;
  }

  /** Stops counting for a tag that moves away. */
  retire(asked: Pick<Asked, "store" | "tag">): void {
    this.isOwn(asked);
    const { tag, store } = asked;
    this.set(tag, { store, moved_at_ms: this.now() });
    this.#expire(tag, FORGET_MOVED_MS);
    this.#sequences.delete(tag);
  }

  /** Forgets a tag that was told to move. */
  forget(asked: Pick<Asked, "store" | "tag">): void {
    this.isOwn(asked);
    if (this.get(asked.tag, "moved_at_ms") !== undefined) this.#hashes.delete(asked.tag);
  }

  #moved(generation: string | undefined, moved: string): RedisDoubt {
    const agoMs = this.now() - Number(moved);
    return { status: "moved", generation: BigInt(generation ?? "0"), agoMs };
  }

  #expire(tag: string, ms: number): void {
    const hash = this.#own(tag);
    if (hash !== undefined) hash.expiresAtMs = this.#wallClock() + ms;
  }

  /** What may be changed of a tag; undefined: there is nothing. */
  #own(tag: string): Hash | undefined {
    const hash = this.#present(tag);
    if (hash?.isKept !== true) return hash;
    const copy = { ...hash, fields: new Map(hash.fields), isKept: false };
    this.#hashes.set(tag, copy);
    return copy;
  }

  #present(tag: string): Hash | undefined {
    const hash = this.#hashes.get(tag);
    if (hash === undefined || this.#wallClock() < hash.expiresAtMs) return hash;
    this.#hashes.delete(tag);
    return undefined;
  }
}
