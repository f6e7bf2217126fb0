import { backoffMs, type Clock, IdmintError, type Random, type Timers } from "@idmint/core";
import {
  type CountingPlace,
  type CountingRedis,
  doubted,
  outdated,
  placeRead,
  type Raised,
  type RedisDoubt,
  type RedisSeeded,
  seedAnswered,
  type SeedingState,
  startSeeding,
  storeUnavailable,
} from "@idmint/core/server";
import type { Emit } from "../events.ts";
import type { Marks } from "./marks.ts";
import { redisServerNamed } from "./servers.ts";

/** Longest time one round trip may take to come to an agreement. */
const MAX_ROUND_TRIP_MS = 5_000;

/** What one tag's round trips need of the world. */
export interface AgreementPorts<Question, Answer extends { readonly status: string }> {
  /** The Redis server of this name; undefined when this server is not configured with it. */
  readonly redisServer: (name: string) => CountingRedis | undefined;
  /** One script call under a generation, of which Redis counted up to `mark` for somebody. */
  readonly ask: (
    redisServer: CountingRedis,
    generation: bigint,
    question: Question,
    mark: bigint,
  ) => Promise<Answer | RedisDoubt>;
  /** Raises the tag's bound in the RDBMS with a new generation, at least this one, by enough for the question. */
  readonly raise: (question: Question, generationFrom: bigint) => Promise<Raised>;
  /** Where the tag counts, from its row. */
  readonly readPlace: () => Promise<CountingPlace>;
  /** Seeds what was raised. Sent at most once. */
  readonly seed: (
    redisServer: CountingRedis,
    raised: Raised,
    doubt: RedisDoubt,
  ) => Promise<RedisSeeded>;
  /** How far Redis had counted for any server. */
  readonly marks: Marks;
  /** Whether ids of a lower generation are out of order once somebody has some of a higher one. */
  readonly isOrdered: boolean;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly emit: Emit;
}

/** A question that Redis answered with a doubt. */
interface Asked<Question> {
  readonly redisServer: CountingRedis;
  readonly question: Question;
  readonly doubt: RedisDoubt;
}

/**
 * Keeps one tag of this server in agreement with Redis and with the RDBMS. The shell around `seeding-state.ts` of core,
 * which has the rules and the invariants.
 */
export class RedisAgreement<Question, Answer extends { readonly status: string }> {
  readonly #tag: string;
  readonly #ports: AgreementPorts<Question, Answer>;
  #place: CountingPlace;
  /** New starts that failed in a row, since when no other is tried, and why. */
  #failures = 0;
  #retryAt = -Infinity;
  #failure: IdmintError | undefined;
  /** The Redis server that answered last. */
  #answeredBy: string | undefined;

  constructor(tag: string, place: CountingPlace, ports: AgreementPorts<Question, Answer>) {
    this.#tag = tag;
    this.#place = place;
    this.#ports = ports;
  }

