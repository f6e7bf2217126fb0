import type {
  CountingRedis,
  RedisSequences,
  RedisSnowflakes,
  RedisWorkers,
} from "@idmint/core/server";
import type { ConnectionConfig } from "./connection.ts";
import { keyOf, SEQUENCES_KEY } from "./keys.ts";
import { OwnedConnection } from "./owned-connection.ts";
import { FORGET, RAISE, RETIRE } from "./scripts.ts";
import { SequenceScripts } from "./sequences.ts";
import { SnowflakeScripts } from "./snowflakes.ts";
import { WorkerScripts } from "./worker-leases.ts";

/** One Redis, through one connection that is made again whenever it breaks. */
export class CountingRedisClient implements CountingRedis {
  readonly name: string;
  readonly sequences: RedisSequences;
  readonly snowflakes: RedisSnowflakes;
  readonly workers: RedisWorkers;
  readonly #connection: OwnedConnection;

  constructor(config: ConnectionConfig, storeId: () => string | undefined) {
    this.name = config.name;
    this.#connection = new OwnedConnection(config, storeId);
    this.sequences = new SequenceScripts(this.#connection);
    this.snowflakes = new SnowflakeScripts(this.#connection);
    this.workers = new WorkerScripts(this.#connection);
  }

  get reachable(): boolean {
    return this.#connection.isReady;
  }

  get refusal(): string {
    return this.#connection.refusal;
  }

  /** Why nobody can ever count in it; undefined: somebody may, as far as is known. */
  misfit(): Promise<string | undefined> {
    return this.#connection.misfit();
  }

  /** Waits for the first connection, not longer than that. */
  connected(boundMs: number): Promise<boolean> {
    return this.#connection.connected(boundMs);
  }

  async raiseLimit({
    tag,
    generation,
    limitMs,
  }: Parameters<CountingRedis["raiseLimit"]>[0]): Promise<boolean> {
    const args = [String(generation), "limit_ms", String(limitMs)];
    return (await this.#connection.script(RAISE, [keyOf(tag)], args)) === "1";
  }

  async retire(tag: string): Promise<void> {
    await this.#connection.script(RETIRE, [keyOf(tag), SEQUENCES_KEY], [tag]);
  }

  async forget(tag: string): Promise<void> {
    await this.#connection.script(FORGET, [keyOf(tag)], []);
  }

  async close(): Promise<void> {
    this.#connection.close();
  }
}
