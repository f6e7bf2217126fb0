import {
  assertNoViolations,
  IdmintError,
  segmentNotReady,
  tagNameViolation,
  type Unused,
} from "@idmint/core";
import { comesFrom } from "@idmint/core/kinds";
import {
  type GiveBackRequest,
  type GiveBackStore,
  storeUnavailable,
  storeWentBack,
  type Tag,
  tagNotFound,
  tagPaused,
  type VersionGuard,
} from "@idmint/core/server";
import { overloaded, type Patience } from "../call.ts";
import type { Ledger } from "../ledger.ts";
import type { Presence } from "../presence.ts";
import type { Grants } from "../upstream/grants.ts";
import type { Lookups } from "../upstream/lookups.ts";
import { issuingStopped } from "../upstream/refusals.ts";
import { type Entry, isBusy, issuerOf } from "./entries.ts";
import { EntryMaker, type EntryMakerPorts, type EntryOptions } from "./entry-maker.ts";
import { giveBackAll, rangeToGiveBack, type Receipt } from "./give-back.ts";

/** Entries that one turn of the ticker samples, so that 100,000 tags do not hold up calls. */
const SAMPLES_PER_TURN = 2_000;

/** Lookups of one call. Each may be overtaken by a change of the tag, which is heard of twice: here and by the poll. */
const MAX_LOOKUPS = 5;

export interface DirectoryOptions extends EntryOptions {
  readonly maxTags: number;
  readonly storeTimeoutMs: number;
}

export interface DirectoryPorts extends EntryMakerPorts {
  readonly store: GiveBackStore;
  readonly grants: Grants;
  readonly ledger: Pick<Ledger, "giver" | "granted"> | undefined;
  readonly lookup: Lookups;
  readonly presence: Pick<Presence, "refusalOf" | "noteHoldFor">;
  readonly guard: VersionGuard;
  readonly afterTurn: (run: () => void) => void;
}

/**
 * The tags this server works with, each with its buffer or source and the reasons why it may not issue.
 *
 * INVARIANTS
 * 1. A buffer or source issues only while its entry is in the map, the tag is ACTIVE in the newest record seen, and no fence stands
 *    for the tag or for the store. Whoever asks for an entry gets it only while this server may issue at all (presence.ts),
 *    so every call looks at the clock once.
 * 2. Records of one tag are taken in the order of their revisions, and only from the present history.
 * 3. Epochs reach buffers by `apply` in a turn of its own. So a call that was just served from a buffer still reads the
 *    epoch it was served under when it goes on.
 */
export class Directory {
  readonly #options: DirectoryOptions;
  readonly #ports: DirectoryPorts;
  readonly #maker: EntryMaker;
  readonly #entries = new Map<string, Entry>();
  /** Tags for which the store went back, and how that showed; until a new history begins. */
  readonly #behind = new Map<string, string>();
  #allFenced = "";
  /** Why nothing is issued although nothing is wrong: an operator stopped all servers. */
  #stopped: IdmintError | undefined;
  #drained: IdmintError | undefined;
  #history = 0;
  #tick = 0;

  constructor(ports: DirectoryPorts, options: DirectoryOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#maker = new EntryMaker(ports, options);
  }

  /** The entry of a tag that is known here. Throws when this server may not issue ids of it, known or not. */
  get(name: string): Entry | undefined {
    const refusal = this.#ports.presence.refusalOf(name);
    if (refusal !== undefined) {
      // Where the store went back too, waiting for it to be heard again would not help.
      this.#assertIssuing();
      throw refusal;
    }
    const entry = this.#entries.get(name);
    if (entry !== undefined) entry.usedAt = this.#tick;
    return entry;
  }

  /** The entry of a tag for who only looks at it: it does not count as used. */
  peek(name: string): Entry | undefined {
    return this.#entries.get(name);
  }

  /** The entry of a tag, asked of the store when it is not known here. Rejects with TAG_NOT_FOUND and its kin. */
  async find(name: string, call: Patience): Promise<Entry> {
    assertNoViolations(tagNameViolation("tag", name));
    // What a lookup brings is from before a change that was seen meanwhile, so the tag is looked up again.
    for (let tries = 0; tries < MAX_LOOKUPS; tries++) {
      this.#assertIssuing();
      const refusal = this.#ports.presence.refusalOf(name);
      if (refusal !== undefined) throw refusal;
      await this.#ports.lookup.find(name, call);
      const entry = this.get(name);
      if (entry !== undefined) return entry;
      this.#assertIssuing();
      if (this.#entries.size >= this.#options.maxTags) {
        throw overloaded(`this server works with ${this.#options.maxTags} tags already`, {
          tag: name,
        });
      }
    }
    throw storeUnavailable(`tag "${name}" was changed during each of ${MAX_LOOKUPS} lookups`);
  }

  /** Which history of the store records belong to; to be read before they are asked for. */
  get history(): number {
    return this.#history;
  }

  /** Whether this server knows that ids of the tag were granted in the present history of the store. */
  hasSeen(tag: string): boolean {
    return this.#ports.guard.seen(tag) > 0n;
  }