  /** A newer record of the tag was seen. */
  update(place: CountingPlace): void {
    const { generation } = this.#place;
    const isNewer = place.generation > generation;
    this.#place = {
      redisServer: place.redisServer,
      generation: isNewer ? place.generation : generation,
    };
  }

  /** The tag's row has this generation. */
  heard(generation: bigint): void {
    this.update({ ...this.#place, generation });
  }

  /** Where the tag counts, as far as is known. */
  get place(): CountingPlace {
    return this.#place;
  }

  /** Asks Redis until it answers without a doubt. Rejects with STORE_UNAVAILABLE, or the refusals of the tag. */
  async ask(question: Question): Promise<Answer> {
    const { clock, marks, isOrdered } = this.#ports;
    const end = clock.now() + MAX_ROUND_TRIP_MS;
    let state = startSeeding(this.#place.generation);
    while (clock.now() < end) {
      // Each question depends on the answer before.
      const redisServer = this.#redisServer();
      const mark = await this.#mark(state.generation);
      const newest = isOrdered ? marks.newest(this.#tag) : 0n;
      if (newest > state.generation) {
        const doubt: RedisDoubt = { status: "behind", generation: state.generation };
        state = await this.#settle({ redisServer, question, doubt }, outdated(state, newest));
        this.#place = { ...this.#place, generation: state.generation };
        continue;
      }
      const answer = await this.#ports.ask(redisServer, state.generation, question, mark);
      if (!isDoubt(answer)) {
        this.#failures = 0;
        this.#answeredBy = redisServer.name;
        return answer;
      }
      state = await this.#settle({ redisServer, question, doubt: answer }, doubted(state, answer));
      this.#place = { ...this.#place, generation: state.generation };
    }
    throw this.#refusal("Redis and the store do not come to an agreement");
  }

  /**
   * How far Redis counted under a generation for anybody. Known before Redis is asked under it: Redis may have been set back
   * in the middle of its life, and then only those know who were answered.
   */
  async #mark(generation: bigint): Promise<bigint> {
    const { marks } = this.#ports;
    const which = { tag: this.#tag, generation };
    return marks.of(which) ?? marks.read(which);
  }

  async #settle(asked: Asked<Question>, first: ReturnType<typeof doubted>): Promise<SeedingState> {
    const { redisServer } = asked;
    let { state, step } = first;
    for (;;) {
      switch (step.type) {
        case "ask-again":
          await this.#pause(step.withinMs);
          return state;
        case "elsewhere":
          this.#place = { redisServer: step.redisServer, generation: state.generation };
          return state;
        case "refuse":
          throw this.#refusal(step.why);
        case "read-place": {
          const place = await this.#ports.readPlace();
          ({ state, step } = placeRead(state, redisServer.name, place));
          break;
        }
        case "re-seed":
          ({ state, step } = await this.#seed({ ...asked, doubt: step.doubt }, state));
          break;
      }
    }
  }

  /**
   * A new start. The row is read after the raise: a tag that was moved meanwhile is not started in its old place. What was
   * raised and not seeded is a gap.
   */
  async #seed(
    { redisServer, question, doubt }: Asked<Question>,
    state: SeedingState,
  ): Promise<ReturnType<typeof seedAnswered>> {
    const { clock, random, emit, marks, raise, readPlace, seed } = this.#ports;
    if (this.#failure !== undefined && clock.now() < this.#retryAt) throw this.#failure;
    try {
      const raised = await raise(question, this.#generationFrom(doubt));
      const place = await readPlace();
      if (place.redisServer !== redisServer.name) return placeRead(state, redisServer.name, place);
      const answer = await seed(redisServer, raised, doubt);
      this.#failure = undefined;
      if (answer.status === "seeded") {
        const { generation, before: from } = raised;
        marks.note({ tag: this.#tag, generation, mark: 0n });
        const why = doubt.status;
        // Emptiness alone is what a new tag meets too, and one that was moved.
        const wasThere = this.#answeredBy === redisServer.name;
        const isLoss = why === "missing" ? wasThere : why === "restarted" || why === "behind";
        const where = { tag: this.#tag, redisServer: redisServer.name };
        emit({ type: "redis-seeded", ...where, generation, from, why, isLoss });
      }
      return seedAnswered(state, raised.generation, answer);
    } catch (thrown) {
      this.#failure = IdmintError.from(thrown);
      this.#failures++;
      this.#retryAt = clock.now() + backoffMs(this.#failures, random);
      throw this.#failure;
    }
  }

  /**
   * A new generation is above the one in Redis and all that somebody was answered under, and not below the present time in
   * seconds: so none that Redis may have kept from a history of the store that was lost, or from another store, is taken
   * for it.
   */
  #generationFrom(doubt: RedisDoubt): bigint {
    const { wallClock, marks } = this.#ports;
    const seconds = BigInt(Math.floor(wallClock() / 1_000));
    const above = "generation" in doubt ? doubt.generation + 1n : 0n;
    const newest = marks.newest(this.#tag) + 1n;
    return [above, newest].reduce((most, one) => (one > most ? one : most), seconds);
  }

  #redisServer(): CountingRedis {
    return redisServerNamed(this.#ports.redisServer, this.#tag, this.#place.redisServer);
  }

  async #pause(withinMs: number): Promise<void> {
    if (withinMs === 0) return;
    const { random, timers } = this.#ports;
    const { promise, resolve } = Promise.withResolvers<void>();
    timers.after(Math.ceil(random() * withinMs), resolve);
    await promise;
  }

  #refusal(why: string): IdmintError {
    return storeUnavailable(`tag "${this.#tag}": ${why}`);
  }
}

const DOUBTS: ReadonlySet<string> = new Set([
  "missing",
  "restarted",
  "other-generation",
  "behind",
  "moved",
] satisfies RedisDoubt["status"][]);

function isDoubt(answer: { readonly status: string }): answer is RedisDoubt {
  return DOUBTS.has(answer.status);
}
