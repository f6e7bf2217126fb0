// The Redis in memory, over which fleets are simulated, does what the scripts do in a real one: same questions, same answers.
import type { RedisDoubt } from "@idmint/core/server";
import { IdmintError } from "@idmint/core";
import { MemoryRedis, type RedisCalls, type RedisSnapshot } from "@idmint/testkit";
import type { RedisServer } from "@idmint/testkit/redis";
import fc from "fast-check";
import { expect, test } from "vitest";
import { hashOf, ownRedis, redisServerAt } from "./support.ts";

const TAGS = ["one", "two"] as const;
const STORES = ["store-a", "store-b"] as const;
const IS_LONG = process.env["IDMINT_LONG"] === "1";
const RUNS = { numRuns: IS_LONG ? 1_000 : 120 };

/** What must have been answered, or the questions were too few. */
const ANSWERS = [
  "STORE_REFUSED",
  "ahead",
  "behind",
  "done",
  "exhausted",
  "issued",
  "limit",
  "lost",
  "missing",
  "moved",
  "other-generation",
  "restarted",
  "seeded",
];

/** What a question may refer to, in the words of the Redis that is asked. */
interface Known {
  doubt: RedisDoubt;
  token: bigint;
}

/** A question to either, at this time; `of` says how the two name the same thing. */
type Question = (calls: RedisCalls, known: Known, nowMs: number) => Promise<unknown>;

const tag = fc.constantFrom(...TAGS);
const generation = fc.constantFrom(1n, 1n, 1n, 2n, 2n, 3n);
const few = fc.integer({ min: 0, max: 30 });
const asked = fc.record({ tag, generation });
const worker = fc.record({
  tag,
  generation,
  seen: fc.integer({ min: 0, max: 2 }),
  dataCenter: fc.nat(1),
});

/** Times near now, of which some are over. */
const soon = fc.integer({ min: -300, max: 4_000 });

