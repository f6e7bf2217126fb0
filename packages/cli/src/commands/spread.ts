import { invalidField } from "@idmint/core";
import type { SpreadConfig } from "@idmint/server";
import { type Command, Option } from "commander";
import { addConfigFlags, loadServerConfig } from "../config-flags.ts";
import { EXIT } from "../exit-code.ts";
import { CommandFailure, failureOf } from "../failure.ts";
import type { Io } from "../io.ts";
import { addOutputOptions } from "../options.ts";
import { examplesText, printAnswer } from "../output.ts";
import { spreadIllness, spreadJson, spreadText } from "../spread-text.ts";

/** `idmint store spread …`: looks after a store in several databases, without a server. */
export function addSpreadCommands(store: Command, io: Io): void {
  const group = store
    .command("spread")
    .description("look after a store in several databases, and move tags between them")
    .helpCommand(false);
  group.hook("preSubcommand", (_group, command) => addConfigFlags(command, "store"));
  addStatus(group, io);
  addAdd(group, io);
  addMove(group, io);
  for (const command of group.commands) addOutputOptions(command);
}

async function configOf(command: Command, io: Io): Promise<SpreadConfig> {
  const { storeConfigOf } = await import("@idmint/server");
  const config = storeConfigOf(await loadServerConfig(command, io));
  if (config.backend === "spread") return config;
  throw invalidField("store.more_urls", "is required: the further databases, as name=url");
}

function addStatus(group: Command, io: Io): void {
  const command = group
    .command("status")
    .description("show the databases and what moves; exit code 5 when one is away or in doubt")
    .addHelpText("after", examplesText(["idmint store spread status --config /etc/idmint.yaml"]));
  command.action(async () => {
    const { spreadStatus } = await import("@idmint/server");
    const databases = await spreadStatus(await configOf(command, io));
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
    .description("make the databases of the configuration one store, or add further ones to it")
    .addHelpText(
      "after",
      `
Migrate first, then run this, then restart every server with the new configuration: those with the old one go on
issuing ids and refuse to make and change tags. Tags stay where they are. Run it again if it was interrupted.
${examplesText(["idmint store spread add --config /etc/idmint.yaml"])}`,
    );
  command.action(async () => {
    const { addToSpread } = await import("@idmint/server");
    const { added } = await addToSpread(await configOf(command, io));
    await printAnswer(command, io, {
      json: () => ({ added }),
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
    .addOption(new Option("--to <name>", "the database that shall have it").makeOptionMandatory())
    .addHelpText(
      "after",
      `
Servers go on: the tag gets no new ids for the moment in which it moves, and no id is repeated wherever this ends. All
databases have to answer.
${examplesText(["idmint store spread move orders --to b --config /etc/idmint.yaml"])}`,
    );
  command.action(async (tag: string, { to }: { to: string }) => {
    const { moveTagTo } = await import("@idmint/server");
    const { moved } = await moveTagTo(await configOf(command, io), tag, to);
    await printAnswer(command, io, {
      json: () => ({ tag, to, moved }),
      text: () => (moved ? `moved ${tag} to ${to}\n` : `${tag} is in ${to} already\n`),
    });
  });
}
