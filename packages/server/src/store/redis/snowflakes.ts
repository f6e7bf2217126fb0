import { COUNTERS_PER_MS, MAX_AHEAD_MS } from "@idmint/core/kinds";
import type {
  RedisSeeded,
  RedisSnowflakes,
  SnowflakeIssued,
  SnowflakeIssueRequest,
  SnowflakeSeedRequest,
} from "@idmint/core/server";
import { doubtOf, nonsense, numberOf, textsOf, vacancyOf } from "./answers.ts";
import { keyOf } from "./keys.ts";
import type { OwnedConnection } from "./owned-connection.ts";
import { SNOWFLAKE_ISSUE, SNOWFLAKE_SEED } from "./scripts.ts";

/** Tags of kind redis_snowflake of one Redis: the hash of a tag is {last_ms, seq, limit_ms, generation, run_id, replid, store}. */
export class SnowflakeScripts implements RedisSnowflakes {
  readonly #connection: OwnedConnection;

  constructor(connection: OwnedConnection) {
    this.#connection = connection;
  }

  async issue({ tag, generation, count, seen }: SnowflakeIssueRequest): Promise<SnowflakeIssued> {
    const args = [generation, count, seen, MAX_AHEAD_MS].map(String);
    const answer = textsOf(await this.#connection.script(SNOWFLAKE_ISSUE, [keyOf(tag)], args));
    const [status, first, limit, now] = answer;
    const nowMs = numberOf(now);
    const doubt = doubtOf(answer);
    if (doubt !== undefined) return { ...doubt, nowMs };
    const limitMs = numberOf(limit);
    if (status === "issued") return { status, first: numberOf(first), nowMs, limitMs };
    if (status === "ahead") return { status, aheadMs: numberOf(first), nowMs, limitMs };
    if (status === "limit") return { status, nowMs, limitMs };
    throw nonsense();
  }

  async seed(request: SnowflakeSeedRequest): Promise<RedisSeeded> {
    const { tag, generation, first, limitMs, doubt: seen } = request;
    const counter = first % COUNTERS_PER_MS;
    const lastMs = (first - counter) / COUNTERS_PER_MS;
    const fields = ["last_ms", lastMs, "seq", counter, "limit_ms", limitMs].map(String);
    const args = [String(generation), vacancyOf(seen), tag, ...fields];
    const answer = textsOf(await this.#connection.script(SNOWFLAKE_SEED, [keyOf(tag)], args));
    if (answer[0] === "seeded") return { status: "seeded" };
    const doubt = doubtOf(answer);
    if (doubt === undefined) throw nonsense();
    return doubt;
  }
}
