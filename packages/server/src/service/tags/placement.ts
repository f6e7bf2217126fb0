import type { TicketKind } from "@idmint/core/kinds";
import type { Tag } from "@idmint/core/server";
import { assertMovable, type MoveRequest } from "../redis/move.ts";

/** Where tags count that do not count in the store. */
export interface Placement {
  /** The Redis server on which a new tag of this name counts; undefined: this server is not configured with redis.urls. */
  readonly redisServerFor: (tag: string) => string | undefined;
  /** Whether this server is configured with ticket.urls. */
  readonly hasTicketDatabases: boolean;
  /** Makes the slots of a new ticket tag in all databases; rejects with STORE_UNAVAILABLE unless each of them did. */
  readonly makeSlots: (tag: string, kind: Omit<TicketKind, "slotsId">) => Promise<TicketKind>;
  /** Throws INVALID_ARGUMENT for what is wrong with a request to move, before anything is asked of the store. */
  readonly assertMovable: (name: string, redisServer: string) => void;
  /** Moves a tag that counts in Redis to another Redis server; WRONG_KIND for others. */
  readonly move: (tag: Tag, request: MoveRequest) => Promise<Tag>;
}

/** Of a server that has neither Redis nor ticket databases. */
export const NOWHERE: Placement = {
  redisServerFor: () => undefined,
  hasTicketDatabases: false,
  makeSlots: () => Promise.reject(new Error("no draft of a ticket tag is good here")),
  assertMovable: (name, redisServer) => assertMovable(name, redisServer, new Map()),
  move: () => Promise.reject(new Error("assertMovable lets no request pass")),
};
