import "./node-version.ts";
import {
  type Clock,
  type ErrorDetails,
  IdmintError,
  MAX_ID,
  notWarm,
  periodText,
  type Reason,
  type Segment,
  segmentOf,
} from "@idmint/core";
import type { TagKind } from "@idmint/core/kinds";
import { WAYS } from "./kinds/ways.ts";
import type { CallOptions, IdClient, IdTag, PeriodId, TextOptions } from "./api.ts";
import { assertCount, assertTagName, callOf, numberOf, TEXT_OPTIONS } from "./calls.ts";
import {
  hasNoNames,
  hasNoPeriods,
  idsAreText,
  needsPeriod,
  notInMemory,
  notTaken,
} from "./kinds/refusals.ts";

/** Options of `createTestIdClient`. */
export interface TestIdClientOptions {
  /** First id of every tag. Default: 1n. Range: 0n … 2^63 − 1. */
  readonly start?: bigint | undefined;
}

/** A tag of the stand-in, and how to make it misbehave. */
export interface TestIdTag extends IdTag {
  /** How many ids were issued, those of `take` included. */
  readonly issued: number;
  /** The next id to be issued from now on. */
  setNext(id: bigint): void;
  /** After this id every call is refused with TAG_EXHAUSTED. */
  endAt(lastId: bigint): void;
  /** Refuses every call with this reason until `recover`. */
  failWith(reason: Reason, details?: ErrorDetails): void;
  /** Ends what `failWith` began. */
  recover(): void;
  /** Makes synchronous calls throw SEGMENT_NOT_READY until the next `next`, `take` or `warm`. */
  cool(): void;
  /** Makes it a tag of this kind, without periods. Calls that the kind cannot answer throw WRONG_KIND. */
  setKind(kind: TestKind): void;
  /**
   * Makes its ids text. `nextString` answers what `render` returns for the next number (and for the name, if the id is made
   * from one). Calls for numbers throw WRONG_KIND. Synchronous calls work with kinds uuid and object_id only. Undefined: ids
   * are numbers again.
   */
  setText(render: ((number: bigint, name: string | undefined) => string) | undefined): void;
  /**
   * Makes it a sequence that starts again every period, and begins this period, such as 2026-11-21, with id 1. Its ids have
   * this `endsAt`. Default: 1970; code under test should not depend on it.
   */
  startPeriod(period: string, endsAt?: Date): void;
}

/** Kinds of tags; "segment" until a test says otherwise. */
export type TestKind = TagKind["kind"];

/** The stand-in for tests: an IdClient without a server. */
export interface TestIdClient extends IdClient {
  tag(name: string): TestIdTag;
}

/**
 * An in-memory IdClient for tests of code that uses one. Ids are the same in every run: each tag counts up from `start`.
 * Tags exist from their first use and are warm at once. `tag(name).cool()`, `failWith(…)` and `endAt(…)` show how a real
 * client behaves when something fails.
 */
export function createTestIdClient(options: TestIdClientOptions = {}): TestIdClient {
  return new InMemoryIdClient(options.start ?? 1n);
}

const UNTIMED: Clock = { now: () => 0 };
const ANY_DEADLINE_MS = 1;

class InMemoryIdClient implements TestIdClient {
  readonly #start: bigint;
  readonly #tags = new Map<string, InMemoryIdTag>();
  #isClosed = false;

  constructor(start: bigint) {
    this.#start = start;
  }

