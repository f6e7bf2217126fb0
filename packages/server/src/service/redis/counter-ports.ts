import type { Clock, Random, Timers } from "@idmint/core";
import type { CountingRedis } from "@idmint/core/server";
import type { Emit } from "../events.ts";
import type { Raises } from "../upstream/raises.ts";
import type { Marks } from "./marks.ts";
import type { TagPlace } from "./place.ts";

/** What the counters of tags that count in Redis need of the server. */
export interface RedisCounterPorts {
  readonly redisServer: (name: string) => CountingRedis | undefined;
  readonly raises: Raises;
  /** Where a tag counts, from its row; rejects with TAG_NOT_FOUND and its kin. */
  readonly readPlace: (tag: string) => Promise<TagPlace>;
  /** How far Redis had counted for any server. */
  readonly marks: Marks;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly wallClock: () => number;
  readonly emit: Emit;
}
