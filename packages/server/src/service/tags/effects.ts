import type { Clock } from "@idmint/core";
import type { PartIssuing, Tag } from "@idmint/core/server";
import type { Effect, NodeWatch } from "../node-watch.ts";
import type { Poll } from "../upstream/poll.ts";

/** By when nobody issues any more what a change of a tag has ended, callers that hold ids included. */
export interface TagEffect {
  /** By this server's wall clock, milliseconds since 1970; undefined: not known, or nothing was ended. */
  readonly effectiveAtMs: number | undefined;
  /** Servers that may still issue it, at most MAX_LAGGARDS of them. */
  readonly laggards: readonly LaggingNode[];
  readonly laggardCount: number;
  readonly isInEffect: boolean;
  /** Callers may hold for ever what the change has ended, so nobody knows when that is over. */
  readonly isHeldForEver: boolean;
}

/** A server that has not said yet that it obeys. Times are by this server's wall clock. */
interface LaggingNode {
  readonly id: string;
  readonly instance: string;
  readonly address: string;
  /** Of a store in several: the database that has to hear of it. */
  readonly database: string;
  /** When its row was last seen to move. */
  readonly seenAtMs: number;
  /** When it has stopped if it is not heard of before; undefined: it never stops by itself. */
  readonly stopsAtMs: number | undefined;
}

export const NO_EFFECT: TagEffect = {
  effectiveAtMs: undefined,
  laggards: [],
  laggardCount: 0,
  isInEffect: false,
  isHeldForEver: false,
};

const MAX_LAGGARDS = 20;

interface EffectPorts {
  readonly nodes: Pick<
    NodeWatch,
    "attend" | "note" | "effectOf" | "effectOfStop" | "isEarlierOver"
  >;
  readonly poll: Pick<Poll, "refresh">;
  readonly clock: Clock;
  readonly wallClock: () => number;
}

/** Says when changes are in effect. */
export class TagEffects {
  readonly #ports: EffectPorts;

  constructor(ports: EffectPorts) {
    this.#ports = ports;
  }

  /** Of a tag's last change. The store is asked once more, so that what other servers have just said is known. */
  async of(tag: Tag): Promise<TagEffect> {
    const { nodes } = this.#ports;
    nodes.note(tag);
    // failpoint: change-obeyed
    return this.#asked(() => nodes.effectOf(tag));
  }

  /** Of a stop of all servers, after which callers may hold ids for up to `memoryMs`. */
  async ofStop(parts: readonly PartIssuing[], memoryMs: number): Promise<TagEffect> {
    const { nodes } = this.#ports;
    nodes.attend();
    return this.#asked(() => nodes.effectOfStop(parts, memoryMs));
  }

  async #asked(effectOf: () => Effect): Promise<TagEffect> {
    const { poll, clock, wallClock } = this.#ports;
    const known = effectOf();
    if (known.at === undefined || known.laggards.length > 0) await poll.refresh();
    const { at, laggards, isHeldForEver } = effectOf();
    const now = clock.now();
    const wallAheadMs = wallClock() - now;
    const onWall = (time: number): number => Math.ceil(time + wallAheadMs);
    return {
      effectiveAtMs: at === undefined ? undefined : onWall(at),
      laggards: laggards.slice(0, MAX_LAGGARDS).map(({ part, row, seenAt, stopsAt }) => ({
        id: row.id,
        instance: row.instance,
        address: row.address,
        database: part,
        seenAtMs: onWall(seenAt),
        stopsAtMs: stopsAt === undefined ? undefined : onWall(stopsAt),
      })),
      laggardCount: laggards.length,
      isInEffect: at !== undefined && at <= now,
      isHeldForEver,
    };
  }

  /** Whether what the row remembers of earlier settings is over. */
  isEarlierOver(tag: Tag): boolean {
    return this.#ports.nodes.isEarlierOver(tag);
  }
}
