import { IdmintError } from "@idmint/core";
import type { TicketDatabase } from "@idmint/core/server";
import type { Network } from "../world/network.ts";
import type { EventQueue } from "../world/queue.ts";
import type { World } from "../world/world.ts";
import type { TicketSite } from "./ticket-site.ts";

export interface SimTicketPorts {
  readonly world: World;
  readonly site: TicketSite;
  readonly network: Network;
  readonly queue: EventQueue;
  readonly timeoutMs: number;
}

/** A ticket database as a server has it. */
export interface SimTicket extends TicketDatabase {
  close(): Promise<void>;
}

/**
 * A ticket database as one node reaches it, over connections of which each carries one request.
 *
 * INVARIANT: a request is done at the database or it is not, whatever its sender learns of it.
 */
export function simTicket({ world, site, network, queue, timeoutMs }: SimTicketPorts): SimTicket {
  const { name } = site.memory;
  const unavailable = (why: string): IdmintError =>
    new IdmintError("STORE_UNAVAILABLE", `ticket database ${name}: ${why}`, { retryAfterMs: 250 });
  const waiting = new Set<() => void>();
  const ask = <T>(work: (database: TicketDatabase) => Promise<T>): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const giveUp = (why: string): void => end(() => reject(unavailable(why)));
    const cancel = world.after(timeoutMs, () => giveUp(`no answer in ${timeoutMs} ms`));
    const closed = (): void => giveUp("it is closed");
    const end = (settle: () => void): void => {
      waiting.delete(closed);
      cancel();
      settle();
    };
    waiting.add(closed);
    const answer = (settle: () => void): void =>
      network.carry(site.place, world.place, () => world.deliver(() => end(settle)));
    network.send(world, site.place, () => {
      const { is, delayMs } = site.fate();
      if (is === "lost") return;
      const run = async (): Promise<void> => {
        try {
          const done = await work(site.calls(world.name));
          if (is === "done") answer(() => resolve(done));
          else answer(() => reject(unavailable("the connection broke")));
        } catch (thrown) {
          answer(() => reject(IdmintError.from(thrown)));
        }
      };
      if (delayMs === 0) void run();
      else queue.after(delayMs, () => void run());
    });
    return promise;
  };
  return {
    name,
    list: (slotsId) => ask((its) => its.list(slotsId)),
    listSlotsIds: (query) => ask((its) => its.listSlotsIds(query)),
    make: (request) => ask((its) => its.make(request)),
    raise: (request) => ask((its) => its.raise(request)),
    grant: (request) => ask((its) => its.grant(request)),
    freeze: (request) => ask((its) => its.freeze(request)),
    adopt: (request) => ask((its) => its.adopt(request)),
    forget: (request) => ask((its) => its.forget(request)),
    confirm: (request) => ask((its) => its.confirm(request)),
    close: async () => waiting.forEach((closed) => closed()),
  };
}
