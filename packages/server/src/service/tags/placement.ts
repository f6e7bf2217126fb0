import type { TicketKind } from "@idmint/core/kinds";
import { assertMovable } from "../redis/move.ts";
import type { RedisPlacement } from "../redis/redis-tags.ts";

/** Where tags count that do not count in the store. */
export interface Placement extends RedisPlacement {
  /** Whether this server is configured with ticket.urls. */
  readonly hasTicketDatabases: boolean;
  /** Makes the slots of a new ticket tag in all databases; rejects with STORE_UNAVAILABLE unless each of them did. */
  readonly makeSlots: (tag: string, kind: Omit<TicketKind, "slotsId">) => Promise<TicketKind>;
}

/** Of a server that has neither Redis nor ticket databases. */
export const NOWHERE: Placement = {
  redisServerFor: () => undefined,
  hasTicketDatabases: false,
  makeSlots: () => Promise.reject(new Error("no draft of a ticket tag is good here")),
  assertMovable: (name, redisServer) => assertMovable(name, redisServer, new Map()),
  move: () => Promise.reject(new Error("assertMovable lets no request pass")),
};
