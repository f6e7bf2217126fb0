import { MAX_ID } from "@idmint/core";
import type { StoreConfig } from "@idmint/server";
import { type Command, Option } from "commander";
import { addConfigFlags, loadServerConfig } from "../config-flags.ts";
import { EXIT } from "../exit-code.ts";
import { CommandFailure, failureOf } from "../failure.ts";
import type { Io } from "../io.ts";
import { addOutputOptions } from "../options.ts";
import { examplesText, printAnswer } from "../output.ts";
import { wholeNumber } from "../parse.ts";
import { plain } from "../table.ts";
import { addSpreadCommands } from "./spread.ts";
import { migrationJson, migrationText, storeIllness, storeStatusText } from "../store-text.ts";

/** Their floors lie above all that servers of the lost history can have reserved. */
const SNOWFLAKES_AHEAD =
  "; snowflakes carry times up to 6 min 10 s ahead until the clock has caught up";

/** `idmint migrate` and `idmint store …`: work on the store itself, without a server. */
export function addStoreCommands(program: Command, io: Io): void {
  addMigrate(program, io);
  const group = program
    .command("store")
    .description("look at the store itself, and accept one that went back")
    .helpCommand(false);
  group.hook("preSubcommand", async (_group, command) => {
    // A group would take the flags away from its own commands, which have them.
    if (command.commands.length === 0) await addConfigFlags(command, "store");
  });
  addStatus(group, io);
  addAccept(group, io);
  addSpreadCommands(group, io);
  for (const command of [group, ...group.commands]) addOutputOptions(command);
}

async function storeConfig(command: Command, io: Io): Promise<StoreConfig> {
  const { storeConfigOf } = await import("@idmint/server");
  return storeConfigOf(await loadServerConfig(command, io));
}

function addMigrate(program: Command, io: Io): void {
  const command = program
    .command("migrate")
    .description("bring the store's schema to this release; makes a SQLite file that is not there")
    .addOption(new Option("--dry-run", "say what would be done, and do nothing"))
    .addHelpText(
      "after",
      examplesText([
        "idmint migrate --store-url sqlite:/var/lib/idmint/idmint.db",
        "idmint migrate --store-url postgres://idmint@db.internal/idmint --dry-run",
      ]),
    );
  addOutputOptions(command);
  command.action(async ({ dryRun = false }: { dryRun?: boolean }) => {
    const { migrateStore } = await import("@idmint/server");
    const config = await storeConfig(command, io);
    // Only this command ever makes a file: a server that did would issue ids from 1 again after a mistyped path.
    const target = config.backend === "sqlite" ? { ...config, create: true } : config;
    const report = await migrateStore(target, { dryRun });
    await printAnswer(command, io, {
      json: () => migrationJson(report, dryRun),
      text: () => migrationText(report, dryRun),
    });
  });
}

function addStatus(group: Command, io: Io): void {
  const command = group
    .command("status")
    .description("show a store and whether it grants; exit code 5 when it does not")
    .addHelpText(
      "after",
      examplesText(["idmint store status --store-url sqlite:/var/lib/idmint/idmint.db"]),
    );
  command.action(async () => {
    const { storeStatus } = await import("@idmint/server");
    const status = await storeStatus(await storeConfig(command, io));
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
    .description("accept a store as it is now, with every tag's floor raised by a gap")
    .addOption(
      new Option(
        "--gap <ids>",
        "more ids than any tag can have been granted since the store's state; floors never go down",
      )
        .argParser(wholeNumber("--gap", { min: 0n, max: MAX_ID }))
        .makeOptionMandatory(),
    )
    .addHelpText(
      "after",
      `
A store went back when a backup was restored or a replica was promoted that lacked the last grants. Ids that it does
not know of are out, so its servers refuse until you accept it with a gap that covers them (docs/operations.md).
${examplesText(["idmint store accept --gap 10000000 --store-url sqlite:/var/lib/idmint/idmint.db"])}`,
    );
  command.action(async ({ gap }: { gap: bigint }) => {
    const { acceptStore, storeStatus } = await import("@idmint/server");
    const config = await storeConfig(command, io);
    const { fenced } = await storeStatus(config);
    const { tags } = await acceptStore(config, gap);
    await printAnswer(command, io, {
      json: () => ({ tags, gap: String(gap), fenced }),
      text: () => `accepted: the floors of ${tags} tags were raised by ${gap}\n`,
    });
    io.err(
      fenced === ""
        ? `idmint: the store itself was not in doubt; servers that saw later grants issue again within a second${SNOWFLAKES_AHEAD}\n`
        : `idmint: it was in doubt (${plain(fenced)}); servers issue again within a second${SNOWFLAKES_AHEAD}\n`,
    );
  });
}
