import { Command } from "commander";
import { addVersion } from "./commands/version.ts";
import { asTyped } from "./process/command-name.ts";
import { EXIT } from "./process/exit-code.ts";
import { failureFrom, failureJson, failureText } from "./calls/failure.ts";
import type { Io } from "./process/io.ts";
import { addRootOptions } from "./flags/options.ts";
import { plainIo } from "./process/plain.ts";
import { topicList } from "./text/topics.ts";

/** Commands that are loaded together, and what adds them. */
interface Part {
  readonly group: string;
  readonly names: readonly string[];
  /** `whole` makes the tree of all commands. */
  readonly load: () => Promise<
    (program: Command, io: Io, whole: (io: Io) => Promise<Command>) => void
  >;
}

const SERVERS = "Servers and their store:";
const IDS = "Ids and tags:";
const LOOKING = "What servers do and did:";
const ABOUT = "This command line:";

/** In the order of the help. */
const PARTS: readonly Part[] = [
  {
    group: SERVERS,
    names: ["start-dev", "serve"],
    load: async () => (await import("./commands/server.ts")).addServerCommands,
  },
  {
    group: SERVERS,
    names: ["migrate", "store"],
    load: async () => (await import("./commands/databases/store.ts")).addStoreCommands,
  },
  {
    group: SERVERS,
    names: ["config"],
    load: async () => (await import("./commands/config.ts")).addConfigCommands,
  },
  {
    group: SERVERS,
    names: ["doctor"],
    load: async () => (await import("./commands/doctor/doctor.ts")).addDoctorCommand,
  },
  {
    group: SERVERS,
    names: ["token"],
    load: async () => (await import("./commands/databases/token.ts")).addTokenCommands,
  },
  {
    group: SERVERS,
    names: ["ticket"],
    load: async () => (await import("./commands/databases/ticket.ts")).addTicketCommands,
  },
  {
    group: SERVERS,
    names: ["node"],
    load: async () => (await import("./commands/node.ts")).addNodeCommands,
  },
  {
    group: SERVERS,
    names: ["stop-issuing", "resume-issuing"],
    load: async () => (await import("./commands/issuing.ts")).addIssuingCommands,
  },
  {
    group: IDS,
    names: ["id"],
    load: async () => (await import("./commands/id/id.ts")).addIdCommands,
  },
  {
    group: IDS,
    names: ["tag"],
    load: async () => (await import("./commands/tag/tag.ts")).addTagCommands,
  },
  {
    group: IDS,
    names: ["worker"],
    load: async () => (await import("./commands/worker.ts")).addWorkerCommands,
  },
  {
    group: LOOKING,
    names: ["audit"],
    load: async () => (await import("./commands/audit.ts")).addAuditCommands,
  },
  {
    group: LOOKING,
    names: ["verify"],
    load: async () => (await import("./commands/verify/verify.ts")).addVerifyCommand,
  },
  {
    group: LOOKING,
    names: ["bench"],
    load: async () => (await import("./commands/bench/bench.ts")).addBenchCommand,
  },
  {
    group: LOOKING,
    names: ["watch"],
    load: async () => (await import("./commands/watch/watch.ts")).addWatchCommand,
  },
  {
    group: LOOKING,
    names: ["figures"],
    load: async () => (await import("./commands/figures.ts")).addFiguresCommand,
  },
  {
    group: LOOKING,
    names: ["health", "status"],
    load: async () => (await import("./commands/status.ts")).addStatusCommands,
  },
  {
    group: ABOUT,
    names: ["context"],
    load: async () => (await import("./commands/context.ts")).addContextCommands,
  },
  {
    group: ABOUT,
    names: ["completion"],
    load: async () => (await import("./commands/completion/completion.ts")).addCompletion,
  },
];

/**
 * The parts that a command line needs: loading the others would take longer than most commands run. All of them for
 * help, and where the line does not begin with a command, since what is wrong with it is told from all that there are.
 */
function partsOf(args: readonly string[]): readonly Part[] {
  const first = args.find((word) => !word.startsWith("-"));
  const isTyped = ({ names }: Part): boolean => names.some((name) => args.includes(name));
  const isCommand = PARTS.some(({ names }) => first !== undefined && names.includes(first));
  return isCommand ? PARTS.filter(isTyped) : PARTS;
}

/** The command tree, not yet parsed: the commands that a command line may mean, or without one all of them. */
export async function createProgram(io: Io, args: readonly string[] = []): Promise<Command> {
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
  $ idmint help topics
`,
    );
  const parts = partsOf(args);
  const adders = await Promise.all(parts.map(({ load }) => load()));
  for (const [at, { group }] of parts.entries()) {
    program.commandsGroup(group);
    adders[at]?.(program, io, createProgram);
  }
  program.commandsGroup(ABOUT);
  addVersion(program, io);
  addHelp(program, io);
  addRootOptions(program);
  return program;
}

/** `idmint help tag create` equals `idmint tag create --help`, at any depth; `idmint help kinds` is a page of the docs. */
function addHelp(program: Command, io: Io): void {
  program
    .command("help")
    .description("explain a command, a topic, or the reason of an error")
    .argument("[command...]", "such as: tag create, kinds, TAG_PAUSED")
    .addHelpText(
      "after",
      `
Topics:
${topicList()}
Examples:
  $ idmint help id next
  $ idmint help kinds
  $ idmint help TAG_PAUSED
`,
    )
    .action(async (names: readonly string[]) => {
      const isKnown = find(program, names) !== undefined;
      const [name = "", ...more] = names;
      const text = isKnown || more.length > 0 ? undefined : await manualTextOf(name);
      if (text !== undefined) {
        await io.out(asTyped(text, io));
        return;
      }
      // Without --help, an unknown name is refused with a suggestion.
      const args = isKnown ? [...names, "--help"] : names;
      await (await createProgram(io)).parseAsync(args, { from: "user" });
    });
}

async function manualTextOf(name: string): Promise<string | undefined> {
  const { manualText } = await import("./text/manual.ts");
  return manualText(name);
}

function find(command: Command, names: readonly string[]): Command | undefined {
  const [name, ...rest] = names;
  if (name === undefined || command.commands.length === 0) return command;
  const child = command.commands.find((each) => each.name() === name);
  return child === undefined ? undefined : find(child, rest);
}

/** Runs one command line and returns the exit code. It never throws: every failure is reported on stderr. */
export async function run(args: readonly string[], streams: Io): Promise<number> {
  const io = plainIo(streams);
  try {
    const program = await createProgram(io, args);
    await program.parseAsync(args, { from: "user" });
    return EXIT.ok;
  } catch (thrown) {
    const failure = failureFrom(thrown);
    if (failure === undefined) return EXIT.ok;
    // The command line itself may be what could not be parsed, so --json is looked for among its words.
    io.err(args.includes("--json") ? failureJson(failure) : asTyped(failureText(failure), io));
    return failure.exitCode;
  }
}
