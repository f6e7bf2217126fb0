import { type Clock, IdmintError, type Random, type Timers } from "@idmint/core";
import {
  answered,
  createFleet,
  type DatabaseHealth,
  failed,
  type FleetState,
  nextDatabase,
  retryInMs,
  storeUnavailable,
  type TicketDatabase,
} from "@idmint/core/server";
import { within } from "../call.ts";
import type { Emit } from "../events.ts";

export interface TicketFleetPorts {
  readonly databases: readonly TicketDatabase[];
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly emit: Emit;
  /** A database is given up after this; its own time-outs come first. */
  readonly timeoutMs: number;
}

/** The ticket databases of this server, and which of them answer. All tags share what one of them finds out. */
export class TicketFleet {
  readonly #state: FleetState;
  readonly #ports: TicketFleetPorts;
  readonly #databases: ReadonlyMap<string, TicketDatabase>;

  constructor(ports: TicketFleetPorts) {
    this.#ports = ports;
    this.#databases = new Map(ports.databases.map((database) => [database.name, database]));
    this.#state = createFleet([...this.#databases.keys()]);
  }

  /** Whether they answer or not. */
  all(): readonly DatabaseHealth[] {
    return this.#state.databases;
  }

  /** The database whose turn it is, out of those not tried; undefined when none may be asked now. */
  next(tried: ReadonlySet<string>): DatabaseHealth | undefined {
    const { clock, timeoutMs } = this.#ports;
    return nextDatabase(this.#state, clock.now(), timeoutMs, tried);
  }

  /** The databases that answered when they were last asked, or were not asked yet. */
  healthy(): readonly DatabaseHealth[] {
    return this.#state.databases.filter(({ failures }) => failures === 0);
  }

  /** Asks a database in time; a failure puts it out of turn for its back-off time. */
  async ask<T>(health: DatabaseHealth, work: (database: TicketDatabase) => Promise<T>): Promise<T> {
    const { timers, timeoutMs } = this.#ports;
    const database = this.#databases.get(health.name);
    if (database === undefined) throw storeUnavailable(`no ticket database ${health.name}`);
    try {
      return await within(() => work(database), timeoutMs, timers);
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      this.fail(health, error);
      throw error;
    }
  }

  /** A database did all that was asked of it for a load: it is in turn again. */
  noteAnswer(health: DatabaseHealth): void {
    if (answered(health)) {
      this.#ports.emit({ type: "ticket-database-back", database: health.name });
    }
  }

  /** A database's answer shows that it must not be used. */
  fail(health: DatabaseHealth, error: IdmintError): void {
    const { clock, random, emit } = this.#ports;
    const isNew = failed(health, error, clock.now(), random);
    if (isNew) emit({ type: "ticket-database-lost", database: health.name, error });
  }

  /** Why no database gives ids: what an operator has to mend, unless one that is away may come back. */
  unavailable(): IdmintError {
    const { databases } = this.#state;
    const errors = databases.map(({ error }) => error).filter((error) => error !== undefined);
    const [first] = errors;
    if (first !== undefined && errors.every(({ retryable }) => !retryable)) return first;
    const retryAfterMs = retryInMs(this.#state, this.#ports.clock.now());
    const text =
      databases.length === 0
        ? "this server has no ticket databases; name them in ticket.urls"
        : "no ticket database gives ids now";
    return new IdmintError("STORE_UNAVAILABLE", text, { retryAfterMs, cause: first });
  }
}
