import type { Store, TicketDatabase } from "@idmint/core/server";
import type { Config } from "../config/table.ts";
import type { Counters } from "../service/counters.ts";
import type { Emit } from "../service/events.ts";
import { redisCounters } from "../service/kinds/redis-counters.ts";
import type { SourcesPorts } from "../service/kinds/sources.ts";
import { createTickets, type Tickets } from "../service/kinds/ticket/tickets.ts";
import { createRedisTags, type ElectedRedis, type RedisTags } from "../service/redis/redis-tags.ts";
import type { System } from "../service/system.ts";
import type { Placement } from "../service/tags/placement.ts";
import type { Raises } from "../service/upstream/raises.ts";

/** Where tags count besides the store. */
export interface External {
  readonly ticketDatabases: readonly TicketDatabase[];
  readonly redisServers: readonly ElectedRedis[];
}

export const NO_EXTERNAL: External = { ticketDatabases: [], redisServers: [] };

export interface ExternalPorts {
  readonly system: System;
  readonly store: Store;
  readonly raises: Raises;
  readonly counters: Counters;
  readonly emit: Emit;
}

/** What a server does with tags that count elsewhere than in the store. */
export interface ExternalTags {
  readonly redis: RedisTags;
  readonly ticketDatabases: Tickets["databases"];
  readonly lastTicketOf: Tickets["lastIdOf"];
  readonly placement: Placement;
  readonly sources: Pick<SourcesPorts, "redis" | "ticket">;
}

export function createExternal(
  { ticketDatabases, redisServers }: External,
  config: Config,
  ports: ExternalPorts,
  graceMs: number,
): ExternalTags {
  const { limitWaiters: maxWaiters, prefetchShare } = config;
  const tickets = createTickets(ticketDatabases, ports, {
    prefetchShare,
    maxWaiters,
    timeoutMs: config.ticketTimeoutMs + graceMs,
  });
  const redis = createRedisTags(
    { ...ports, redisServers, storeTimeoutMs: config.storeTimeoutMs + graceMs },
    redisCounters,
    { raiseBelowMs: config.redisRaiseBelowMs, raiseByMs: config.redisRaiseByMs },
  );
  const { redisServerFor, assertMovable, move } = redis;
  const { makeSlots } = tickets;
  const hasTicketDatabases = ticketDatabases.length > 0;
  return {
    redis,
    ticketDatabases: tickets.databases,
    lastTicketOf: tickets.lastIdOf,
    placement: { redisServerFor, assertMovable, move, hasTicketDatabases, makeSlots },
    sources: { redis: redis.counters, ticket: tickets.sourceOf },
  };
}
