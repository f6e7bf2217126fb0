import type { Clock } from "@idmint/core";
import type { Emit } from "../service/events.ts";

/** Reports the loss and the return of a Redis server, once each, however often the connection is tried. */
export function redisEvents(
  redisServer: string,
  clock: Clock,
  emit: Emit,
): (change: { readonly isConnected: boolean; readonly why?: string }) => void {
  let lostAt: number | undefined;
  return ({ isConnected, why = "" }) => {
    if (isConnected) {
      if (lostAt === undefined) return;
      emit({ type: "redis-back", redisServer, afterMs: Math.round(clock.now() - lostAt) });
      lostAt = undefined;
    } else if (lostAt === undefined) {
      lostAt = clock.now();
      emit({ type: "redis-lost", redisServer, why });
    }
  };
}
