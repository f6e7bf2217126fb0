import { type Clock, IdmintError, type Timers } from "@idmint/core";
import {
  createMarkState,
  expectMark,
  type GrantStore,
  knownGenerations,
  knownMark,
  type MarkedGeneration,
  type MarkState,
  marksTold,
  type MarkStore,
  newestMarked,
  raiseMark,
  type RedisMark,
  risenMarks,
  storeUnavailable,
} from "@idmint/core/server";
import { within } from "../call.ts";
import type { Emit } from "../events.ts";
import { Turns } from "./turns.ts";

/** How often marks are exchanged with the store. */
const TURN_MS = 1_000;
/** Tags of one statement. */
const PAGE = 1_000;
/** Readings that one call waits for: others may want another generation of its tag at the same time. */
const MAX_READINGS = 3;
/** Tags whose marks are known; more take turns. */
const MAX_TAGS = 100_000;

export interface RedisMarksPorts {
  readonly store: MarkStore & Pick<GrantStore, "groupOf">;
  readonly storeTimeoutMs: number;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly afterTurn: (run: () => void) => void;
  readonly emit: Emit;
}

/** What counters need of the marks. */
export interface Marks {
  /**
   * The highest count of a generation that any server was answered, as far as it is known here; undefined: not at all.
   * Redis is not asked before it is known.
   */
  of(which: MarkedGeneration): bigint | undefined;
  /** The highest generation of a tag that any server was answered under, as far as it is known here; 0: none. */
  newest(tag: string): bigint;
  /** Reads the kept marks of generations that are not known yet; answers all of them. Rejects with STORE_UNAVAILABLE. */
  learn(which: readonly MarkedGeneration[]): Promise<readonly bigint[]>;
  /** The same for one. */
  read(which: MarkedGeneration): Promise<bigint>;
  /** Redis was given this generation by this server, or counted so far for it. */
  note(mark: RedisMark): void;
}

/**
 * Tells the other servers, through the store, how far Redis had counted for this one, and learns it of them: once a second.
 * A Redis that was set back without a restart is then told by any of them, also by one that had seen less.
 */
export class RedisMarks implements Marks {
  readonly #ports: RedisMarksPorts;
  readonly #turns: Turns;
  readonly #state: MarkState = createMarkState(MAX_TAGS);
  /** Generations to be read, by tag. */
  readonly #wanted = new Map<string, MarkedGeneration>();
  #learning: Promise<IdmintError | undefined> | undefined;
  #failing = false;

  constructor(ports: RedisMarksPorts) {
    this.#ports = ports;
    this.#turns = new Turns(() => this.turn(), TURN_MS, ports);
  }

  start(): void {
    this.#turns.start();
  }

  stop(): void {
    this.#turns.stop();
  }

  of(which: MarkedGeneration): bigint | undefined {
    return knownMark(this.#state, which);
  }

  newest(tag: string): bigint {
    return newestMarked(this.#state, tag);
  }

  note(mark: RedisMark): void {
    raiseMark(this.#state, mark);
  }

  async read(which: MarkedGeneration): Promise<bigint> {
    const [mark] = await this.learn([which]);
    if (mark === undefined) throw notRead();
    return mark;
  }

  async learn(which: readonly MarkedGeneration[]): Promise<readonly bigint[]> {
    let failure: IdmintError | undefined;
    for (let readings = 0; readings < MAX_READINGS && failure === undefined; readings++) {
      // Who wanted another generation, and has it, goes first.
      if (readings > 0) await this.#endOfTurn();
      for (const one of which) {
        expectMark(this.#state, one);
        if (this.of(one) === undefined) this.#wanted.set(one.tag, one);
      }
      this.#learning ??= this.#learnSoon();
      failure = await this.#learning;
      const marks = which.map((one) => this.of(one)).filter((mark) => mark !== undefined);
      if (marks.length === which.length) return marks;
    }
    throw failure ?? notRead();
  }

  /** One turn; never rejects. */
  async turn(): Promise<void> {
    const error = await this.#exchange(knownGenerations(this.#state));
    if (error !== undefined && !this.#failing) {
      this.#ports.emit({ type: "redis-marks-failed", error });
    }
    this.#failing = error !== undefined;
  }

  /** Those who ask in the same turn share one statement. */
  async #learnSoon(): Promise<IdmintError | undefined> {
    await this.#endOfTurn();
    this.#learning = undefined;
    const wanted = [...this.#wanted.values()];
    this.#wanted.clear();
    return this.#exchange(wanted);
  }

  #endOfTurn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ports.afterTurn(resolve);
    return promise;
  }

  /** Answers the first failure; a part of the store that is away keeps no others from being asked. */
  async #exchange(which: readonly MarkedGeneration[]): Promise<IdmintError | undefined> {
    const { store } = this.#ports;
    const groups = Map.groupBy(which, ({ tag }) => store.groupOf?.(tag) ?? "");
    const settled = await Promise.allSettled([...groups.values()].map((its) => this.#pages(its)));
    const failed = settled.find((one) => one.status === "rejected");
    return failed === undefined ? undefined : IdmintError.from(failed.reason);
  }

  async #pages(which: readonly MarkedGeneration[]): Promise<void> {
    const { store, storeTimeoutMs, timers } = this.#ports;
    for (let at = 0; at < which.length && !this.#turns.isStopped; at += PAGE) {
      const page = which.slice(at, at + PAGE);
      const risen = risenMarks(this.#state, page);
      // One page after the other: a store that does not answer ends the turn.
      const told = await within(() => store.exchangeMarks(risen, page), storeTimeoutMs, timers);
      marksTold(this.#state, page, risen, told);
    }
  }
}

function notRead(): IdmintError {
  return storeUnavailable("how far Redis had counted is not read yet");
}
