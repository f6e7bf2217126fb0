import { redisIsForeign, storeUnavailable } from "@idmint/core/server";
import type { Redis } from "ioredis";
import { Connection, type ConnectionConfig } from "./connection.ts";
import type { Script } from "./scripts.ts";

/** A connection of servers of one store. */
export class OwnedConnection extends Connection {
  readonly #name: string;
  readonly #storeId: () => string | undefined;

  /** `storeId` answers undefined before the store was heard. */
  constructor(config: ConnectionConfig, storeId: () => string | undefined) {
    super(config);
    this.#name = config.name;
    this.#storeId = storeId;
  }

  /** Adds the store's id to what the script is told. Rejects with STORE_REFUSED when the tag's hash is another store's. */
  override async script(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const own = this.#own();
    const answer = await super.script(script, keys, [...args, own]);
    if (Array.isArray(answer) && answer[0] === "foreign") {
      throw redisIsForeign({ redisServer: this.#name, key: keys[0] ?? "" }, String(answer[1]), own);
    }
    return answer;
  }

  /** What the fields of hashes are, in their order; undefined for a hash that is not this store's. */
  async read(
    keys: readonly string[],
    fields: readonly string[],
  ): Promise<readonly (readonly (string | null)[] | undefined)[]> {
    const own = this.#own();
    const read = (redis: Redis, key: string) => redis.hmget(key, "store", ...fields);
    const answers = await this.run((redis) => Promise.all(keys.map((key) => read(redis, key))));
    return answers.map(([owner, ...values]) => (owner === own ? values : undefined));
  }

  #own(): string {
    const own = this.#storeId();
    if (own !== undefined) return own;
    throw storeUnavailable(
      `which store counts in Redis "${this.#name}" is not known yet: the store has not answered`,
    );
  }
}
