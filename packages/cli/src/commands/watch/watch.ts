import { setTimeout as sleep } from "node:timers/promises";
import { AuditKind } from "@idmint/proto";
import { type Command, Option } from "commander";
import { type Send, withServerAt } from "../../calls/connection.ts";
import { CommandFailure } from "../../calls/failure.ts";
import {
  addConnectionOptions,
  type ConnectionSettings,
  connectionSettings,
  isJson,
} from "../../flags/options.ts";
import { smallNumber } from "../../flags/parse.ts";
import { EXIT } from "../../process/exit-code.ts";
import { CLEAR_LINE, CLEAR_SCREEN, type Io } from "../../process/io.ts";
import { examplesText } from "../../text/output.ts";
import { plain } from "../../process/plain.ts";
import { invalidField } from "@idmint/core";
import { readTag } from "../tag/tag-parts.ts";
import { Watched } from "./watch-state.ts";
import { type Seen, seenJson, seenText } from "./watch-text.ts";

const EVERY_MS = 1_000;
const MAX_TAGS = 20;
const MAX_NODES = 100;
const MAX_REFUSALS = 1_000;
const REFUSALS_MS = 60_000;
/** The last seconds of all servers. */
const FIGURES = { tag: "", seconds: 5, thisServer: false };
/** The top of the screen, and nothing below. */

interface WatchFlags {
  readonly count?: number;
}

/** `idmint watch`: a server, its fleet and tags, once a second. */
export function addWatchCommand(program: Command, io: Io): void {
  const command = program
    .command("watch")
    .description("show rates, what is left, refusals and servers, once a second until Ctrl-C")
    .argument("[tags...]", `tags to watch, at most ${MAX_TAGS} (default: the first ${MAX_TAGS})`)
    .addOption(
      new Option("--count <looks>", "end after this many updates (default: never)").argParser(
        smallNumber("--count", { min: 1, max: 1_000_000 }),
      ),
    )
    .addHelpText(
      "after",
      `
On a terminal the screen is drawn anew each second. Otherwise, and with --json, each look is one line of JSON. While the
server does not answer, the command says so and keeps trying.

issued and wasted are ids of the one server that is called. IDS/S and REFUSED/S of each server are averages over five seconds,
P99 is of its calls for ids ("idmint figures" shows more). GRANTED is what all servers took of a tag from the store, on
average over ten seconds: it comes in whole segments. LEFT counts up to the ceiling. "not allowed" counts calls of the last
minute that ended with UNAUTHENTICATED or PERMISSION_DENIED; only administrators of all tags see it. All other refusals
are in the metrics (docs/metrics.md).
${examplesText(["idmint watch", "idmint watch orders invoices", "idmint watch orders --json | jq .issuedPerSecond"])}`,
    );
  addConnectionOptions(command);
  command.action(async (tags: readonly string[], { count = Infinity }: WatchFlags) => {
    if (tags.length > MAX_TAGS) throw invalidField("TAGS", `must be at most ${MAX_TAGS}`);
    const settings = connectionSettings(command, io.env);
    const isDrawn = io.isTerminal?.out === true && !isJson(command);
    const show = async (seen: Seen | CommandFailure): Promise<void> => {
      await (isDrawn ? draw(io, seen, settings.address) : io.out(line(seen)));
    };
    await watch(settings, io, { tags, count, show });
  });
}

async function draw(io: Io, seen: Seen | CommandFailure, address: string): Promise<void> {
  if (!(seen instanceof CommandFailure)) return io.out(seenText(seen, address), CLEAR_SCREEN);
  const { message } = seen.failure;
  return io.out(`${new Date().toISOString().slice(11, 19)} UTC  ${plain(message)}`, CLEAR_LINE);
}

function line(seen: Seen | CommandFailure): string {
  if (!(seen instanceof CommandFailure)) return `${JSON.stringify(seenJson(seen))}\n`;
  const { code, reason, message } = seen.failure;
  return `${JSON.stringify({ time: new Date().toISOString(), error: { code, reason, message } })}\n`;
}

interface Watch {
  readonly tags: readonly string[];
  readonly count: number;
  readonly show: (seen: Seen | CommandFailure) => Promise<void>;
}

/** Looks until Ctrl-C. What is wrong at the first look is told at once: it is the address more often than the server. */
async function watch(
  settings: ConnectionSettings,
  io: Io,
  { tags, count, show }: Watch,
): Promise<void> {
  const watched = new Watched();
  let looks = 0;
  const lookOn = async (send: Send): Promise<void> => {
    while (looks < count && !io.signal.aborted) {
      const start = performance.now();
      await show(await look(send, tags, watched));
      looks += 1;
      if (looks < count) await pause(io, EVERY_MS - (performance.now() - start));
    }
  };
  while (looks < count && !io.signal.aborted) {
    try {
      // A connection that failed waits longer and longer before it tries again, so each try has one of its own.
      await withServerAt(settings, io, lookOn);
    } catch (thrown) {
      if (io.signal.aborted) return;
      if (looks === 0 || !isAway(thrown)) throw thrown;
      await show(thrown);
      looks += 1;
      await pause(io, EVERY_MS);
    }
  }
}

function isAway(thrown: unknown): thrown is CommandFailure {
  return thrown instanceof CommandFailure && thrown.failure.exitCode === EXIT.unavailable;
}

async function pause({ signal }: Io, ms: number): Promise<void> {
  await sleep(Math.max(0, ms), undefined, { signal }).catch(() => undefined);
}

async function look(send: Send, names: readonly string[], watched: Watched): Promise<Seen> {
  const time = new Date();
  const page = { pageSize: MAX_TAGS, pageToken: "" };
  const [status, figures, servers, listed, refusals] = await Promise.all([
    send(({ nodes }) => nodes.getNodeStatus.bind(nodes), {}),
    send(({ nodes }) => nodes.listFigures.bind(nodes), FIGURES),
    send(({ nodes }) => nodes.listNodes.bind(nodes), { ...page, pageSize: MAX_NODES }),
    names.length === 0
      ? send(({ tags }) => tags.listTags.bind(tags), { ...page, prefix: "", showDeleted: false })
      : undefined,
    refusalsSince(send, new Date(time.getTime() - REFUSALS_MS)),
  ]);
  const tags = listed?.tags ?? (await Promise.all(names.map(async (name) => readTag(send, name))));
  const rates = watched.add({
    atMs: performance.now(),
    nodeId: status.nodeId,
    issued: status.issuedIds,
    wasted: status.wastedIds,
    floors: new Map(tags.map(({ name, floor }) => [name, floor])),
  });
  return {
    time,
    status,
    figures,
    nodes: servers.nodes,
    moreNodes: servers.nextPageToken !== "",
    tags,
    moreTags: (listed?.nextPageToken ?? "") !== "",
    refusals,
    rates,
  };
}

/** Calls that were not allowed. Undefined for who may not know. */
async function refusalsSince(send: Send, startTime: Date): Promise<bigint | undefined> {
  const request = {
    pageSize: MAX_REFUSALS,
    pageToken: "",
    kind: AuditKind.REFUSAL,
    principal: "",
    resource: "",
    outcome: "",
    startTime,
    endTime: undefined,
  };
  try {
    const { events } = await send(({ audit }) => audit.listAuditEvents.bind(audit), request);
    return events.reduce(
      (sum, { omittedCount }) => sum + (omittedCount === 0n ? 1n : omittedCount),
      0n,
    );
  } catch (thrown) {
    const isKept =
      thrown instanceof CommandFailure && thrown.failure.reason === "PERMISSION_DENIED";
    if (isKept) return undefined;
    throw thrown;
  }
}
