import { durationText } from "@idmint/core/kinds";
import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { millisecondsOf } from "../../api/errors.ts";
import type { ResponseOf } from "../../api/json.ts";
import { CliLine } from "../../parts/cli-line.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Facts, Section } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { usePoll } from "../../state/polling.ts";
import { cliLine } from "../../text/cli.ts";
import { countText, numberText, timeText } from "../../text/format.ts";
import { t, tOr } from "../../text/text.ts";
import { Id } from "./tags.tsx";

type Answer = ResponseOf<"TagService", "getTagCapacity">;
type Limit = Answer["limits"][number];

const EVERY_MS = 10_000;
const TIME_BITS = "CAPACITY_LIMIT_KIND_TIME_BITS";

/** When the ids of a tag run out. */
export function Capacity({ tag }: { readonly tag: string }): JSX.Element {
  const poll = usePoll(
    `capacity\n${tag}`,
    (signal) => call("TagService", "getTagCapacity", { name: tag }, { signal }),
    { everyMs: EVERY_MS },
  );
  return (
    <Section title={t("capacity.title")}>
      <Loaded poll={poll}>
        {(answer) => (
          <>
            <Facts facts={factsOf(answer)} />
            <Table
              caption={t("capacity.caption")}
              columns={columns()}
              rows={answer.limits}
              keyOf={({ kind }) => kind}
              empty={t("capacity.never")}
            />
          </>
        )}
      </Loaded>
      <CliLine line={cliLine(["tag", "capacity", tag])} />
    </Section>
  );
}

function factsOf({
  idsPerSecond,
  watched,
  workers,
}: Answer): readonly (readonly [string, string])[] {
  const time = durationText(roundedMs(millisecondsOf(watched) ?? 0));
  const isKnown = idsPerSecond !== undefined && idsPerSecond !== null;
  const rate = isKnown
    ? t("capacity.rate_text", { rate: numberText(idsPerSecond, idsPerSecond < 100 ? 2 : 0), time })
    : t("capacity.no_rate");
  if (workers === undefined || workers === null) return [[t("capacity.rate"), rate]];
  const { left, total } = workers;
  const free = t("capacity.of", { left: numberText(left), total: numberText(total) });
  return [
    [t("capacity.rate"), rate],
    [t("capacity.workers"), free],
  ];
}

/** To the second, to the minute where it is hours, to the hour where it is days. */
function roundedMs(ms: number): number {
  const unit = ms >= 172_800_000 ? 3_600_000 : ms >= 7_200_000 ? 60_000 : 1_000;
  return Math.max(unit, Math.round(ms / unit) * unit);
}

function columns(): readonly Column<Limit>[] {
  return [
    { title: t("capacity.limit"), isHead: true, cell: ({ kind }) => tOr("limit", kind) },
    {
      title: t("capacity.last"),
      isNumber: true,
      cell: ({ kind, lastId }) => (kind === TIME_BITS ? t("common.none") : <Id text={lastId} />),
    },
    {
      title: t("capacity.left"),
      isNumber: true,
      cell: ({ idsLeft }) =>
        idsLeft === undefined || idsLeft === null ? t("common.none") : countText(idsLeft),
    },
    {
      title: t("capacity.end"),
      cell: ({ idsLeft, runOutTime }) => (idsLeft === "0" ? t("capacity.now") : timeOr(runOutTime)),
    },
  ];
}

function timeOr(time: string | null | undefined): string {
  return time === undefined || time === null ? t("common.none") : timeText(time);
}
