import { invalidField } from "@idmint/core";
import type { SpreadConfig } from "@idmint/server";
import { type Command, Option } from "commander";
import { addConfigFlags, loadServerConfig } from "../../flags/config-flags.ts";
import { confirm } from "../confirm.ts";
import { EXIT } from "../../process/exit-code.ts";
import { CommandFailure, failureOf } from "../../calls/failure.ts";
import type { Io } from "../../process/io.ts";
import { addOutputOptions } from "../../flags/options.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { spreadIllness, spreadJson, spreadText } from "./spread-text.ts";

/** `idmint store spread …`: manages a store in several databases, without a server. */
export function addSpreadCommands(store: Command, io: Io): void {
  const group = store
    .command("spread")
    .description("manage a store in several databases, and move tags between them")
    .helpCommand(false);
  group.hook("preSubcommand", (_group, command) => addConfigFlags(command, "store"));
  addStatus(group, io);
  addAdd(group, io);
  addMove(group, io);
  for (const command of group.commands) addOutputOptions(command);
}

async function configOf(
  command: Command,
  io: Io,
): Promise<{ readonly config: SpreadConfig; readonly place: string }> {
  const { storeConfigOf, storePlace } = await import("@idmint/server");
  const loaded = await loadServerConfig(command, io);
  const config = storeConfigOf(loaded);
  if (config.backend === "spread") return { config, place: storePlace(loaded) };
  throw invalidField("store.more_urls", "is required: the further databases, as name=url");
}

function addStatus(group: Command, io: Io): void {
  const command = group
    .command("status")
    .description(
      "show the databases and unfinished moves; exit code 5 when one is away or in doubt",
    )
    .addHelpText("after", examplesText(["idmint store spread status --config /etc/idmint.yaml"]));
  command.action(async () => {
    const { spreadStatus } = await import("@idmint/server");
    const { config } = await configOf(command, io);
    const databases = await spreadStatus(config);
    await printAnswer(command, io, {
      json: () => spreadJson(databases),
      text: () => spreadText(databases),
    });
    const illness = spreadIllness(databases);
    if (illness === undefined) return;
    const more = { exitCode: EXIT.unhealthy };
    throw new CommandFailure(failureOf("FAILED_PRECONDITION", "UNHEALTHY", illness, more));
  });
}

function addAdd(group: Command, io: Io): void {
  const command = group
    .command("add")
    .description("join the databases of the configuration into one store, or add databases to it")
    .addHelpText(
      "after",
      `
Run idmint migrate first, then this command. Then restart every server with the new configuration. Servers with the old
one keep issuing ids, but refuse to create and change tags. Existing tags stay where they are. The names are recorded for
good, so the command needs --yes or your answer on a terminal. If it was interrupted, run it again.
${examplesText(["idmint store spread add --config /etc/idmint.yaml --yes"])}`,
    );
  command.action(async () => {
    const { addToSpread } = await import("@idmint/server");
    const { config, place } = await configOf(command, io);
    const effect = "records the names of these databases for good";
    await confirm(command, io, { place: `store: ${place}`, effect });
    const { added } = await addToSpread(config);
    await printAnswer(command, io, {
      json: () => ({ store: place, added }),
      text: () =>
        added.length === 0
          ? "nothing to add\n"
          : `added ${added.join(", ")}; restart the servers\n`,
    });
  });
}

function addMove(group: Command, io: Io): void {
  const command = group
    .command("move")
    .description("move a tag to another database; run it again if it was interrupted")
    .argument("<tag>", "name of the tag")
    .addOption(new Option("--to <name>", "the database that gets the tag").makeOptionMandatory())
    .addHelpText(
      "after",
      `
Servers keep running. The tag gets no new ids for the few milliseconds in which it moves. No id is repeated, even if the
command is interrupted. All databases must answer.
${examplesText(["idmint store spread move orders --to b --config /etc/idmint.yaml"])}`,
    );
  command.action(async (tag: string, { to }: { to: string }) => {
    const { moveTagTo, operatorNote } = await import("@idmint/server");
    const { config } = await configOf(command, io);
    const { moved } = await moveTagTo(config, tag, to, operatorNote("idmint store spread move"));
    await printAnswer(command, io, {
      json: () => ({ tag, to, moved }),
      text: () => (moved ? `moved ${tag} to ${to}\n` : `${tag} is in ${to} already\n`),
    });
  });
}