const questions: fc.Arbitrary<Question> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(asked, few, few).map(
      ([of, count, seen]): Question =>
        (calls) =>
          calls.sequences.issue({ ...of, count, seen: BigInt(seen) }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(asked, few, few).map(
      ([of, cur, more]): Question =>
        (calls, { doubt }) =>
          calls.sequences.seed({ ...of, cur: BigInt(cur), max: BigInt(cur + more), doubt }),
    ),
  },
  fc.tuple(asked, few).map(
    ([of, max]): Question =>
      (calls) =>
        calls.sequences.raise({ ...of, max: BigInt(max) }),
  ),
  fc.constant<Question>((calls) => calls.sequences.read(TAGS)),
  fc.constant<Question>(async (calls) =>
    [...(await calls.sequences.list("0", 100)).tags].toSorted(),
  ),
  tag.map(
    (one): Question =>
      (calls) =>
        calls.sequences.unlist(one),
  ),
  fc.tuple(asked, few).map(
    ([of, rate]): Question =>
      (calls) =>
        calls.sequences.writeRates([{ ...of, recently: rate / 7, longTerm: rate / 3 }]),
  ),
  {
    weight: 5,
    arbitrary: fc
      .tuple(asked, fc.constantFrom(0, 1, 30, 2_000, 60_000), soon)
      .map(([of, count, offset]): Question => async (calls, _, nowMs) => {
        const seen = offset > 3_000 ? (nowMs + offset) * 1_024 : 0;
        return calls.snowflakes.issue({ ...of, count, seen });
      }),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(asked, soon, soon).map(
      ([of, first, limit]): Question =>
        (calls, { doubt }, nowMs) =>
          calls.snowflakes.seed({
            ...of,
            first: (nowMs + first) * 1_024 + 7,
            limitMs: nowMs + limit,
            doubt,
          }),
    ),
  },
  fc.tuple(asked, soon).map(
    ([of, limit]): Question =>
      (calls, _, nowMs) =>
        calls.raiseLimit({ ...of, limitMs: nowMs + limit }),
  ),
  {
    weight: 6,
    arbitrary: fc
      .tuple(worker, fc.constantFrom("a", "b", "c", "d"), fc.constantFrom(0, 500, 3_000))
      .map(
        ([of, instance, reserveAheadMs]): Question =>
          (calls) =>
            calls.workers.lease({ ...of, instance, reserveAheadMs, workerIds: 3 }),
      ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(worker, fc.nat(3), soon).map(
      ([of, workerId, until]): Question =>
        (calls, { token }, nowMs) =>
          calls.workers.renew({
            ...of,
            workerId,
            token,
            reserveUntilMs: nowMs + until,
            reserveAheadMs: 3_000,
          }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(worker, fc.nat(3)).map(
      ([of, workerId]): Question =>
        (calls, { token }) =>
          calls.workers.release({ ...of, workerId, token }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(asked, soon, soon).map(
      ([of, after, limit]): Question =>
        (calls, { doubt }, nowMs) =>
          calls.workers.seed({
            ...of,
            afterMs: nowMs + after - 2_000,
            limitMs: nowMs + limit,
            doubt,
          }),
    ),
  },
  fc.tuple(tag, fc.nat(1), fc.integer({ min: 0, max: 3 })).map(
    ([one, dataCenter, limit]): Question =>
      (calls) =>
        calls.workers.list({ tag: one, after: { dataCenter, workerId: 0 }, limit }),
  ),
  tag.map(
    (one): Question =>
      (calls) =>
        calls.retire(one),
  ),
  tag.map(
    (one): Question =>
      (calls) =>
        calls.forget(one),
  ),
);

type Step =
  | { readonly ask: Question; readonly store: (typeof STORES)[number] }
  | { readonly do: "flush" | "save" | "set-back" }
  /** What another process counted. */
  | { readonly stray: (typeof TAGS)[number] }
  | { readonly evict: (typeof TAGS)[number] };

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 40,
    arbitrary: fc.record({
      ask: questions,
      // Seldom somebody else's.
      store: fc.constantFrom(...Array<"store-a">(9).fill("store-a"), "store-b"),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("flush", "save", "save", "set-back") }) },
  { weight: 1, arbitrary: fc.record({ evict: tag }) },
  { weight: 1, arbitrary: fc.record({ stray: tag }) },
);

/** A real Redis and the one in memory, side by side. */
class Pair {
  readonly redis: RedisServer;
  readonly met: Set<string>;
  readonly #real: ReadonlyMap<string, RedisCalls>;
  readonly #memory: MemoryRedis;
  #nowMs = 0;
  #asked = 0;
  #token = 1n;
  #saved: RedisSnapshot;
  readonly #known: Record<"memory" | "real", Known> = {
    real: { doubt: { status: "restarted", generation: 1n }, token: 1n },
    memory: { doubt: { status: "restarted", generation: 1n }, token: 1n },
  };

  /** `met`: what was answered. */
  constructor(redis: RedisServer, real: ReadonlyMap<string, RedisCalls>, met: Set<string>) {
    this.redis = redis;
    this.met = met;
    this.#real = real;
    this.#memory = new MemoryRedis({
      // Two questions of one millisecond are some microseconds apart.
      wallClock: () => this.#nowMs + this.#asked / 1_000,
      newToken: () => this.#token,
    });
    this.#saved = this.#memory.hashes.snapshot();
  }

  async do(step: Step): Promise<void> {
    if ("ask" in step) return this.#ask(step.ask, step.store);
    const { hashes } = this.#memory;
    if ("evict" in step) {
      await this.redis.command("DEL", `idmint:{${step.evict}}`);
      hashes.remove(step.evict);
    } else if ("stray" in step) {
      if (hashes.get(step.stray, "run_id") === undefined) return;
      await this.redis.command("HSET", `idmint:{${step.stray}}`, "run_id", "another");
      hashes.set(step.stray, { run_id: "another" });
    } else if (step.do === "flush") {
      await this.redis.command("FLUSHALL");
      hashes.flush();
    } else if (step.do === "save") {
      await this.redis.command("SAVE");
      this.#saved = hashes.snapshot();
    } else if (step.do === "set-back") {
      await this.redis.command("DEBUG", "RELOAD", "NOSAVE");
      hashes.restore(this.#saved);
    }
  }

  /** The same question to both. The one in memory is asked at each millisecond at which the real one may have answered. */
  async #ask(ask: Question, store: string): Promise<void> {
    const { hashes } = this.#memory;
    this.#asked++;
    const from = await this.#time();
    const real = await settled(ask(this.#real.get(store)!, this.#known.real, from));
    const to = await this.#time();
    const realHashes = await this.#hashes();
    if (isDone(real)) this.#token = real.token;
    const before = hashes.snapshot();
    let tried: unknown;
    for (this.#nowMs = from; this.#nowMs <= to; this.#nowMs++) {
      hashes.restore(before);
      const memory = await settled(ask(this.#memory.of(store), this.#known.memory, from));
      const hashesAre = TAGS.map((one) => named(Object.fromEntries(hashes.fields(one))));
      tried = { answer: plain(memory), hashes: hashesAre };
      if (!isSame(tried, { answer: plain(real), hashes: realHashes })) continue;
      this.#learn(real, memory);
      return;
    }
    expect(tried).toEqual({ answer: plain(real), hashes: realHashes });
    expect.fail("asked at no time");
  }

  #learn(real: unknown, memory: unknown): void {
    this.met.add(typeof real === "string" ? real : String(statusOf(real)));
    if (isDoubt(real) && isDoubt(memory)) {
      this.#known.real.doubt = real;
      this.#known.memory.doubt = memory;
    }
    if (isDone(real)) this.#known.real.token = this.#known.memory.token = real.token;
  }

  async #hashes(): Promise<readonly unknown[]> {
    return Promise.all(TAGS.map(async (one) => named(await hashOf(this.redis, one))));
  }

  async #time(): Promise<number> {
    const [seconds, micros] = (await this.redis.command("TIME")) as [string, string];
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  }
}

/** Without what the two name differently: their processes, and times of emptiness. */
function named({ run_id, replid, vacant, ...fields }: Record<string, string>): unknown {
  return {
    ...fields,
    isOf: [run_id, replid].map((id) => id !== undefined),
    isVacant: vacant !== undefined,
  };
}

function plain(answer: unknown): unknown {
  if (!isDoubt(answer) || answer.status !== "missing") return answer;
  return { ...answer, vacancy: "" };
}

async function settled(asking: Promise<unknown>): Promise<unknown> {
  try {
    return await asking;
  } catch (thrown) {
    return IdmintError.from(thrown).reason;
  }
}

function isSame(one: unknown, other: unknown): boolean {
  return textOf(one) === textOf(other);
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === "bigint") return `${part}n`;
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}

function statusOf(answer: unknown): unknown {
  return typeof answer === "object" && answer !== null && "status" in answer
    ? answer.status
    : undefined;
}

function isDone(answer: unknown): answer is { readonly token: bigint } {
  return statusOf(answer) === "done";
}

function isDoubt(answer: unknown): answer is RedisDoubt {
  const doubts = ["missing", "restarted", "other-generation", "behind", "moved"];
  return doubts.includes(String(statusOf(answer)));
}

test("a Redis in memory answers as a real one", async () => {
  const redis = await ownRedis({ settings: { "enable-debug-command": "yes" } });
  const clients = await Promise.all(
    STORES.map(
      async (store) => [store, await redisServerAt(redis.url, 2_000, "default", store)] as const,
    ),
  );
  const real = new Map<string, RedisCalls>(clients);
  const met = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 20, maxLength: 60 }), async (plan) => {
      await redis.command("FLUSHALL");
      await redis.command("SAVE");
      const pair = new Pair(redis, real, met);
      for (const step of plan) await pair.do(step);
    }),
    RUNS,
  );
  // So few walks as a short run has may miss a rare one.
  if (IS_LONG) expect([...met].toSorted()).toEqual(expect.arrayContaining(ANSWERS));
});
