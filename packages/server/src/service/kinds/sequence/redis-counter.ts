import { bounded, type Committed, IdmintError } from "@idmint/core";
import { asKind } from "@idmint/core/kinds";
import type { RaiseBounds, SequenceIssued, Tag } from "@idmint/core/server";
import { RedisAgreement } from "../../redis/agreement.ts";
import type { RedisCounterPorts } from "../../redis/counter-ports.ts";
import { placeOf } from "../../redis/place.ts";
import { type RaiseTarget, RedisRaise } from "../../redis/raise.ts";
import { tagExhausted } from "../../upstream/refusals.ts";
import type { Counter } from "../grouped-source.ts";

/** How long a call waits for a maximum that is being raised, when it found nothing left. */
const RAISE_PATIENCE_MS = 100;
/** Raises one call waits for: others may take what the first one brought, where a `maxSkip` bounds it. */
const MAX_RAISES = 3;
const RETRY_AFTER_MS = 200;
/** Refusals of one tag are told of at most this often; its callers hear of each. */
const TELL_EVERY_MS = 10_000;

/** What is used of the tag's record. */
interface Settings {
  readonly bounds: RaiseBounds;
  readonly ceiling: bigint;
  readonly epoch: bigint;
}

type Issued = Extract<SequenceIssued, { readonly status: "issued" }>;
type Exhausted = Extract<SequenceIssued, { readonly status: "exhausted" }>;
type Answer = Extract<SequenceIssued, { readonly status: "issued" | "exhausted" }>;

/**
 * Strictly increasing ids of one tag, counted in Redis. One `commit` at a time, from the group commit above.
 *
 * INVARIANTS
 * 1. An id is above every id that was answered before it was asked for, by any server: within a generation Redis counts
 *    upwards in one atomic step, and a later generation begins at the floor, which is never below what an earlier one
 *    was allowed to issue. (With two masters of one Redis at a time only uniqueness is left: each counts within
 *    generations of its own.)
 * 2. With a `maxSkip` no more ids than that, or than one call takes, are left below the maximum: raises go to a place that
 *    far above what Redis was seen to count, so that those of several servers do not add up. A new start begins above the
 *    old maximum, so this is the most that it skips.
 * 3. The epoch of an answer is the one that was known when Redis was asked.
 */
export class RedisSequenceCounter implements Counter {
  readonly #name: string;
  #settings: Settings;
  /** Highest id answered to this server. */
  #seen = 0n;
  /** Whether Redis did not answer what it was asked last. */
  #isDoubtful = true;
  #left = 0;
  readonly #agreement: RedisAgreement<number, Answer>;
  readonly #raise: RedisRaise;
  readonly #ports: Pick<RedisCounterPorts, "clock" | "emit" | "timers">;
  #toldAt = -Infinity;

