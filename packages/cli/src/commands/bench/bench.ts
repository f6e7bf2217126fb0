import { randomBytes } from "node:crypto";
import { CODE_OF_REASON, invalidField, type Reason } from "@idmint/core";
import type { KindName } from "@idmint/core/kinds";
import type { Tag } from "@idmint/proto";
import { type Command, Option } from "commander";
import { type Send, withServerAt } from "../../calls/connection.ts";
import { CommandFailure, failureOf } from "../../calls/failure.ts";
import { KIND_WORDS } from "../../flags/kind-words.ts";
import {
  addConnectionOptions,
  type ConnectionSettings,
  connectionSettings,
  isJson,
} from "../../flags/options.ts";
import { duration, oneOf, smallNumber, oneWord } from "../../flags/parse.ts";
import { newTag } from "../../flags/tag-flags.ts";
import { EXIT } from "../../process/exit-code.ts";
import { CLEAR_LINE, type Io } from "../../process/io.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { confirm, serverPlace } from "../confirm.ts";
import { readTag } from "../tag/tag-parts.ts";
import { callersOf, type Mode, MODES } from "./callers.ts";
import type { Load } from "./pacer-state.ts";
import { barText, reportJson, reportText, type Report } from "./report.ts";
import { type BenchRun, runLoad } from "./run.ts";

const MAX_CALLS = 10_000_000;
const MAX_COUNT = 1_000_000;
/** As many as a server takes on one connection. */
const MOST_IN_FLIGHT = 1_024;
const MAX_CONNECTIONS = 64;
const MAX_RATE = 1_000_000;

interface BenchFlags {
  readonly kind?: KindName;
  readonly mode?: Mode;
  readonly rate?: number;
  readonly inFlight?: number;
  readonly connections?: number;
  readonly duration?: number;
  readonly calls?: number;
  readonly count?: number;
}

/** `idmint bench`: how fast a server is for callers like this one, and whether each id came once. */
export function addBenchCommand(program: Command, io: Io): void {
  const command = program
    .command("bench")
    .description("measure how fast a server mints ids, and check that each comes once")
    .argument("[tag]", "an existing tag (default: one that is made for the run and deleted)")
    .addHelpText(
      "after",
      `
Every id that is minted is used up. With the name of a tag, the command asks first: the ids of the run are a gap in it.
Without one, a tag bench-… is made and deleted; its tombstone stays.

Without --rate a number of callers each wait for an answer before they call again (a closed loop): this finds how many
calls a server takes. With --rate calls are made at that rate whether or not the others are answered (an open loop): this
finds how long calls take at that load. There, the time of a call counts from when it was due. So a server that stalls is
charged for every call that had to wait, also for those that were never sent because the run was over.

The command checks that no id came twice, and ends with exit code 5 if one did. It takes a core for itself: on a machine that it
shares with the server, both are slower than they are apart.
${examplesText([
  "idmint bench",
  "idmint bench --rate 5000 --duration 30s",
  "idmint bench --mode batch --count 1000 --json",
  "idmint bench orders --mode sdk --calls 100000 --yes",
])}`,
    );
  for (const option of options()) command.addOption(option);
  addConnectionOptions(command);
  command.action(async (name: string | undefined, flags: BenchFlags) => {
    const load = loadOf(flags);
    const settings = connectionSettings(command, io.env);
    const isOwn = name === undefined;
    const tag = await withServerAt(settings, io, async (send) =>
      tagFor(command, io, send, { name, kind: flags.kind, durationMs: load.durationMs }),
    );
    let report: Report | undefined;
    try {
      report = await measure(command, io, { tag, flags, load, isOwn, settings });
    } finally {
      // A repeat is looked into, and for that its tag has to be there.
      if (isOwn && !hasRepeats(report)) await remove(settings, tag, io);
    }
    assertGood(report);
  });
}

function number(flag: string, text: string, max: number): Option {
  return new Option(flag, text).argParser(smallNumber(flag.split(" ")[0] ?? "", { min: 1, max }));
}

function options(): readonly Option[] {
  return [
    new Option("--kind <kind>", "kind of the tag that is made (default segment)").argParser(
      oneOf("--kind", KIND_WORDS),
    ),
    new Option(
      "--mode <mode>",
      "call: one id a call (default); batch: --count ids a call; stream: one id a message; sdk: the SDK's next()",
    ).argParser(oneWord("--mode", MODES)),
    number("--rate <calls>", "calls a second, answered or not: an open loop", MAX_RATE),
    number(
      "--in-flight <calls>",
      `callers, or with --rate the most calls that wait, 1 to ${MOST_IN_FLIGHT} a connection (default 32, with --rate ${MOST_IN_FLIGHT})`,
      MOST_IN_FLIGHT * MAX_CONNECTIONS,
    ),
    number("--connections <count>", `1 to ${MAX_CONNECTIONS} (default 1)`, MAX_CONNECTIONS),
    new Option("--duration <time>", "how long, 1s to 1h (default 10s)").argParser(
      duration("--duration", { minMs: 1_000, maxMs: 3_600_000 }),
    ),
    number("--calls <count>", `most calls, 1 to ${MAX_CALLS} (default ${MAX_CALLS})`, MAX_CALLS),
    number(
      "--count <ids>",
      `ids of one call in mode batch, 1 to ${MAX_COUNT} (default 1000)`,
      MAX_COUNT,
    ),
  ];
}

