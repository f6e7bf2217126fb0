import { MAX_ID } from "@idmint/core";
import type { StoreConfig } from "@idmint/server";
import { type Command, Option } from "commander";
import { addConfigFlags, loadServerConfig } from "../../flags/config-flags.ts";
import { confirm } from "../confirm.ts";
import { EXIT } from "../../process/exit-code.ts";
import { CommandFailure, failureOf } from "../../calls/failure.ts";
import type { Io } from "../../process/io.ts";
import { addOutputOptions } from "../../flags/options.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { wholeNumber } from "../../flags/parse.ts";
import { plain } from "../../process/plain.ts";
import {
  type AcceptFlags,
  newStoreOption,
  oldPrimaryOption,
  trustClaimsOption,
} from "./accept-flags.ts";
import { claimsJson, claimsLines } from "./accept-text.ts";
import { addAdoptCommand } from "./adopt.ts";
import { confirmMigration } from "./migration.ts";
import { addSpreadCommands } from "./spread.ts";
import { migrationJson, migrationText, storeIllness, storeStatusText } from "./store-text.ts";

/**
 * Added to the result of an accept: the floors of snowflake tags lie above all that servers of the lost history can
 * have reserved.
 */
const SNOWFLAKES_AHEAD =
  "; snowflakes carry times up to 6 min 10 s ahead until the clock has caught up";

/** `idmint migrate` and `idmint store …`: they work on the store itself, without a server. */
export function addStoreCommands(program: Command, io: Io): void {
  addMigrate(program, io);
  program.hook("preSubcommand", async (_program, command) => {
    if (command.name() === "migrate") await addConfigFlags(command, "store");
  });
  const group = program
    .command("store")
    .description("inspect the store itself, accept one that went back, and adopt another one")
    .helpCommand(false);
  group.hook("preSubcommand", async (_group, command) => {
    // Flags of a group would hide the same flags of its commands.
    if (command.commands.length > 0) return;
    await addConfigFlags(command, command.name() === "adopt" ? "memory" : "store");
  });
  addStatus(group, io);
  addAccept(group, io);
  addAdoptCommand(group, io);
  addSpreadCommands(group, io);
  for (const command of [group, ...group.commands]) addOutputOptions(command);
}

/** The store that a command line means, and its name for people. */
interface MeantStore {
  readonly config: StoreConfig;
  readonly place: string;
  /** Null when servers never stop by themselves. */
  readonly maxOfflineMs: number | null;
}

async function meantStore(command: Command, io: Io): Promise<MeantStore> {
  const { storeConfigOf, storePlace } = await import("@idmint/server");
  const config = await loadServerConfig(command, io);
  const maxOfflineMs = config.nodeMaxOffline.ms ?? null;
  return { config: storeConfigOf(config), place: storePlace(config), maxOfflineMs };
}

function addMigrate(program: Command, io: Io): void {
  const command = program
    .command("migrate")
    .description("bring the store's schema up to this release; creates a missing SQLite file")
    .addOption(new Option("--dry-run", "show what would be done, and change nothing"))
    .addHelpText(
      "after",
      `
A schema that exists already is changed only with --yes, or after you answer yes on a terminal.
${examplesText([
  "idmint migrate --store-url sqlite:/var/lib/idmint/idmint.db",
  "idmint migrate --store-url postgres://idmint@db.internal/idmint --dry-run",
  "idmint migrate --store-url postgres://idmint@db.internal/idmint --yes",
])}`,
    );
  addOutputOptions(command);
  command.action(async ({ dryRun = false }: { dryRun?: boolean }) => {
    const { creating, migrateStore, operatorNote } = await import("@idmint/server");
    const { config, place } = await meantStore(command, io);
    // No other command creates a file: a server that did would issue ids from 1 again after a mistyped path.
    const target = creating(config);
    if (!dryRun) await confirmMigration(command, io, target, place);
    const report = await migrateStore(target, { dryRun, by: operatorNote("idmint migrate") });
    await printAnswer(command, io, {
      json: () => ({ store: place, ...migrationJson(report, dryRun) }),
      text: () => `${migrationText(report, dryRun)}store: ${plain(place)}\n`,
    });
    for (const warning of report.warnings ?? []) io.err(`idmint: ${plain(warning)}\n`);
  });
}

