import { IdmintError } from "@idmint/core";
import type { TicketDatabase } from "@idmint/core/server";
import { type RequestFate, type RequestPorts, Requests } from "./requests.ts";
import type { TicketSite } from "./ticket-site.ts";

export interface SimTicketPorts extends RequestPorts {
  readonly site: TicketSite;
}

/** A ticket database as a server has it. */
export interface SimTicket extends TicketDatabase {
  close(): Promise<void>;
}

/** A ticket database as one node reaches it. */
export function simTicket({ site, ...ports }: SimTicketPorts): SimTicket {
  const { name } = site.memory;
  const unavailable = (why: string): IdmintError =>
    new IdmintError("STORE_UNAVAILABLE", `ticket database ${name}: ${why}`, { retryAfterMs: 250 });
  const requests = new Requests(ports, site.place, unavailable);
  const fate = (): RequestFate => site.fate();
  const ask = <T>(work: (database: TicketDatabase) => Promise<T>): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    requests.send({ fate, work: () => work(site.calls(ports.world.name)), resolve, reject });
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
    close: async () => requests.close(),
  };
}
