import { backoffMs, type Clock, IdmintError, type Random } from "@idmint/core";
import type { CountingRedis, RaiseRequest } from "@idmint/core/server";
import type { Raises } from "../upstream/raises.ts";
import { redisServerNamed } from "./servers.ts";

export interface RedisRaisePorts {
  readonly redisServer: (name: string) => CountingRedis | undefined;
  readonly raises: Pick<Raises, "raise">;
  readonly readPlace: (tag: string) => Promise<RaisedTo>;
  /** Hears which generation the row has. */
  readonly heard: (generation: bigint) => void;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Raises the maximum of one tag: in the RDBMS first, then in Redis. One raise at a time; after a failure none for a
 * growing while.
 *
 * INVARIANTS
 * 1. Redis gets a maximum only together with the generation that the row had with it, so whatever lies between Redis' old
 *    maximum and the new one belongs to that generation.
 * 2. Who counts hears that generation. Redis may have a lower one and no doubt: a new start was raised, and never seeded,
 *    since its server died or gave up waiting for the store. It takes no maximum then, and is only told by being asked
 *    under the row's generation.
 */
export class RedisRaise {
  readonly #tag: string;
  readonly #ports: RedisRaisePorts;
  #flight: Promise<void> | undefined;
  #failures = 0;
  #failure: IdmintError | undefined;
  #retryAt = -Infinity;

  constructor(tag: string, ports: RedisRaisePorts) {
    this.#tag = tag;
    this.#ports = ports;
  }

  /** Raises a sequence, at most to the tag's ceiling. */
  sequence(redisServer: string, target: RaiseTarget): Promise<void> {
    return this.#once(async () => {
      const { generation } = await raiseSequence(this.#ports, this.#tag, redisServer, target);
      this.#ports.heard(generation);
    });
  }

  /** Raises the last millisecond that a tag's snowflakes or worker ids may reserve. */
  limit(redisServer: string, atLeast: bigint, limitOf: (floor: bigint) => number): Promise<void> {
    return this.#once(async () => {
      const tag = this.#tag;
      const request = { tag, by: 0n, atLeast, newGeneration: false };
      const { generation, floor } = await this.#ports.raises.raise(request);
      this.#ports.heard(generation);
      const limitMs = limitOf(floor);
      await redisServerNamed(this.#ports.redisServer, tag, redisServer).raiseLimit({
        tag,
        generation,
        limitMs,
      });
    });
  }

  #once(work: () => Promise<void>): Promise<void> {
    if (this.#flight === undefined && this.#failure !== undefined) {
      if (this.#ports.clock.now() < this.#retryAt) return Promise.reject(this.#failure);
    }
    // It ends in a later turn, so it is not cleared before it is set.
    this.#flight ??= this.#run(work);
    return this.#flight;
  }

  async #run(work: () => Promise<void>): Promise<void> {
    const { clock, random } = this.#ports;
    try {
      await work();
      this.#failures = 0;
      this.#failure = undefined;
    } catch (thrown) {
      this.#failure = IdmintError.from(thrown);
      this.#failures++;
      this.#retryAt = clock.now() + backoffMs(this.#failures, random);
      throw this.#failure;
    } finally {
      this.#flight = undefined;
    }
  }
}

/** How far a maximum shall rise: by so many ids, or to a place, however many others want the same. */
export type RaiseTarget = Pick<RaiseRequest, "atLeast" | "by">;

/** What a row says after a raise. */
export interface RaisedTo {
  readonly generation: bigint;
  readonly floor: bigint;
}

/** Raises a sequence in the RDBMS, then in Redis. Answers the new maximum, and the generation that it is for. */
export async function raiseSequence(
  ports: Pick<RedisRaisePorts, "redisServer" | "raises" | "readPlace">,
  tag: string,
  redisServer: string,
  target: RaiseTarget,
): Promise<RaisedTo> {
  const { generation, floor } = await raisedOrEnd(ports, tag, target);
  await redisServerNamed(ports.redisServer, tag, redisServer).sequences.raise({
    tag,
    generation,
    max: floor,
  });
  return { generation, floor };
}

/** At the ceiling there is nothing to raise, but Redis may not have heard of it yet. */
async function raisedOrEnd(
  { raises, readPlace }: Pick<RedisRaisePorts, "raises" | "readPlace">,
  tag: string,
  target: RaiseTarget,
): Promise<RaisedTo> {
  try {
    return await raises.raise({ tag, ...target, newGeneration: false });
  } catch (thrown) {
    if (IdmintError.from(thrown).reason !== "TAG_EXHAUSTED") throw thrown;
    return readPlace(tag);
  }
}
