import {
  assertNoViolations,
  type BufferEvent,
  type Clock,
  type Committed,
  countViolation,
  GroupCommit,
  type GroupCommitOptions,
  type IdmintError,
  type Segment,
  segmentOf,
  type Timers,
} from "@idmint/core";
import type { Tag } from "@idmint/core/server";
import type { Patience } from "../call.ts";
import { type CallTrace, presentTrace, runFor } from "../trace.ts";
import type { TagSource, TakenIds } from "./source.ts";

/** What counts the ids of one tag, a round trip at a time. */
export interface Counter {
  /** As in GroupCommitPorts. */
  commit(count: number): Promise<Committed>;
  /** Most ids of one round trip, and so of one call. Default: as the server is configured. */
  readonly maxCount?: number;
  /** Ids that can be issued although the store is not there, as far as is known. Default: 0. */
  readonly ready?: number;
  /** A newer record of the tag was seen. */
  update?(tag: Tag): void;
  /** The ids of an answer. Default: those that follow each other from `base` on. */
  segmentsOf?(ids: Committed): readonly Segment[];
}

export interface GroupedSourcePorts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly afterTurn: (run: () => void) => void;
  readonly onEvent: (event: BufferEvent) => void;
}

/** Ids that a counter makes for all calls at once that came during its last round trip. Holds none in memory. */
export class GroupedSource implements TagSource {
  readonly #commits: GroupCommit;
  readonly #counter: Counter;
  readonly #maxCount: number;
  /** Of a call that came since the last round trip began. */
  #trace: CallTrace | undefined;

  constructor(
    name: string,
    counter: Counter,
    options: GroupCommitOptions,
    ports: GroupedSourcePorts,
  ) {
    this.#counter = counter;
    this.#maxCount = Math.min(options.maxCount, counter.maxCount ?? Infinity);
    this.#commits = new GroupCommit(
      name,
      { ...options, maxCount: this.#maxCount },
      {
        ...ports,
        commit: (_tag, count) => this.#commit(count),
      },
    );
  }

  async take(count: number, call: Patience): Promise<TakenIds> {
    const tooMany = countViolation("count", count, this.#maxCount, "ask several times for more");
    assertNoViolations(tooMany);
    if (this.#trace?.isOver !== false) this.#trace = presentTrace();
    const ids = await this.#commits.take(count, call);
    const segments = this.#counter.segmentsOf?.(ids) ?? [segmentOf(ids.base, ids.count)];
    return { segments, epoch: ids.epoch, period: ids.period };
  }

  /** A round trip is for all calls that came during the last one, and its spans below one of them. */
  #commit(count: number): Promise<Committed> {
    const trace = this.#trace;
    this.#trace = undefined;
    return runFor(trace, () => this.#counter.commit(count));
  }

  update(tag: Tag): void {
    this.#counter.update?.(tag);
  }

  observeEpoch(epoch: bigint): void {
    this.#commits.observeEpoch(epoch);
  }

  fence(error: IdmintError): void {
    this.#commits.fence(error);
  }

  unfence(): void {
    this.#commits.unfence();
  }

  /** Each call makes a round trip of its own accord. */
  retryNow(): void {}

  /** There is nothing to size and nothing to expire. */
  sample(): void {}

  get ready(): number {
    return this.#counter.ready ?? 0;
  }

  get waiting(): number {
    return this.#commits.waiting;
  }

  drain(error: IdmintError): number {
    this.#commits.fence(error);
    return 0;
  }
}
