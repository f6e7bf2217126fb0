// The calls of TagService that only some kinds of tags have.
import type { EndedPeriod } from "@idmint/proto";
import { type Command, Option } from "commander";
import { type Send, withServer } from "../connection.ts";
import type { Io } from "../io.ts";
import { timeText } from "../kind-text.ts";
import { printAnswer } from "../output.ts";
import { smallNumber } from "../parse.ts";
import { columns, plain } from "../table.ts";
import { type EtagFlag, leaf, named, printTag, withEtag } from "./tag-parts.ts";

const PAGE_SIZE = 1_000;
/** More days than the longest keep_for has. */
const MAX_LISTED = 10_000;

interface PeriodFlags {
  readonly limit?: number;
  readonly pageToken?: string;
}

/** `idmint tag periods`: what a sequence reached in periods that are over. */
export function addPeriods(group: Command, io: Io): void {
  const command = named(
    leaf(
      group,
      "periods",
      "list the ended periods of a sequence with their last ids, newest first",
      ["idmint tag periods invoice", "idmint tag periods invoice --limit 7 --json"],
    ),
  )
    .addOption(
      new Option("--limit <count>", "most periods to list, 1 to 10000 (default 1000)").argParser(
        smallNumber("--limit", { min: 1, max: MAX_LISTED }),
      ),
    )
    .addOption(new Option("--page-token <token>", "go on where a list ended"));
  command.action(async (name: string, flags: PeriodFlags) => {
    await withServer(command, io, async (send) => {
      const { periods, nextPageToken } = await listPeriods(send, name, flags);
      await printAnswer(command, io, {
        json: () => ({ periods: periods.map(periodJson), nextPageToken }),
        text: () => periodTable(periods),
      });
      if (nextPageToken !== "") {
        io.err(`idmint: there are more periods: --page-token ${nextPageToken}\n`);
      }
    });
  });
}

/** Pages until the limit or the end. */
async function listPeriods(
  send: Send,
  name: string,
  { limit = PAGE_SIZE, pageToken = "" }: PeriodFlags,
): Promise<{ periods: EndedPeriod[]; nextPageToken: string }> {
  const periods: EndedPeriod[] = [];
  let token = pageToken;
  do {
    const pageSize = Math.min(PAGE_SIZE, limit - periods.length);
    const request = { name, pageSize, pageToken: token };
    const page = await send(({ tags }) => tags.listPeriods.bind(tags), request);
    // An empty page with a token would go on for ever.
    if (page.periods.length === 0) return { periods, nextPageToken: "" };
    periods.push(...page.periods);
    token = page.nextPageToken;
  } while (token !== "" && periods.length < limit);
  return { periods, nextPageToken: token };
}

function periodTable(periods: readonly EndedPeriod[]): string {
  const rows = periods.map(({ period, lastId, endTime }) => [
    plain(period),
    String(lastId),
    timeText(endTime),
  ]);
  return columns([["PERIOD", "LAST ID", "ENDED"], ...rows]);
}

function periodJson({ period, lastId, endTime }: EndedPeriod): unknown {
  return { period, lastId: String(lastId), endTime: endTime?.toISOString() ?? null };
}

interface MoveFlags extends EtagFlag {
  readonly to: string;
  readonly force?: boolean;
}

/** `idmint tag move`: to another Redis shard. */
export function addMove(group: Command, io: Io): void {
  const command = withEtag(
    named(
      leaf(group, "move", "let a tag that counts in Redis count in another Redis shard", [
        "idmint tag move tickets --to b",
      ]),
    ),
  )
    .addOption(
      new Option(
        "--to <shard>",
        "name of the Redis shard, one of the servers' redis.urls",
      ).makeOptionMandatory(),
    )
    .addOption(
      new Option(
        "--force",
        "go on although the old shard cannot be told to stop: for one that is gone for good",
      ),
    );
  command.action(async (name: string, { to, force = false, etag = "" }: MoveFlags) => {
    await withServer(command, io, async (send) => {
      const request = { name, shard: to, force, etag };
      await printTag(command, io, await send(({ tags }) => tags.moveTag.bind(tags), request));
    });
  });
}
