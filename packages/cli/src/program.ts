import { Command } from "commander";
import { addIdCommands } from "./commands/id/id.ts";
import { addNodeCommands } from "./commands/node.ts";
import { addServerCommands, addServerFlags } from "./commands/server.ts";
import { addStatusCommand } from "./commands/status.ts";
import { addStoreCommands } from "./commands/databases/store.ts";
import { addTagCommands } from "./commands/tag/tag.ts";
import { addTicketCommands } from "./commands/databases/ticket.ts";
import { addVersion } from "./commands/version.ts";
import { addWorkerCommands } from "./commands/worker.ts";
import { asTyped } from "./process/command-name.ts";
import { EXIT } from "./process/exit-code.ts";
import { failureFrom, failureJson, failureText } from "./calls/failure.ts";
import type { Io } from "./process/io.ts";
import { addRootOptions } from "./flags/options.ts";

/** The whole command tree, not yet parsed. */
export function createProgram(io: Io): Command {
  const program = new Command("idmint")
    .description("Mint unique ids: run a server, manage its tags, get ids in a shell.")
    // Without this, a flag's value could be taken for a flag of the level above.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.out(asTyped(text, io)),
      writeErr: (text) => {
        io.err(asTyped(text, io));
      },
      // Errors are reported in one place: `run`.
      outputError: () => {},
    })
    .helpCommand(false)
    .addHelpText(
      "after",
      `
Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 unavailable, 5 unhealthy.

Examples:
  $ idmint start-dev
  $ idmint id next demo
  $ idmint help tag create
`,
    );
  program.commandsGroup("Servers and their store:");
  program.hook("preSubcommand", (_program, command) => addServerFlags(command));
  addServerCommands(program, io);
  addStoreCommands(program, io);
  addTicketCommands(program, io);
  program.commandsGroup("Ids and tags:");
  addIdCommands(program, io);
  addTagCommands(program, io);
  addWorkerCommands(program, io);
  addNodeCommands(program, io);
  addStatusCommand(program, io);
  program.commandsGroup("About:");
  addVersion(program, io);
  addHelp(program, io);
  addRootOptions(program);
  return program;
}

/** `idmint help tag create` equals `idmint tag create --help`, at any depth. */
function addHelp(program: Command, io: Io): void {
  program
    .command("help")
    .description("explain a command")
    .argument("[command...]", "such as: tag create")
    .addHelpText("after", "\nExamples:\n  $ idmint help id next\n")
    .action(async (names: readonly string[]) => {
      const isKnown = find(program, names) !== undefined;
      // Without --help, an unknown name is refused with a suggestion.
      const args = isKnown ? [...names, "--help"] : names;
      await createProgram(io).parseAsync(args, { from: "user" });
    });
}

function find(command: Command, names: readonly string[]): Command | undefined {
  const [name, ...rest] = names;
  if (name === undefined || command.commands.length === 0) return command;
  const child = command.commands.find((each) => each.name() === name);
  return child === undefined ? undefined : find(child, rest);
}

/** Runs one command line and returns the exit code. It never throws: every failure is reported on stderr. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  try {
    await createProgram(io).parseAsync(args, { from: "user" });
    return EXIT.ok;
  } catch (thrown) {
    const failure = failureFrom(thrown);
    if (failure === undefined) return EXIT.ok;
    // The command line itself may be what could not be parsed, so --json is looked for among its words.
    io.err(args.includes("--json") ? failureJson(failure) : asTyped(failureText(failure), io));
    return failure.exitCode;
  }
}