  /** Takes newer records of tags known here, and of tags that are asked for right now. */
  async apply(tags: readonly Tag[], history: number): Promise<void> {
    // Invariant 3.
    await new Promise<void>((resolve) => this.#ports.afterTurn(resolve));
    if (history !== this.#history) return;
    for (const tag of tags) {
      // Invariant 2: what was asked earlier and is answered later may be from before this record.
      this.#ports.lookup.overtaken(tag.name);
      this.#ports.guard.observeFloor(tag);
      const entry = this.#entries.get(tag.name);
      if (entry !== undefined) this.#update(entry, tag);
    }
  }

  /** Takes the records that a lookup brought, and that nothing newer has overtaken. */
  admit(tags: readonly Tag[]): void {
    for (const tag of tags) {
      this.#ports.guard.observe(tag.name, tag);
      this.#ports.guard.observeFloor(tag);
      const entry = this.#entries.get(tag.name);
      if (entry !== undefined) this.#update(entry, tag);
      else if (tag.state !== "DELETED") this.#create(tag);
    }
  }

  /** The store went back for one tag. */
  fenceTag(name: string, detail: string): void {
    if (this.#behind.has(name)) return;
    this.#behind.set(name, detail);
    this.#ports.emit({ type: "fenced", tag: name, detail });
    const entry = this.#entries.get(name);
    if (entry !== undefined) this.#fenceAsNeeded(entry);
  }

  /** The store as a whole is not the one that was accepted. */
  fenceAll(detail: string): void {
    this.#allFenced = detail;
    this.#ports.emit({ type: "fenced", tag: undefined, detail });
    for (const entry of this.#entries.values()) this.#fenceAsNeeded(entry);
  }

  unfenceAll(): void {
    this.#allFenced = "";
    this.#ports.emit({ type: "unfenced" });
    for (const entry of this.#entries.values()) this.#fenceAsNeeded(entry);
  }

  /** An operator stopped all servers: what is held is dropped, and everything is refused. */
  stopIssuing(sinceMs: number): void {
    this.#stopped = issuingStopped(sinceMs);
    for (const entry of this.#entries.values()) this.#fenceAsNeeded(entry);
  }

  resumeIssuing(): void {
    this.#stopped = undefined;
    for (const entry of this.#entries.values()) this.#fenceAsNeeded(entry);
  }

  /** Servers were stopped and resumed without this one having heard of it in between. */
  dropHeld(): void {
    for (const entry of this.#entries.values()) {
      if (entry.fencedAs !== "") continue;
      issuerOf(entry).fence(segmentNotReady(entry.name, 100));
      issuerOf(entry).unfence();
    }
  }

  /** An operator accepted the store as it is: whatever was seen and held belongs to the past. */
  startHistory(): void {
    this.#history++;
    this.#ports.guard.startHistory();
    this.#ports.grants.startHistory();
    this.#ports.lookup.forgetAll();
    this.#behind.clear();
    this.#allFenced = "";
    for (const entry of this.#entries.values()) {
      issuerOf(entry).fence(segmentNotReady(entry.name, 100));
    }
    this.#entries.clear();
    this.#ports.emit({ type: "unfenced" });
  }

  /** The store is back: loads that wait for their next try start at once. */
  retryAll(): void {
    for (const entry of this.#entries.values()) issuerOf(entry).retryNow();
  }

  /** To be called every second: feeds the buffers' rates, and lets go of the least used when there are too many. */
  async sample(): Promise<void> {
    this.#tick++;
    let left = SAMPLES_PER_TURN;
    for (const entry of this.#entries.values()) {
      issuerOf(entry).sample();
      if (--left > 0) continue;
      left = SAMPLES_PER_TURN;
      // One turn after the other is the point.
      await new Promise<void>((resolve) => this.#ports.afterTurn(resolve));
    }
    await this.#evict();
  }

  /** How many tags this server works with. */
  get size(): number {
    return this.#entries.size;
  }

  /** The names of at most `limit` of them, those that were used last first. */
  usedLast(limit: number): readonly string[] {
    return [...this.#entries.values()]
      .toSorted((a, b) => b.usedAt - a.usedAt)
      .slice(0, limit)
      .map(({ name }) => name);
  }

  /** Those tags, for who looks at all of them from time to time. It may be gone through in several turns. */
  entries(): Iterable<Entry> {
    return this.#entries.values();
  }

  /** How many tags the store went back for. */
  get fencedTags(): number {
    return this.#behind.size;
  }

  /** The first `limit` of them, in the order in which that was found. */
  fencedNames(limit: number): readonly string[] {
    return [...this.#behind.keys()].slice(0, limit);
  }

  /** How many of them have a buffer. */
  get bufferedTags(): number {
    let count = 0;
    for (const { buffer } of this.#entries.values()) if (buffer !== undefined) count++;
    return count;
  }

  /** Whether ids of some tag are made by this server's clock. */
  get usesClock(): boolean {
    for (const { rules } of this.#entries.values()) if (comesFrom(rules.kind, "lease")) return true;
    return false;
  }

  /** Whether some tag has ids in memory that may be issued. */
  get holdsIds(): boolean {
    for (const entry of this.#entries.values()) if (issuerOf(entry).ready > 0) return true;
    return false;
  }

  /**
   * Stops issuing until `resume`, refuses whoever waits with `error`, and gives the unused ends back, each tried once. An
   * unknown outcome leaves a gap. Answers how many ids were given back and how many were not.
   */
  async drain(error: IdmintError): Promise<{ givenBack: number; wasted: number }> {
    this.#drained = error;
    this.#ports.lookup.refuseAll(error);
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    return this.#giveBack(entries, error);
  }

  /** Issues again after `drain`. Tags are looked up anew, and load segments of their own. */
  resume(): void {
    this.#drained = undefined;
  }

  #assertIssuing(): void {
    if (this.#drained instanceof IdmintError) throw this.#drained;
    if (this.#allFenced !== "") throw storeWentBack(this.#allFenced);
  }

  #create(tag: Tag): void {
    if (this.#drained !== undefined || this.#entries.size >= this.#options.maxTags) return;
    const entry = this.#maker.make(tag, this.#tick);
    this.#entries.set(tag.name, entry);
    issuerOf(entry).observeEpoch(tag.epoch);
    this.#fenceAsNeeded(entry);
  }

  #update(entry: Entry, tag: Tag): void {
    // Invariant 2.
    if (tag.revision < entry.revision) return;
    if (!this.#maker.renew(entry, tag)) {
      this.#replace(entry, tag);
      return;
    }
    issuerOf(entry).observeEpoch(tag.epoch);
    this.#fenceAsNeeded(entry);
    if (tag.state !== "DELETED") return;
    // Invariant 1: a tag that is made again under this name gets a buffer of its own.
    this.#entries.delete(tag.name);
    this.#ports.lookup.disappeared(tag.name);
  }

  /** Invariant 1: what was held of the tag of before is never issued. */
  #replace(entry: Entry, tag: Tag): void {
    issuerOf(entry).fence(segmentNotReady(entry.name, 100));
    this.#entries.delete(entry.name);
    if (tag.state === "DELETED") this.#ports.lookup.disappeared(tag.name);
    else this.#create(tag);
  }

  /** Invariant 1. A fence drops what is held, so it is set only when the reason changes. */
  #fenceAsNeeded(entry: Entry): void {
    const error = this.refusalOf(entry);
    const fencedAs = error?.message ?? "";
    if (fencedAs === entry.fencedAs) return;
    entry.fencedAs = fencedAs;
    if (error === undefined) issuerOf(entry).unfence();
    else issuerOf(entry).fence(error);
  }

  /** Why a tag may not issue, whatever is asked of it; undefined when it may. */
  refusalOf({ name, rules }: Entry): IdmintError | undefined {
    if (this.#allFenced !== "") return storeWentBack(this.#allFenced);
    const behind = this.#behind.get(name);
    if (behind !== undefined) return storeWentBack(behind, name);
    if (rules.state === "DELETED") return tagNotFound(name);
    if (this.#stopped !== undefined) return this.#stopped;
    if (rules.state === "PAUSED") return tagPaused(name);
    return undefined;
  }

  /** Keeps a tenth of the room free for tags that are asked for next. */
  async #evict(): Promise<void> {
    const tooMany = this.#entries.size - Math.floor(this.#options.maxTags * 0.9);
    if (tooMany <= 0 || this.#drained !== undefined) return;
    const idle = [...this.#entries.values()]
      .filter((entry) => !isBusy(entry) && entry.usedAt < this.#tick - 1)
      .toSorted((a, b) => a.usedAt - b.usedAt)
      .slice(0, tooMany);
    for (const entry of idle) this.#entries.delete(entry.name);
    await this.#giveBack(idle, new IdmintError("SEGMENT_NOT_READY", "the tag is loaded anew"));
  }

  async #giveBack(
    entries: readonly Entry[],
    error: IdmintError,
  ): Promise<{ givenBack: number; wasted: number }> {
    const requests: GiveBackRequest[] = [];
    let held = 0;
    const drains: Promise<number>[] = [];
    for (const entry of entries) {
      if (entry.buffer === undefined) {
        drains.push(Promise.resolve(entry.source.drain(error)));
        continue;
      }
      // Ids that callers put back are held too, though they belong to no grant any more and can only be a gap.
      held += entry.buffer.ready;
      // Fenced buffers hold nothing: what a store that went back would take back may be somebody else's.
      const unused: readonly Unused<Receipt>[] = entry.buffer.drain(error);
      const request = rangeToGiveBack(entry.name, unused);
      if (request === undefined) continue;
      if (!this.#ports.guard.giveBack(entry.name, request)) continue;
      requests.push({ ...request, giver: this.#ports.ledger?.giver });
    }
    const givenBack = await giveBackAll(requests, this.#ports, this.#options.storeTimeoutMs);
    for (const count of await Promise.all(drains)) held += count;
    const wasted = held - givenBack;
    this.#ports.counters.wastedIds += wasted;
    return { givenBack, wasted };
  }
}