  constructor(tag: Tag, ports: RedisCounterPorts) {
    const { name } = tag;
    this.#name = name;
    this.#settings = settingsFrom(tag);
    this.#ports = ports;
    const heard = (generation: bigint): void => this.#agreement.heard(generation);
    this.#raise = new RedisRaise(name, { ...ports, heard });
    this.#agreement = new RedisAgreement<number, Answer>(name, placeOf(tag), {
      ...ports,
      isOrdered: true,
      ask: async (redisServer, generation, count, mark) => {
        const seen = mark > this.#seen ? mark : this.#seen;
        const answer = await redisServer.sequences.issue({ tag: name, generation, count, seen });
        if (answer.status === "issued") {
          ports.marks.note({ tag: name, generation, mark: answer.last });
        }
        return answer;
      },
      raise: (count, generationFrom) => {
        const { step, maxSkip } = this.#settings.bounds;
        const wanted = Math.max(step, 2 * count);
        const by = BigInt(Math.min(wanted, mostLeft(maxSkip, count)));
        return ports.raises.raise({
          tag: name,
          by,
          atLeast: 0n,
          newGeneration: true,
          generationFrom,
        });
      },
      readPlace: () => ports.readPlace(name),
      seed: (redisServer, { generation, before, floor }, doubt) =>
        redisServer.sequences.seed({ tag: name, generation, cur: before, max: floor, doubt }),
    });
  }

  /** A newer record of the tag was seen. */
  update(tag: Tag): void {
    this.#settings = settingsFrom(tag);
    this.#agreement.update(placeOf(tag));
  }

  /** Makes Redis ready for the tag, and issues nothing. */
  async prepare(): Promise<void> {
    await this.#agreement.ask(0);
  }

  /** Ids below the maximum at the last answer: they can be issued while the store is down. */
  get ready(): number {
    return this.#isDoubtful ? 0 : this.#left;
  }

  /** One round trip: exactly `count` ids, all or none. */
  async commit(count: number): Promise<Committed> {
    const { epoch, bounds, ceiling } = this.#settings;
    this.#isDoubtful = true;
    const first = await this.#agreement.ask(count);
    this.#isDoubtful = false;
    const answer = first.status === "issued" ? first : await this.#afterRaise(first, count);
    const { before, last, max } = answer;
    if (last > this.#seen) this.#seen = last;
    this.#left = Number(max - last);
    // Whoever issues does not leave it to the loop alone to notice that the end is near.
    const low = Math.max(Math.ceil(bounds.step / 4), 2 * count);
    const isLow =
      max - last < BigInt(Math.min(low, Math.ceil(mostLeft(bounds.maxSkip, count) / 2)));
    if (isLow && max < ceiling) void this.#raiseMax(last, count).catch(ignore);
    return { base: before + 1n, count, epoch, period: undefined };
  }

  /** Nothing is left: waits for the maximum to be raised, but not long, and fails fast. */
  async #afterRaise(first: Exhausted, count: number): Promise<Issued> {
    let left = first;
    let cause: unknown;
    let isRaised = true;
    for (let raises = 0; raises < MAX_RAISES && isRaised; raises++) {
      const { cur, max } = left;
      if (max >= this.#settings.ceiling) throw this.#refusal(max, count, undefined);
      const raised = this.#raiseMax(cur, count).then(
        () => true,
        (thrown: unknown) => {
          cause = thrown;
          return false;
        },
      );
      isRaised = await bounded(raised, RAISE_PATIENCE_MS, this.#ports.timers, () => false);
      const answer = await this.#agreement.ask(count);
      if (answer.status === "issued") return answer;
      left = answer;
    }
    if (cause instanceof IdmintError && !cause.retryable) throw cause;
    throw this.#refusal(left.max, count, cause);
  }

  #raiseMax(last: bigint, count: number): Promise<void> {
    const { step, maxSkip } = this.#settings.bounds;
    const target: RaiseTarget =
      maxSkip === undefined
        ? { by: BigInt(Math.max(step, 4 * count)), atLeast: 0n }
        : { by: 0n, atLeast: last + BigInt(mostLeft(maxSkip, count)) };
    return this.#raise.sequence(this.#agreement.place.redisServer, target);
  }

  #refusal(max: bigint, count: number, cause: unknown): IdmintError {
    const name = this.#name;
    if (max >= this.#settings.ceiling) return tagExhausted(name);
    this.#tell(max, cause);
    return new IdmintError(
      "MAX_NOT_RAISED",
      `tag "${name}" has fewer than ${count} ids left below its maximum in Redis, and the store has not raised it yet`,
      { metadata: { tag: name }, retryAfterMs: RETRY_AFTER_MS, cause },
    );
  }

  #tell(max: bigint, cause: unknown): void {
    const { clock, emit } = this.#ports;
    const now = clock.now();
    if (now - this.#toldAt < TELL_EVERY_MS) return;
    this.#toldAt = now;
    const error = cause === undefined ? undefined : IdmintError.from(cause);
    const { redisServer } = this.#agreement.place;
    emit({ type: "max-not-raised", tag: this.#name, redisServer, max, error });
  }
}

/** The loop tries again, and so does the next call. */
function ignore(): void {}

/** Most ids that may be left below the maximum; a call is served all the same, whatever it asks for. */
function mostLeft(maxSkip: number | undefined, count: number): number {
  return maxSkip === undefined ? Number.MAX_SAFE_INTEGER : Math.max(maxSkip, count);
}

function settingsFrom({ name, kind, ceiling, epoch }: Tag): Settings {
  const { redis: bounds } = asKind(kind, "sequence");
  if (bounds !== undefined) return { bounds, ceiling, epoch };
  throw new Error(`tag ${name} is no sequence in Redis`);
}
