import { COUNTERS_PER_MS, MAX_AHEAD_MS } from "@idmint/core/kinds";
import type {
  CountingRedis,
  RedisSequences,
  RedisSnowflakes,
  SnowflakeIssued,
  TimedDoubt,
} from "@idmint/core/server";
import { type HashesPorts, RedisHashes } from "./hashes.ts";
import { memoryWorkers } from "./workers.ts";

/** What servers of one store ask a Redis for. */
export type RedisCalls = Pick<
  CountingRedis,
  "forget" | "raiseLimit" | "retire" | "sequences" | "snowflakes" | "workers"
>;

export interface MemoryRedisPorts extends HashesPorts {
  /** 63 random bits, never 0: what a lease is renewed with. */
  readonly newToken: () => bigint;
}

/** A Redis in memory that counts. Each call is one step, done when it is called. */
export class MemoryRedis {
  readonly hashes: RedisHashes;
  readonly #newToken: () => bigint;

  constructor({ newToken, ...ports }: MemoryRedisPorts) {
    this.hashes = new RedisHashes(ports);
    this.#newToken = newToken;
  }

  /** For the servers of one store. */
  of(store: string): RedisCalls {
    const { hashes } = this;
    return {
      sequences: sequencesOf(hashes, store),
      snowflakes: snowflakesOf(hashes, store),
      workers: memoryWorkers(hashes, store, this.#newToken),
      raiseLimit: async ({ limitMs, ...asked }) =>
        hashes.raise({ ...asked, store }, "limit_ms", BigInt(limitMs)),
      retire: async (tag) => hashes.retire({ tag, store }),
      forget: async (tag) => hashes.forget({ tag, store }),
    };
  }
}

function sequencesOf(hashes: RedisHashes, store: string): RedisSequences {
  return {
    issue: async ({ tag, generation, count, seen }) => {
      const doubt = hashes.check({ tag, generation, store }, ["cur", "max"]);
      if (doubt !== undefined) return doubt;
      const cur = bigintOf(hashes, tag, "cur");
      const max = bigintOf(hashes, tag, "max");
      if (cur < seen) return { status: "behind", generation: bigintOf(hashes, tag, "generation") };
      if (BigInt(count) > max - cur) return { status: "exhausted", cur, max };
      const last = cur + BigInt(count);
      if (count > 0) hashes.set(tag, { cur: last });
      return { status: "issued", before: cur, last, max };
    },
    seed: async ({ tag, cur, max, ...asked }) => {
      const rate = hashes.get(tag, "seq_long_term") ?? "0";
      const rates = { seq_recently: "0", seq_long_term: rate };
      const why = hashes.seed({ tag, store, ...asked }, { cur, max, ...rates });
      if (why !== undefined) return why;
      hashes.sequences.add(tag);
      return { status: "seeded" };
    },
    raise: async ({ max, ...asked }) => hashes.raise({ ...asked, store }, "max", max),
    list: async () => ({ tags: [...hashes.sequences], cursor: "0" }),
    unlist: async (tag) => void hashes.sequences.delete(tag),
    read: async (tags) =>
      tags.map((tag) => {
        const [cur, max] = [hashes.get(tag, "cur"), hashes.get(tag, "max")];
        const generation = hashes.get(tag, "generation");
        const isOwn = hashes.get(tag, "store") === store;
        if (!isOwn || cur === undefined || max === undefined || generation === undefined)
          return undefined;
        const longTermRate = hashes.number(tag, "seq_long_term");
        return { cur: BigInt(cur), max: BigInt(max), generation: BigInt(generation), longTermRate };
      }),
    writeRates: async (rates) => {
      for (const { tag, generation, recently, longTerm } of rates) {
        const isOwn = hashes.get(tag, "store") === store;
        if (!isOwn || hashes.get(tag, "generation") !== String(generation)) continue;
        const [short, long] = [recently, longTerm].map((rate) => Math.round(rate * 100) / 100);
        hashes.set(tag, { seq_recently: short ?? 0, seq_long_term: long ?? 0 });
      }
    },
  };
}

function snowflakesOf(hashes: RedisHashes, store: string): RedisSnowflakes {
  return {
    issue: async ({ tag, generation, count, seen }): Promise<SnowflakeIssued | TimedDoubt> => {
      const nowMs = hashes.now();
      const doubt = hashes.check({ tag, generation, store }, ["last_ms", "limit_ms"]);
      if (doubt !== undefined) return { ...doubt, nowMs };
      const has = hashes.number(tag, "last_ms") * COUNTERS_PER_MS + hashes.number(tag, "seq");
      const limitMs = hashes.number(tag, "limit_ms");
      if (has < seen)
        return { status: "behind", generation: bigintOf(hashes, tag, "generation"), nowMs };
      const first = Math.max(has, nowMs * COUNTERS_PER_MS);
      const next = first + count;
      const last = Math.floor((next - 1) / COUNTERS_PER_MS);
      if (count > 0 && last > nowMs + MAX_AHEAD_MS)
        return { status: "ahead", aheadMs: last - nowMs, nowMs, limitMs };
      if (count > 0 && last > limitMs) return { status: "limit", nowMs, limitMs };
      if (count > 0) {
        const seq = next % COUNTERS_PER_MS;
        hashes.set(tag, { last_ms: (next - seq) / COUNTERS_PER_MS, seq });
      }
      return { status: "issued", first, nowMs, limitMs };
    },
    seed: async ({ first, limitMs, ...asked }) => {
      const seq = first % COUNTERS_PER_MS;
      const values = { last_ms: (first - seq) / COUNTERS_PER_MS, seq, limit_ms: limitMs };
      return hashes.seed({ store, ...asked }, values) ?? { status: "seeded" };
    },
  };
}

function bigintOf(hashes: RedisHashes, tag: string, field: string): bigint {
  return BigInt(hashes.get(tag, field) ?? "0");
}
