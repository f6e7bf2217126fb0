import { Connection, type ConnectionConfig } from "./connection.ts";
import { fitnessOf, unfitText } from "./fitness.ts";

/** What `idmint doctor` shows of a Redis. */
export interface RedisStanding {
  readonly version: string;
  /** Why nobody should count in it, and how to mend it; undefined: it is fit. */
  readonly unfit: string | undefined;
  /** Whether it writes down each change, so that it comes back from a restart as it was. */
  readonly keepsLog: boolean;
  /** Whether that works: the disk may be full. */
  readonly writesLog: boolean;
}

/** Looks at a Redis without changing it, for `boundMs` at most. Rejects with STORE_UNAVAILABLE when it does not answer. */
export async function redisStanding(
  config: ConnectionConfig,
  boundMs: number,
): Promise<RedisStanding> {
  const connection = new Connection(config);
  try {
    await connection.connected(boundMs);
    const info = await connection.run((redis) => redis.info());
    const refusal = await connection.probe();
    return {
      version: /^redis_version:(\S+)/m.exec(info)?.[1] ?? "unknown",
      unfit: unfitText(fitnessOf(info)) ?? (refusal === "" ? undefined : refusal),
      keepsLog: /^aof_enabled:1\r?$/m.test(info),
      writesLog: !/^aof_last_write_status:(?!ok)/m.test(info),
    };
  } finally {
    connection.close();
  }
}
