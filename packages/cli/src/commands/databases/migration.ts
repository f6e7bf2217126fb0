import type { MigrationReport, StoreConfig } from "@idmint/server";
import type { Command } from "commander";
import { loadServerConfig } from "../../flags/config-flags.ts";
import { confirm } from "../confirm.ts";
import type { Io } from "../../process/io.ts";

/** Asks before a schema is changed that exists already. A store without a schema has nothing to lose. */
export async function confirmMigration(
  command: Command,
  io: Io,
  config: StoreConfig,
  place: string,
): Promise<void> {
  const { migrateStore } = await import("@idmint/server");
  // Each database is planned by itself: a report of all would hide one that has a schema behind one that has none.
  const each = config.backend === "spread" ? [...config.databases.values()] : [config];
  const plans = each.map((one) => () => migrateStore(one, { dryRun: true }));
  await confirmSteps(command, io, `store: ${place}`, plans);
}

/** Asks in the same way for any databases. Each plan reports what would be done to one of them. */
export async function confirmSteps(
  command: Command,
  io: Io,
  place: string,
  plans: readonly (() => Promise<MigrationReport>)[],
): Promise<void> {
  for (const plan of plans) {
    const { from, to, steps } = await plan();
    if (from === 0 || steps.length === 0) continue;
    await confirm(command, io, { place, effect: `changes the schema from ${from} to ${to}` });
    return;
  }
}

/** `start-dev` migrates the store that it is given, so it asks like `migrate` does. */
export async function confirmDevStore(command: Command, io: Io): Promise<void> {
  const { creating, storeConfigOf, storePlace } = await import("@idmint/server");
  const config = await loadServerConfig(command, io);
  await confirmMigration(command, io, creating(storeConfigOf(config)), storePlace(config));
}
