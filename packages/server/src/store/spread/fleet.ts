import { randomUUID } from "node:crypto";
import { invalidField } from "@idmint/core";
import { storeWentBack } from "@idmint/core/server";
import { Connections } from "../postgres/connections.ts";
import {
  pageOfRows,
  point,
  type Pointer,
  readStanding,
  type Standing,
  writeMembership,
} from "../postgres/membership.ts";
import { migrations } from "../postgres/migrations/index.ts";
import { appliedMigrations } from "../postgres/schema.ts";
import type { SpreadConfig } from "../shared/config.ts";
import { workableVersion } from "../shared/migration.ts";
import { FIRST_DATABASE, type PlacedTag } from "../shared/placed-tag.ts";
import { homeOf } from "./home.ts";
import { isGone } from "./move-state.ts";

/** Rows that are read, and written, at once. */
const PAGE = 500;

/** Reads and writes rows of one database, in doubt or not. */
export interface Rows {
  pageOfRows(afterName: string, limit: number): Promise<readonly PlacedTag[]>;
  point(pointers: readonly Pointer[]): Promise<void>;
}

/**
 * Makes the databases `into` know of all tags that are at home in them but were made elsewhere, and of tags that they have
 * rows of and that are elsewhere. To be run before such a database is opened for new tags, and before one that went back is
 * accepted: it may have forgotten that it gave a tag away.
 */
export async function pointEverywhere(
  databases: ReadonlyMap<string, Rows>,
  into: readonly string[],
): Promise<void> {
  const members = [...databases.keys()].toSorted();
  for (const [from, source] of databases) {
    let after = "";
    for (;;) {
      // A page begins where the one before ended.
      const page = await source.pageOfRows(after, PAGE);
      for (const name of into.filter((one) => one !== from)) {
        const pointers = page.map((row) => {
          const isHome = homeOf(members, row.tag.name) === name;
          return { row, in: from, isHome };
        });
        if (pointers.length > 0) await databases.get(name)?.point(pointers);
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      after = last.tag.name;
    }
  }
}

/** A database of a spread store, as an operator sees it. */
export interface DatabaseStanding extends Standing {
  readonly name: string;
  /** Why nothing more is known of it; empty when it answered. */
  readonly illness: string;
  /** Tags it grants ids of, and tags that left it. */
  readonly here: number;
  readonly gone: number;
  /** Tags that are on their way from it or to it, at most 100 of them. */
  readonly moving: readonly string[];
}

/** The standing of a database that was migrated. */
async function standingOf(connections: Connections): Promise<Standing> {
  await connections.run(async (session) =>
    workableVersion(migrations, await appliedMigrations(session)),
  );
  return readStanding(connections);
}

/** Looks at all databases without changing them; one that is away does not hide the others. */
export async function spreadStatus(config: SpreadConfig): Promise<readonly DatabaseStanding[]> {
  const work = [...config.databases].map(async ([name, database]): Promise<DatabaseStanding> => {
    const connections = new Connections(database);
    const counts = { here: 0, gone: 0, moving: [] as string[] };
    try {
      const standing = await standingOf(connections);
      for (let after = "", isMore = true; isMore;) {
        const page = await pageOfRows(connections, after, PAGE);
        for (const row of page) {
          if (isGone(row)) counts.gone++;
          else if (!row.moving) counts.here++;
          else if (counts.moving.length < 100) counts.moving.push(row.tag.name);
        }
        isMore = page.length === PAGE;
        after = page.at(-1)?.tag.name ?? after;
      }
      return { ...standing, name, illness: "", ...counts };
    } catch (error) {
      const illness = error instanceof Error ? error.message : String(error);
      const nothing = {
        member: "",
        members: [],
        fleetId: "",
        incarnation: "",
        fenced: "",
        hasTags: false,
      };
      return { ...nothing, name, illness, ...counts };
    } finally {
      await connections.close();
    }
  });
  return Promise.all(work);
}

/**
 * Makes the databases of a configuration one store, or adds further ones to it. All have to answer. To be run again when it
 * was interrupted.
 *
 * INVARIANTS
 * - From the first record on, nobody makes or changes tags by the old names: each such change compares the names under the
 *   lock of the record. So when all old databases have the new names, the tags that have to be known in the new ones are
 *   complete.
 * - A new database gets its record last. Without it no server and no move works with it.
 * - Only an empty database is added: tags of two stores may have the same names.
 */
export async function addToSpread(config: SpreadConfig): Promise<{ added: readonly string[] }> {
  const names = [...config.databases.keys()].toSorted();
  const open = new Map(
    [...config.databases].map(([name, its]) => [name, new Connections(its)] as const),
  );
  try {
    const standings = new Map<string, Standing>();
    for (const [name, connections] of open) {
      const standing = await standingOf(connections);
      if (standing.fenced !== "") throw storeWentBack(`database ${name}: ${standing.fenced}`);
      standings.set(name, standing);
    }
    const fleetId = planned(standings, names);
    const isOld = (name: string): boolean =>
      standings.get(name)?.members.length !== 0 || name === FIRST_DATABASE;
    const added = names.filter((name) => !isOld(name));
    const record = async (name: string, connections: Connections): Promise<void> =>
      writeMembership(connections, (found) => {
        assertFits(name, found, names, fleetId);
        if (found.members.length === names.length) return undefined;
        return { member: name, members: names, fleetId };
      });
    for (const [name, connections] of open) if (isOld(name)) await record(name, connections);
    const rows = new Map<string, Rows>();
    for (const [name, connections] of open) {
      rows.set(name, {
        pageOfRows: (after, limit) => pageOfRows(connections, after, limit),
        point: (pointers) => point(connections, pointers),
      });
    }
    if (added.length > 0) await pointEverywhere(rows, added);
    for (const [name, connections] of open) if (!isOld(name)) await record(name, connections);
    return { added };
  } finally {
    for (const connections of open.values()) await connections.close();
  }
}

/** The name of the fleet; refuses databases that cannot be one. */
function planned(standings: ReadonlyMap<string, Standing>, names: readonly string[]): string {
  const fleetIds = new Set([...standings.values()].map(({ fleetId }) => fleetId));
  fleetIds.delete("");
  if (fleetIds.size > 1) throw refused("holds databases of different stores");
  const [known] = fleetIds;
  for (const [name, standing] of standings) {
    assertFits(name, standing, names, known ?? "");
  }
  return known ?? randomUUID();
}

function assertFits(
  name: string,
  { member, members, fleetId, hasTags }: Standing,
  names: readonly string[],
  wanted: string,
): void {
  if (members.length === 0) {
    if (!hasTags || name === FIRST_DATABASE) return;
    throw refused(`adds database ${name}, which has tags of its own already`);
  }
  if (member !== name) throw refused(`calls a database ${name} that was made as ${member}`);
  if (fleetId !== wanted) throw refused(`holds databases of different stores`);
  const missing = members.filter((one) => !names.includes(one));
  if (missing.length > 0) throw refused(`lacks ${missing.join(", ")}, which belongs to the store`);
}

function refused(what: string): Error {
  return invalidField("store.more_urls", `must fit the store's databases; it ${what}`);
}