function loadOf(flags: BenchFlags): Load {
  const { rate, connections = 1, duration: durationMs = 10_000, calls = MAX_CALLS } = flags;
  const most = MOST_IN_FLIGHT * connections;
  const maxInFlight = flags.inFlight ?? (rate === undefined ? 32 : most);
  if (maxInFlight > most) {
    const text = `must be at most ${MOST_IN_FLIGHT} a connection; add --connections`;
    throw invalidField("--in-flight", text);
  }
  if (flags.count !== undefined && flags.mode !== "batch") {
    throw invalidField("--count", "needs --mode batch: the other modes ask for one id a call");
  }
  return { ratePerSecond: rate, maxInFlight, maxCalls: calls, durationMs };
}

interface WantedTag {
  readonly name: string | undefined;
  readonly kind: KindName | undefined;
  readonly durationMs: number;
}

async function tagFor(
  command: Command,
  io: Io,
  send: Send,
  { name, kind, durationMs }: WantedTag,
): Promise<Tag> {
  if (name !== undefined) {
    if (kind !== undefined) throw invalidField("--kind", "is for a tag that is made for the run");
    const tag = await readTag(send, name);
    const effect = `mints ids of tag "${name}" for up to ${durationMs / 1_000} s, and nobody gets them`;
    await confirm(command, io, { place: serverPlace(command, io), effect });
    return tag;
  }
  const wanted = newTag(`bench-${randomBytes(4).toString("hex")}`, {
    ...(kind === undefined ? {} : { kind }),
    description: "made by idmint bench",
  });
  const request = { tag: wanted, validateOnly: false };
  const { tag = wanted } = await send(({ tags }) => tags.createTag.bind(tags), request);
  return tag;
}

/** Removes the tag of the run, also after Ctrl-C. A server that is away by now keeps it, and somebody has to know. */
async function remove(settings: ConnectionSettings, { name }: Tag, io: Io): Promise<void> {
  const request = { name, etag: "", validateOnly: false };
  const { signal } = new AbortController();
  await withServerAt(settings, { signal }, async (send) =>
    send(({ tags }) => tags.deleteTag.bind(tags), request),
  ).catch(() => {
    io.err(`idmint: tag ${name} is still there; delete it with: idmint tag delete ${name}\n`);
  });
}

interface Measured {
  readonly tag: Tag;
  readonly flags: BenchFlags;
  readonly load: Load;
  readonly isOwn: boolean;
  readonly settings: ConnectionSettings;
}

async function measure(
  command: Command,
  io: Io,
  { tag, flags, load, isOwn, settings }: Measured,
): Promise<Report> {
  const { mode = "call", connections = 1, count = mode === "batch" ? 1_000 : 1 } = flags;
  const callers = callersOf({ mode, tag, count, connections }, settings);
  const isShown = io.isTerminal?.err === true && !isJson(command);
  const limits = { signal: io.signal, timeoutMs: settings.timeoutMs };
  let ran: BenchRun;
  try {
    ran = await runLoad(load, callers, limits, (progress) => {
      if (isShown) io.err(barText(progress), CLEAR_LINE);
    });
  } finally {
    if (isShown) io.err("", CLEAR_LINE);
    await Promise.all(callers.map(async (caller) => caller.close()));
  }
  const { tally, elapsedMs, end } = ran;
  const result = tally.end();
  const report: Report = { tag, mode, load, connections, count, isOwn, elapsedMs, end, result };
  await printAnswer(command, io, {
    json: () => reportJson(report),
    text: () => reportText(report),
  });
  return report;
}

function hasRepeats(report: Report | undefined): boolean {
  return report !== undefined && report.result.repeats > 0;
}

/** The data is on stdout already. This only sets the exit code and says why. */
function assertGood({ tag, result }: Report): void {
  if (result.repeats > 0) {
    const which = result.repeated.join(", ");
    const text = `ids of tag ${tag.name} came more than once: ${which}; keep the store as it is, and report it`;
    throw new CommandFailure(
      failureOf("FAILED_PRECONDITION", "UNHEALTHY", text, { exitCode: EXIT.unhealthy }),
    );
  }
  const [reason] = [...result.refused].toSorted(([, a], [, b]) => b - a)[0] ?? [];
  if (result.answered > 0 || reason === undefined) return;
  // A reason that is none of idmint's is the network's.
  const code = Object.hasOwn(CODE_OF_REASON, reason)
    ? CODE_OF_REASON[reason as Reason]
    : "UNAVAILABLE";
  throw new CommandFailure(failureOf(code, reason, "no call was answered; see docs/errors.md"));
}
