// The calls of TagService that only some kinds of tags have.
import { MAX_ID } from "@idmint/core";
import type { EndedPeriod } from "@idmint/proto";
import { type Command, Option } from "commander";
import { confirm, serverPlace } from "../confirm.ts";
import { withServer } from "../../calls/connection.ts";
import type { Io } from "../../process/io.ts";
import { timeText } from "../../text/kind-text.ts";
import { printAnswer } from "../../text/output.ts";
import { addPageOptions, listPages, type PageFlags, tellOfMore } from "../../calls/paging.ts";
import { wholeNumber } from "../../flags/parse.ts";
import { plain } from "../../process/plain.ts";
import { columns } from "../../text/table.ts";
import { type EtagFlag, leaf, named, printTag, withEtag } from "./tag-parts.ts";

/** More days than the longest keep_for has. */
const MAX_LISTED = 10_000;

/** `idmint tag periods`: what a sequence reached in periods that are over. */
export function addPeriods(group: Command, io: Io): void {
  const command = named(
    leaf(
      group,
      "periods",
      "list the ended periods of a sequence and their last ids, newest first",
      ["idmint tag periods invoice", "idmint tag periods invoice --limit 7 --json"],
    ),
  );
  addPageOptions(command, "periods", { max: MAX_LISTED });
  command.action(async (name: string, flags: PageFlags) => {
    await withServer(command, io, async (send) => {
      const { items: periods, nextPageToken } = await listPages(flags, async (page) => {
        const request = { name, ...page };
        const answer = await send(({ tags }) => tags.listPeriods.bind(tags), request);
        return { items: answer.periods, nextPageToken: answer.nextPageToken };
      });
      await printAnswer(command, io, {
        json: () => ({ periods: periods.map(periodJson), nextPageToken }),
        text: () => periodTable(periods),
      });
      tellOfMore(io, "periods", nextPageToken);
    });
  });
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

interface ReturnFlags extends EtagFlag {
  readonly period: string;
  readonly floor?: bigint;
  readonly dryRun?: boolean;
}

/** `idmint tag return-to-period`: for a sequence that a clock which had jumped put into a period ahead of time. */
export function addReturnToPeriod(group: Command, io: Io): void {
  const command = withEtag(
    named(
      leaf(
        group,
        "return-to-period",
        "put a sequence back into an earlier period, above every id that the period gave",
        [
          "idmint tag return-to-period invoice --period 2026-11-22 --dry-run",
          "idmint tag return-to-period invoice --period 2026-11-22 --floor 0 --yes",
        ],
      ),
    ),
  )
    .addOption(
      new Option(
        "--period <name>",
        "the period, as idmint tag periods shows it: 2026-11-22, 2026-W47, 2026-11 or 2026",
      ).makeOptionMandatory(),
    )
    .addOption(
      new Option(
        "--floor <id>",
        "an id at or above the last one that the period gave, 0 if it gave none; required if the store does not know the last one",
      ).argParser(wholeNumber("--floor", { min: 0n, max: MAX_ID })),
    )
    .addOption(new Option("--dry-run", "check everything, change nothing"));
  command.action(async (name: string, flags: ReturnFlags) => {
    const { period, floor, dryRun: validateOnly = false, etag = "" } = flags;
    const request = { name, period, floor, etag, validateOnly };
    if (!validateOnly) {
      const effect = `puts tag "${name}" back into period ${period}`;
      await confirm(command, io, { place: serverPlace(command, io), effect });
    }
    await withServer(command, io, async (send) => {
      const answer = await send(({ tags }) => tags.returnToPeriod.bind(tags), request);
      await printTag(command, io, answer, { returned: answer.returned });
      if (validateOnly) io.err("idmint: dry run, nothing was changed\n");
    });
  });
}

interface MoveFlags extends EtagFlag {
  readonly to: string;
  readonly force?: boolean;
}

/** `idmint tag move`: to another Redis server. */
export function addMove(group: Command, io: Io): void {
  const command = withEtag(
    named(
      leaf(group, "move", "move a tag that counts in Redis to another Redis server", [
        "idmint tag move tickets --to b",
      ]),
    ),
  )
    .addOption(
      new Option(
        "--to <server>",
        "name of the Redis server, one of the servers' redis.urls",
      ).makeOptionMandatory(),
    )
    .addOption(
      new Option(
        "--force",
        "move the tag although the old Redis server cannot be told to stop; for one that is gone for good",
      ),
    );
  command.action(async (name: string, { to, force = false, etag = "" }: MoveFlags) => {
    await withServer(command, io, async (send) => {
      const request = { name, redisServer: to, force, etag, validateOnly: false };
      await printTag(command, io, await send(({ tags }) => tags.moveTag.bind(tags), request));
    });
  });
}