  tag(name: string): TestIdTag {
    const known = this.#tags.get(name);
    if (known !== undefined) return known;
    if (this.#isClosed) throw closed();
    assertTagName(name);
    const tag = new InMemoryIdTag(name, this.#start);
    this.#tags.set(name, tag);
    return tag;
  }

  close(): Promise<void> {
    this.#isClosed = true;
    for (const tag of this.#tags.values()) tag.close();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

class InMemoryIdTag implements TestIdTag {
  readonly name: string;
  #next: bigint;
  #last: bigint = MAX_ID;
  #issued = 0;
  #failure: IdmintError | undefined;
  #isCold = false;
  #isClosed = false;
  #kind: TestKind = "segment";
  #render: ((number: bigint, name: string | undefined) => string) | undefined;
  #period: { readonly name: string; readonly endsAt: Date } | undefined;

  constructor(name: string, start: bigint) {
    this.name = name;
    this.#next = start;
  }

  get issued(): number {
    return this.#issued;
  }

  setNext(id: bigint): void {
    // Checked as a segment of one: 0 … 2^63 − 1.
    this.#next = segmentOf(id, 1).base;
  }

  endAt(lastId: bigint): void {
    this.#last = segmentOf(lastId, 1).base;
  }

  failWith(reason: Reason, details: ErrorDetails = {}): void {
    const metadata = { tag: this.name, ...details.metadata };
    const text = "as the test asked for";
    this.#failure = new IdmintError(reason, text, { ...details, metadata });
  }

  recover(): void {
    this.#failure = undefined;
  }

  cool(): void {
    this.#isCold = true;
  }

  setKind(kind: TestKind): void {
    this.#kind = kind;
    this.#period = undefined;
  }

  setText(render: ((number: bigint, name: string | undefined) => string) | undefined): void {
    this.#render = render;
  }

  startPeriod(period: string, endsAt: Date = new Date(0)): void {
    this.#kind = "sequence";
    this.#period = { name: period, endsAt };
    this.#next = 1n;
  }

  close(): void {
    this.#isClosed = true;
  }

  // Async, so that it rejects like the real client.
  async next(options?: CallOptions): Promise<bigint> {
    this.#assertIssuing(options);
    this.#assertNumbers();
    if (this.#period !== undefined) throw needsPeriod(this.name, this.#kind);
    return this.#load(1, options).base;
  }

  async nextPeriodId(options?: CallOptions): Promise<PeriodId> {
    this.#assertIssuing(options);
    this.#assertNumbers();
    if (this.#period === undefined) throw hasNoPeriods(this.name, this.#kind);
    const { name: period, endsAt } = this.#period;
    const id = this.#load(1, options).base;
    return { period, id, text: periodText(period, id), endsAt };
  }

  async nextString(options?: TextOptions): Promise<string> {
    const render = this.#render;
    if (render !== undefined) return render(this.#load(1, options).base, options?.name);
    this.#assertIssuing(options);
    if (options?.name !== undefined) throw hasNoNames(this.name);
    return String(await this.next(options));
  }

  async nextNumber(options?: CallOptions): Promise<number> {
    return numberOf(this.name, await this.next(options));
  }

  nextSync(): bigint {
    this.#assertWarm();
    this.#assertNumbers();
    return this.#issue(1).base;
  }

  nextStringSync(): string {
    if (this.#render === undefined) return String(this.nextSync());
    this.#assertWarm();
    return this.#render(this.#issue(1).base, undefined);
  }

  nextNumberSync(): number {
    this.#assertWarm();
    this.#assertNumbers();
    this.#assertLeft(1);
    const id = numberOf(this.name, this.#next);
    this.#issue(1);
    return id;
  }

  async take(count: number, options?: CallOptions): Promise<readonly Segment[]> {
    assertCount(count);
    this.#assertIssuing(options);
    this.#assertNumbers();
    if (WAYS[this.#kind] === "strict") throw notTaken(this.name, this.#kind);
    return [this.#load(count, options)];
  }

  async warm(options?: CallOptions): Promise<void> {
    this.#assertIssuing(options);
    this.#assertInMemory();
    this.#assertLeft(1);
    this.#isCold = false;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<bigint, void, undefined> {
    for (;;) yield await this.next();
  }

  #load(count: number, options: CallOptions | undefined): Segment {
    this.#assertIssuing(options);
    const segment = this.#issue(count);
    this.#isCold = false;
    return segment;
  }

  #issue(count: number): Segment {
    this.#assertLeft(count);
    const segment = segmentOf(this.#next, count);
    this.#next += BigInt(count);
    this.#issued += count;
    return segment;
  }

  #assertWarm(): void {
    this.#assertIssuing(undefined);
    this.#assertInMemory();
    if (this.#isCold) throw notWarm(this.name, 0);
  }

  #assertInMemory(): void {
    const way = WAYS[this.#kind];
    const isWritten = way === "held" && this.#render !== undefined;
    if (isWritten || way === "asked" || way === "strict") throw notInMemory(this.name, this.#kind);
  }

  #assertNumbers(): void {
    if (this.#render !== undefined) throw idsAreText(this.name, this.#kind);
  }

  #assertIssuing(options: CallOptions | undefined): void {
    if (options !== undefined) callOf(options, UNTIMED, ANY_DEADLINE_MS, TEXT_OPTIONS);
    if (this.#isClosed) throw closed();
    if (this.#failure !== undefined) throw this.#failure;
  }

  #assertLeft(count: number): void {
    if (this.#next + BigInt(count) - 1n <= this.#last) return;
    const text = `tag "${this.name}" has issued its last id, ${this.#last}`;
    throw new IdmintError("TAG_EXHAUSTED", text, { metadata: { tag: this.name } });
  }
}

function closed(): IdmintError {
  return new IdmintError("CLIENT_CLOSED", "the client was closed");
}
