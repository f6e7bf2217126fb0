import { CommandFailure, failureOf } from "../calls/failure.ts";
import type { ConfigReading } from "@idmint/server";
import { type Command, Option } from "commander";
import { addConfigFlags, configSources } from "../flags/config-flags.ts";
import { addOutputOptions } from "../flags/options.ts";
import type { Io } from "../process/io.ts";
import { examplesText, printAnswer } from "../text/output.ts";
import { plain } from "../process/plain.ts";
import { columns } from "../text/table.ts";

/** `idmint config check`: whether a server could read its configuration, and where each option comes from. */
export function addConfigCommands(program: Command, io: Io): void {
  const group = program
    .command("config")
    .description("check the configuration of a server")
    .helpCommand(false);
  group.hook("preSubcommand", async (_group, command) => addConfigFlags(command, "all"));
  addCheck(group, io);
  for (const command of [group, ...group.commands]) addOutputOptions(command);
}

function addCheck(group: Command, io: Io): void {
  const command = group
    .command("check")
    .description("check a configuration as a whole, and show where each option comes from")
    .addOption(new Option("--set-only", "leave out the options that have their defaults"))
    .addHelpText(
      "after",
      `
It reads flags, variables and the file as idmint serve does, and reports all errors at once (exit code 2). It opens no
store and none of the files that options name: idmint doctor does. Secrets are not shown.
${examplesText([
  "idmint config check --config /etc/idmint.yaml",
  "idmint config check --config /etc/idmint.yaml --set-only --json",
])}`,
    );
  command.action(async ({ setOnly = false }: { readonly setOnly?: boolean }) => {
    const { readConfig } = await import("@idmint/server");
    const reading = readConfig(configSources(command, io));
    if (reading.config === undefined) throw allErrors(reading);
    const options = reading.options.filter(({ source }) => !setOnly || source !== "default");
    await printAnswer(command, io, {
      json: () => ({
        options: options.map(({ key, shown, source }) => ({ key, value: shown ?? null, source })),
      }),
      text: () =>
        columns(
          options.map(({ key, shown = "", source }) => [key, plain(shown || "–"), plain(source)]),
        ),
    });
  });
}

function allErrors({ violations }: ConfigReading): CommandFailure {
  const count = violations.length === 1 ? "1 error" : `${violations.length} errors`;
  const lines = violations.map(({ field, description }) => `${field} ${description}`);
  const more = { fields: violations, lines };
  const text = `the configuration has ${count}`;
  return new CommandFailure(failureOf("INVALID_ARGUMENT", "INVALID_ARGUMENT", text, more));
}
