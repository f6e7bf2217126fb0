import type { BufferOptions } from "@idmint/core";
import type { TicketKind } from "@idmint/core/kinds";
import type { TicketDatabase } from "@idmint/core/server";
import type { Counters } from "../../counters.ts";
import type { Emit } from "../../events.ts";
import type { TicketHealth } from "../../node.ts";
import type { System } from "../../system.ts";
import { TicketFleet } from "../../tickets/fleet.ts";
import { makeSlots } from "../../tickets/make-slots.ts";
import type { SourceOf } from "../kind.ts";
import { TicketSource } from "./source.ts";

/** What a server does with ticket tags. */
export interface Tickets {
  /** The databases, and what this server found wrong with them. */
  readonly databases: () => readonly TicketHealth[];
  /** Undefined without databases. */
  readonly sourceOf: SourceOf<"ticket"> | undefined;
  readonly makeSlots: (tag: string, kind: Omit<TicketKind, "slotsId">) => Promise<TicketKind>;
  /** The last id that the databases which answer have given out; undefined when none answers. */
  readonly lastIdOf: (kind: TicketKind) => Promise<bigint | undefined>;
}

export function createTickets(
  databases: readonly TicketDatabase[],
  ports: { readonly system: System; readonly counters: Counters; readonly emit: Emit },
  options: Pick<BufferOptions, "prefetchShare" | "maxWaiters"> & { readonly timeoutMs: number },
): Tickets {
  const { system, counters, emit } = ports;
  const { clock, timers, random, randomToken } = system;
  const { timeoutMs } = options;
  const fleet = new TicketFleet({ databases, clock, timers, random, emit, timeoutMs });
  const sourcePorts: ConstructorParameters<typeof TicketSource>[2] = {
    fleet,
    clock,
    timers,
    random,
    onEvent: (event) => {
      if (event.type === "wasted") counters.wastedIds += event.count;
      emit(event);
    },
  };
  return {
    databases: () => fleet.all(),
    sourceOf:
      databases.length === 0 ? undefined : (tag) => new TicketSource(tag, options, sourcePorts),
    makeSlots: (tag, kind) => makeSlots(tag, kind, fleet, randomToken),
    lastIdOf: (kind) => lastIdOf(kind, fleet),
  };
}

async function lastIdOf({ slotsId }: TicketKind, fleet: TicketFleet): Promise<bigint | undefined> {
  const asked = fleet.healthy().map((health) => fleet.ask(health, (one) => one.list(slotsId)));
  const views = await Promise.allSettled(asked);
  const lastIds = views.flatMap((view) =>
    view.status === "fulfilled" ? view.value.slots.map(({ lastId }) => lastId) : [],
  );
  return lastIds.toSorted((a, b) => (a < b ? 1 : -1))[0];
}
