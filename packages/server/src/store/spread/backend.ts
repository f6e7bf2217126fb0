import { invalidField } from "@idmint/core";
import type { AuditNote } from "@idmint/core/server";
import { migrate as migrateOne } from "../postgres/migrate.ts";
import { status as statusOfOne } from "../postgres/status.ts";
import { open as openPostgres, type PostgresStore } from "../postgres/store.ts";
import type { SpreadConfig } from "../shared/config.ts";
import type { MigrateOptions, MigrationReport } from "../shared/migration.ts";
import { passingPins, type StorePins } from "../pins/pin.ts";
import type { StoreStatus } from "../shared/status.ts";
import { moveTag } from "./move.ts";
import { SpreadStore } from "./store.ts";

export { addToSpread, type DatabaseStanding, spreadStatus } from "./fleet.ts";

export function open(config: SpreadConfig, pins: StorePins = passingPins()): Promise<SpreadStore> {
  return SpreadStore.open(config, pins);
}

/** Migrates all databases, one after the other; answers of them all what the first one needed most steps for. */
export async function migrate(
  { databases }: SpreadConfig,
  options: MigrateOptions,
): Promise<MigrationReport> {
  let most: MigrationReport | undefined;
  for (const database of databases.values()) {
    const report = await migrateOne(database, options);
    if (most === undefined || report.steps.length > most.steps.length) most = report;
  }
  if (most === undefined) throw invalidField("store.more_urls", "must name databases");
  return most;
}

/** All databases in one; what differs is shown by `idmint store spread status`. */
export async function status({ databases }: SpreadConfig): Promise<StoreStatus> {
  const all: (readonly [string, StoreStatus])[] = [];
  for (const [name, database] of databases) all.push([name, await statusOfOne(database)]);
  const text = (of: (status: StoreStatus) => string): string =>
    all
      .map(([name, its]) => (of(its) === "" ? "" : `${name}: ${of(its)}`))
      .filter(Boolean)
      .join("; ");
  return {
    backend: "postgres",
    schemaVersion: Math.min(...all.map(([, its]) => its.schemaVersion)),
    knownSchemaVersion: Math.max(...all.map(([, its]) => its.knownSchemaVersion)),
    schemaIllness: text((its) => its.schemaIllness),
    storeId: text((its) => its.storeId),
    incarnation: text((its) => its.incarnation),
    revision: all.reduce((sum, [, its]) => sum + its.revision, 0n),
    // One of them is enough to stop servers.
    stoppedTime: all.map(([, its]) => its.stoppedTime).find((time) => time !== "") ?? "",
    tags: all.reduce((sum, [, its]) => sum + its.tags, 0),
    acceptedIdentity: text((its) => its.acceptedIdentity),
    presentIdentity: text((its) => its.presentIdentity),
    fenced: text((its) => its.fenced),
    refusedTags: text((its) => its.refusedTags ?? ""),
    findings: all.flatMap(([name, { findings = [] }]) =>
      findings.map((finding) => ({ ...finding, found: `database ${name}: ${finding.found}` })),
    ),
    standbys: text((its) => its.standbys),
    unsafe: [...new Set(all.flatMap(([, its]) => its.unsafe))],
    timeMs: all.map(([, its]) => its.timeMs).find((ms) => ms !== undefined),
  };
}

/** Moves a tag to the database `to`, or finishes a move. All databases on the tag's way have to answer. */
export async function move(
  { databases }: SpreadConfig,
  tag: string,
  to: string,
  by?: AuditNote,
): Promise<{ moved: boolean }> {
  const names = [...databases.keys()].toSorted();
  const stores = new Map<string, PostgresStore>();
  try {
    for (const [name, config] of databases) {
      const place = { member: name, members: names };
      stores.set(name, await openPostgres({ ...config, place }));
    }
    return await moveTag(stores, tag, to, undefined, by);
  } finally {
    for (const store of stores.values()) await store.close();
  }
}
