import { IdmintError } from "@idmint/core";
import { missingSlots, survey, type TicketDatabase } from "@idmint/core/server";

const PAGE = 1_000;

/** The ticket databases, and who has which slots. */
export interface TicketStatus {
  readonly databases: readonly DatabaseStatus[];
  readonly tags: readonly TagStatus[];
}

interface DatabaseStatus {
  readonly name: string;
  /** Slots that this database owns, of all tags. */
  readonly slots: number;
  /** Why it issues nothing, in words; empty when it does. */
  readonly illness: string;
}

interface TagStatus {
  readonly slotsId: string;
  /** Number of slots by the name of their database. */
  readonly owned: ReadonlyMap<string, number>;
  /** Slots whose move has begun and not ended. */
  readonly moving: number;
  /** Slots that no database that answers has, while some are away. */
  readonly unknown: number;
  /** Slots that no database has, while all answer. */
  readonly lost: number;
  /** Slots that an operator gave up. */
  readonly forgotten: number;
  readonly highest: bigint;
}

/**
 * The same status, with what a server found wrong. A server that saw a database further than it is now takes no ids
 * from it, and nobody else can tell.
 */
export function addServersWord(
  status: TicketStatus,
  address: string,
  databases: readonly FromServer[],
): TicketStatus {
  const reasons = new Map(databases.map(({ name, reason }) => [name, reason]));
  return {
    ...status,
    databases: status.databases.map((database) => {
      const reason = reasons.get(database.name) ?? "";
      if (database.illness !== "" || reason === "") return database;
      return { ...database, illness: `the server at ${address} takes no ids from it: ${reason}` };
    }),
  };
}

/** The part of a server's TicketDatabaseStatus that is used. */
interface FromServer {
  readonly name: string;
  readonly reason: string;
}

/** Every `slotsId`, in order. The databases of `needed` have to answer; others may be away. */
export async function slotsIdsOf(
  databases: readonly TicketDatabase[],
  needed: readonly string[],
): Promise<readonly string[]> {
  const ids = new Set<string>();
  for (const database of databases) {
    try {
      for (const id of await idsIn(database)) ids.add(id);
    } catch (thrown) {
      if (needed.includes(database.name)) throw thrown;
    }
  }
  return [...ids].toSorted();
}

async function idsIn(database: TicketDatabase): Promise<readonly string[]> {
  const ids: string[] = [];
  for (;;) {
    const query = { afterSlotsId: ids.at(-1) ?? "", limit: PAGE };
    // Each page begins where the one before ended.
    const page = await database.listSlotsIds(query);
    ids.push(...page);
    if (page.length < PAGE) return ids;
  }
}

/** Asks all databases about all tags. */
export async function statusOf(databases: readonly TicketDatabase[]): Promise<TicketStatus> {
  const illness = new Map<string, string>();
  const slots = new Map<string, number>();
  const ill = async (database: TicketDatabase): Promise<void> => {
    try {
      await database.listSlotsIds({ afterSlotsId: "", limit: 1 });
    } catch (thrown) {
      illness.set(database.name, IdmintError.from(thrown).message);
    }
  };
  await Promise.all(databases.map(ill));
  const well = databases.filter(({ name }) => !illness.has(name));
  const tags: TagStatus[] = [];
  for (const slotsId of await slotsIdsOf(well, [])) {
    // One tag after the other, so that a fleet with many tags is not flooded.
    const { views, holdings, failed } = await survey(well, slotsId);
    for (const [name, error] of failed) illness.set(name, error.message);
    for (const [name, detail] of holdings.behind) illness.set(name, `it went back: ${detail}`);
    const owned = new Map<string, number>();
    for (const name of holdings.owners.values()) {
      owned.set(name, (owned.get(name) ?? 0) + 1);
      slots.set(name, (slots.get(name) ?? 0) + 1);
    }
    const { highest, forgotten } = holdings;
    const missing = new Set(missingSlots(holdings, views));
    const isAway = well.length < databases.length || failed.size > 0;
    tags.push({
      slotsId,
      owned,
      moving: holdings.pending.filter(({ slot }) => !missing.has(slot)).length,
      unknown: isAway ? missing.size : 0,
      lost: isAway ? 0 : missing.size,
      forgotten: forgotten.size,
      highest,
    });
  }
  return {
    databases: databases.map(({ name }) => ({
      name,
      slots: slots.get(name) ?? 0,
      illness: illness.get(name) ?? "",
    })),
    tags,
  };
}
