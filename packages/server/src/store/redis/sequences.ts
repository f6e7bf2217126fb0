import type {
  RedisSeeded,
  RedisSequences,
  SequenceIssued,
  SequenceIssueRequest,
  SequenceRates,
  SequenceReading,
  SequenceSeedRequest,
} from "@idmint/core/server";
import { bigintOf, doubtOf, nonsense, textsOf, vacancyOf } from "./answers.ts";
import { keyOf, SEQUENCES_KEY } from "./keys.ts";
import type { OwnedConnection } from "./owned-connection.ts";
import { RAISE, SEQUENCE_ISSUE, SEQUENCE_SEED, WRITE_RATES } from "./scripts.ts";

/** Sequences of one Redis: the hash of a tag is {cur, max, seq_recently, seq_long_term, generation, run_id, replid, store}. */
export class SequenceScripts implements RedisSequences {
  readonly #connection: OwnedConnection;

  constructor(connection: OwnedConnection) {
    this.#connection = connection;
  }

  async issue({ tag, generation, count, seen }: SequenceIssueRequest): Promise<SequenceIssued> {
    const args = [String(generation), String(count), String(seen)];
    const answer = textsOf(await this.#connection.script(SEQUENCE_ISSUE, [keyOf(tag)], args));
    const [status, first, second, third] = answer;
    if (status === "issued") {
      const before = bigintOf(first);
      return { status, before, last: bigintOf(second), max: bigintOf(third) };
    }
    if (status === "exhausted") return { status, cur: bigintOf(first), max: bigintOf(second) };
    return doubtOf(answer) ?? fail();
  }

  async seed({ tag, generation, cur, max, doubt }: SequenceSeedRequest): Promise<RedisSeeded> {
    const fields = ["cur", String(cur), "max", String(max)];
    const args = [String(generation), vacancyOf(doubt), tag, ...fields];
    const keys = [keyOf(tag), SEQUENCES_KEY];
    const answer = textsOf(await this.#connection.script(SEQUENCE_SEED, keys, args));
    return answer[0] === "seeded" ? { status: "seeded" } : (doubtOf(answer) ?? fail());
  }

  async raise(request: { tag: string; generation: bigint; max: bigint }): Promise<boolean> {
    const args = [String(request.generation), "max", String(request.max)];
    return (await this.#connection.script(RAISE, [keyOf(request.tag)], args)) === "1";
  }

  async list(cursor: string, limit: number): Promise<{ tags: readonly string[]; cursor: string }> {
    return this.#connection.run(async (redis) => {
      const [next, tags] = await redis.sscan(SEQUENCES_KEY, cursor, "COUNT", limit);
      return { tags, cursor: next };
    });
  }

  async unlist(tag: string): Promise<void> {
    await this.#connection.run((redis) => redis.srem(SEQUENCES_KEY, tag));
  }

  async read(tags: readonly string[]): Promise<readonly (SequenceReading | undefined)[]> {
    const fields = ["cur", "max", "generation", "seq_long_term"];
    const answers = await this.#connection.read(tags.map(keyOf), fields);
    return answers.map((values) => (values === undefined ? undefined : readingOf(values)));
  }

  async writeRates(rates: readonly SequenceRates[]): Promise<void> {
    await Promise.all(
      rates.map(({ tag, generation, recently, longTerm }) => {
        const args = [String(generation), rateText(recently), rateText(longTerm)];
        return this.#connection.script(WRITE_RATES, [keyOf(tag)], args);
      }),
    );
  }
}

function readingOf(values: readonly (string | null)[]): SequenceReading | undefined {
  const [cur, max, generation, longTerm] = values;
  if (typeof cur !== "string" || typeof max !== "string" || typeof generation !== "string") {
    return undefined;
  }
  const rate = Number(longTerm);
  return {
    cur: bigintOf(cur),
    max: bigintOf(max),
    generation: bigintOf(generation),
    longTermRate: Number.isFinite(rate) && rate > 0 ? rate : 0,
  };
}

/** Ids a second, with as many digits as people can use. */
function rateText(rate: number): string {
  return String(Math.round(rate * 100) / 100);
}

function fail(): never {
  throw nonsense();
}
