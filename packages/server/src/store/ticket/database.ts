import { IdmintError, MAX_SEGMENT_COUNT } from "@idmint/core";
import { MAX_SLOTS } from "@idmint/core/kinds";
import {
  nameOfId,
  type SlotGrant,
  type TicketDatabase,
  type TicketRequest,
} from "@idmint/core/server";
import { assertLogged } from "../postgres/faults/unlogged.ts";
import { Connections } from "../postgres/connections.ts";
import { appliedMigrations } from "../postgres/schema.ts";
import { Belonging } from "../postgres/hosts/belonging.ts";
import { passingPins, type StorePin } from "../pins/pin.ts";
import { workableVersion } from "../shared/migration.ts";
import { checkTicketName, type TicketConfig } from "./config.ts";
import { grant } from "./grant.ts";
import { SCHEMA } from "./migrate.ts";
import { migrations } from "./migrations/index.ts";
import { Slots } from "./slots.ts";

/**
 * A ticket database. It may be away when this is made, and come back later: its schema and its name are looked at before
 * the first statement, and each statement proves that the database is the one that was accepted.
 */
export class PostgresTicketDatabase implements TicketDatabase {
  readonly name: string;
  readonly #belonging: Belonging;
  readonly #connections: Connections;
  readonly #slots: Slots;
  #isKnown = false;

  /** Default: it stays the database that it is at first. */
  constructor(config: TicketConfig, pin: StorePin = passingPins().of("")) {
    checkTicketName(config.name);
    this.name = config.name;
    this.#belonging = new Belonging("idmint_ticket.database", pin, (id) =>
      assertName(config.name, id),
    );
    const named = { applicationName: "idmint-ticket", ...config };
    this.#connections = new Connections(named, this.#belonging);
    this.#slots = new Slots(this.#connections, this.name);
  }

  async list(...args: Parameters<TicketDatabase["list"]>): ReturnType<TicketDatabase["list"]> {
    await this.#know();
    return this.#slots.list(...args);
  }

  async listSlotsIds(
    ...args: Parameters<TicketDatabase["listSlotsIds"]>
  ): ReturnType<TicketDatabase["listSlotsIds"]> {
    await this.#know();
    return this.#slots.listSlotsIds(...args);
  }

  async make(...args: Parameters<TicketDatabase["make"]>): Promise<void> {
    await this.#know();
    return this.#slots.make(...args);
  }

  async raise(...args: Parameters<TicketDatabase["raise"]>): ReturnType<TicketDatabase["raise"]> {
    await this.#know();
    return this.#slots.raise(...args);
  }

  async grant(request: Parameters<TicketDatabase["grant"]>[0]): Promise<readonly SlotGrant[]> {
    assertRequests(request);
    await this.#know();
    return grant(this.#connections, this.name, request);
  }

  async freeze(
    ...args: Parameters<TicketDatabase["freeze"]>
  ): ReturnType<TicketDatabase["freeze"]> {
    await this.#know();
    return this.#slots.freeze(...args);
  }

  async adopt(...args: Parameters<TicketDatabase["adopt"]>): ReturnType<TicketDatabase["adopt"]> {
    await this.#know();
    return this.#slots.adopt(...args);
  }

  async forget(...args: Parameters<TicketDatabase["forget"]>): Promise<void> {
    await this.#know();
    return this.#slots.forget(...args);
  }

  async confirm(...args: Parameters<TicketDatabase["confirm"]>): Promise<void> {
    await this.#know();
    return this.#slots.confirm(...args);
  }

  async close(): Promise<void> {
    await this.#connections.close();
  }

  async #know(): Promise<void> {
    if (this.#isKnown) return;
    await this.#connections.run(async (session) => {
      const applied = await appliedMigrations(session, SCHEMA);
      workableVersion(migrations, applied, "idmint ticket migrate");
      await assertLogged(session, SCHEMA);
    });
    await this.#belonging.settle();
    this.#isKnown = true;
  }
}

/** Breaking this is a fault of the calling code, not of a caller's input. */
function assertRequests({ requests, ceiling }: TicketRequest): void {
  const slots = new Set(requests.map(({ slot }) => slot));
  const isGood =
    ceiling >= 1n &&
    slots.size === requests.length &&
    slots.size <= MAX_SLOTS &&
    requests.every(
      ({ count }) => Number.isSafeInteger(count) && count >= 1 && count <= MAX_SEGMENT_COUNT,
    );
  if (!isGood) throw new RangeError(`${requests.length} requests below ${ceiling}`);
}

/** Its id begins with the name that it was made with. */
function assertName(name: string, id: string): void {
  const own = nameOfId(id);
  if (own === "" || own === name) return;
  throw new IdmintError(
    "SCHEMA_MISMATCH",
    `the database that ticket.urls calls ${name} was made as ${own}; give it that name, or mend its URL`,
    { metadata: { database: name } },
  );
}
