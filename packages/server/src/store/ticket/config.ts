import { IdmintError, invalidField } from "@idmint/core";
import type { PostgresConfig } from "../shared/config.ts";

/** One of the databases that count the ids of ticket tags. */
export interface TicketConfig extends PostgresConfig {
  /** 1 to 32 characters of a–z 0–9 - that begin with a letter; the database keeps it from its migration on. */
  readonly name: string;
}

const NAME = /^[a-z][a-z0-9-]{0,31}$/;

export function checkTicketName(name: string): void {
  if (NAME.test(name)) return;
  throw invalidField(
    "ticket.urls",
    `must give each database a name of 1 to 32 characters of a–z 0–9 - that begins with a letter, got ${JSON.stringify(name.slice(0, 40))}`,
  );
}

export function oneDatabaseTwice(name: string, other: string): IdmintError {
  return invalidField(
    "ticket.urls",
    `must name each database once: ${name} and ${other} are the same one, or a replica of it`,
  );
}

/** The database is not the one that was accepted, or behind what was seen of it; an operator has to look. */
export function ticketWentBack(name: string, detail: string): IdmintError {
  return new IdmintError(
    "STORE_EPOCH_CHANGED",
    `ticket database ${name} went back: ${detail}; it issues nothing until an operator accepts it with: idmint ticket accept ${name} --gap N`,
    { metadata: { database: name, detail } },
  );
}