function addStatus(group: Command, io: Io): void {
  const command = group
    .command("status")
    .description("show a store and whether it grants ids; exit code 5 when it does not")
    .addHelpText(
      "after",
      examplesText(["idmint store status --store-url sqlite:/var/lib/idmint/idmint.db"]),
    );
  command.action(async () => {
    const { storeStatus } = await import("@idmint/server");
    const { config } = await meantStore(command, io);
    const status = await storeStatus(config);
    await printAnswer(command, io, {
      json: () => ({ ...status, revision: String(status.revision) }),
      text: () => storeStatusText(status),
    });
    const illness = storeIllness(status);
    if (illness === undefined) return;
    const more = { exitCode: EXIT.unhealthy };
    throw new CommandFailure(failureOf("FAILED_PRECONDITION", "UNHEALTHY", illness, more));
  });
}

function addAccept(group: Command, io: Io): void {
  const command = group
    .command("accept")
    .description("accept a store as it is now, and raise every tag's floor by a gap")
    .addOption(
      new Option(
        "--gap <ids>",
        "more ids than any tag can have been granted since the state that the store went back to",
      )
        .argParser(wholeNumber("--gap", { min: 0n, max: MAX_ID }))
        .makeOptionMandatory(),
    )
    .addOption(newStoreOption())
    .addOption(oldPrimaryOption())
    .addOption(trustClaimsOption())
    .addHelpText(
      "after",
      `
A store goes back when a backup is restored, or when a promoted replica lacks the last grants. Ids are then in use that
the store does not know. Servers refuse until you accept the store. Servers that run are asked first what they were
granted, which takes 3 to 15 seconds, and floors are raised above that. The gap is for servers that do not answer, or are
gone. It raises no floor of a tag that the store has lost and no server tells of: create that one with a start above all
its ids. An accept cannot be undone, so it needs --yes or your answer on a terminal. See docs/restore.md.
${examplesText(["idmint store accept --gap 10000000 --store-url sqlite:/var/lib/idmint/idmint.db --yes"])}`,
    );
  command.action(async (flags: AcceptFlags) => {
    const { gap, newStore = false, oldPrimaryIsStopped = false, trustClaims = false } = flags;
    const { acceptStore, operatorNote, storeStatus } = await import("@idmint/server");
    const { config, place, maxOfflineMs } = await meantStore(command, io);
    const effect = `accepts the store as it is and raises the floor of every tag by ${gap}`;
    await confirm(command, io, { place: `store: ${place}`, effect });
    const { fenced, findings = [] } = await storeStatus(config);
    for (const { found, fix } of findings) io.err(`idmint: ${plain(found)}; ${fix}\n`);
    const by = operatorNote("idmint store accept");
    const options = { maxOfflineMs, oldPrimaryIsStopped, newStore, trustClaims, by };
    const report = await acceptStore(config, gap, options);
    const { tags } = report;
    await printAnswer(command, io, {
      json: () => ({ store: place, tags, gap: String(gap), fenced, claims: claimsJson(report) }),
      text: () => `accepted: the floors of ${tags} tags were raised by ${gap}\n`,
    });
    for (const line of claimsLines(report)) io.err(`idmint: ${line}\n`);
    io.err(
      fenced === ""
        ? `idmint: the store itself was not in doubt; servers that saw later grants issue again within a second${SNOWFLAKES_AHEAD}\n`
        : `idmint: it was in doubt (${plain(fenced)}); servers issue again within a second${SNOWFLAKES_AHEAD}\n`,
    );
  });
}
