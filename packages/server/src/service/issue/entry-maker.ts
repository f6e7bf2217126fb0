import {
  type BufferOptions,
  type BufferPorts,
  type Clock,
  IdmintError,
  lastOf,
  type Load,
  type LoadRequest,
  type Random,
  SegmentBuffer,
  segmentOf,
  type Timers,
} from "@idmint/core";
import { comesFrom, type Order, type SegmentKind } from "@idmint/core/kinds";
import type { Tag } from "@idmint/core/server";
import type { Counters } from "../counters.ts";
import type { Emit } from "../events.ts";
import type { MakeSource } from "../kinds/kind.ts";
import type { SourceKind } from "../kinds/source.ts";
import type { Ledger } from "../ledger.ts";
import type { Presence } from "../presence.ts";
import type { Grants } from "../upstream/grants.ts";
import { type Entry, isSameSource, type SegmentEntry, type SourceEntry } from "./entries.ts";
import type { Receipt } from "./give-back.ts";
import { sharedOptions, sharedRules, type TagRules } from "./sharing.ts";
import { TagText, type TextPorts } from "./tag-text.ts";

export interface EntryOptions {
  readonly prefetchShare: number;
  readonly maxWaiters: number;
}

export interface EntryMakerPorts {
  readonly grants: Pick<Grants, "request">;
  /** Undefined: there is none. */
  readonly ledger: Pick<Ledger, "granted"> | undefined;
  readonly makeSource: MakeSource;
  readonly texts: TextPorts;
  readonly presence: Pick<Presence, "noteHoldFor">;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly counters: Counters;
  readonly emit: Emit;
}

/** Makes the entries of tags, each with its buffer or source, and brings them up to newer records of their tags. */
export class EntryMaker {
  readonly #options: EntryOptions;
  readonly #ports: EntryMakerPorts;
  readonly #bufferPorts: BufferPorts<Receipt>;
  #lastRules: TagRules<SegmentKind> | undefined;
  #lastOptions: BufferOptions | undefined;

  constructor(ports: EntryMakerPorts, options: EntryOptions) {
    this.#ports = ports;
    this.#options = options;
    const { clock, timers, random, emit, counters } = ports;
    this.#bufferPorts = {
      load: (request, tag) => this.#load(request, tag),
      clock,
      timers,
      random,
      onEvent: (event) => {
        if (event.type === "wasted") counters.wastedIds += event.count;
        emit(event);
      },
    };
  }

  /** The entry of a tag that has none. `usedAt`: the ticker's count. */
  make(tag: Tag, usedAt: number): Entry {
    const { kind } = tag;
    return comesFrom(kind, "segments")
      ? this.#segment(tag, kind, usedAt)
      : this.#source(tag, kind, usedAt);
  }

  /**
   * Takes a record that is no older than the last one. False when it is of another kind than what issues the tag's ids:
   * then the tag was deleted and made again, and needs another entry.
   */
  renew(entry: Entry, tag: Tag): boolean {
    if (!this.#obey(entry, tag)) return false;
    if (tag.revision > entry.revision) entry.text = this.#textOf(tag);
    entry.revision = tag.revision;
    return true;
  }

  #segment(tag: Tag, kind: SegmentKind, usedAt: number): SegmentEntry {
    const { name, order, revision } = tag;
    const options = this.#bufferOptions(order, kind);
    const buffer = new SegmentBuffer<Receipt>(name, options, this.#bufferPorts);
    const rules = this.#rulesOf(tag, kind);
    this.#ports.presence.noteHoldFor(name, kind.holdForMs);
    const text = this.#textOf(tag);
    return { name, revision, rules, buffer, usedAt, issued: 0, ranked: 0, fencedAs: "", text };
  }

  #source(tag: Tag, kind: SourceKind, usedAt: number): SourceEntry {
    const { name, state, order, revision } = tag;
    const source = this.#ports.makeSource({ ...tag, kind });
    const rules = { state, order, kind };
    const counts = { issued: 0, ranked: 0 };
    const common = { name, revision, usedAt, ...counts, fencedAs: "", text: this.#textOf(tag) };
    return { ...common, rules, epoch: tag.epoch, buffer: undefined, source };
  }

  /** A format or a key that cannot be used here is what callers of the tag are refused with; others are served. */
  #textOf(tag: Tag): TagText | IdmintError | undefined {
    if (tag.format === undefined && tag.unguessable === undefined) return undefined;
    try {
      return new TagText(tag, this.#ports.texts);
    } catch (thrown) {
      return IdmintError.from(thrown);
    }
  }

  async #load(request: LoadRequest, tag: string): Promise<Load<Receipt>> {
    const grant = await this.#ports.grants.request({ tag, kind: "segment", ...request });
    const segment = segmentOf(grant.base, grant.count);
    this.#ports.ledger?.granted(tag, segment, grant.version, grant.epoch);
    const receipt = { version: grant.version, last: lastOf(segment) };
    return { segments: [segment], epoch: grant.epoch, receipt };
  }

  #obey(entry: Entry, tag: Tag): boolean {
    const { kind, order, state } = tag;
    if (entry.buffer !== undefined) {
      if (!comesFrom(kind, "segments")) return false;
      entry.rules = this.#rulesOf(tag, kind);
      this.#ports.presence.noteHoldFor(tag.name, kind.holdForMs);
      entry.buffer.update(this.#bufferOptions(order, kind));
      return true;
    }
    if (comesFrom(kind, "segments") || !isSameSource(entry.rules.kind, kind)) return false;
    entry.rules = { state, order, kind };
    entry.epoch = tag.epoch;
    entry.source.update(tag);
    return true;
  }

  #rulesOf(tag: Tag, kind: SegmentKind): TagRules<SegmentKind> {
    this.#lastRules = sharedRules(tag, kind, this.#lastRules);
    return this.#lastRules;
  }

  #bufferOptions(order: Order, { min, max, holdForMs }: SegmentKind): BufferOptions {
    const { prefetchShare, maxWaiters } = this.#options;
    const ordered = order === "PER_CLIENT";
    const options = { min, max, holdForMs, prefetchShare, maxWaiters, ordered };
    this.#lastOptions = sharedOptions(options, this.#lastOptions);
    return this.#lastOptions;
  }
}
