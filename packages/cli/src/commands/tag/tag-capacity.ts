import { type CapacityLimit, CapacityLimitKind, GetTagCapacityResponse } from "@idmint/proto";
import { millisecondsOf } from "@idmint/core";
import { durationText } from "@idmint/core/kinds";
import type { Command } from "commander";
import { withServer } from "../../calls/connection.ts";
import type { Io } from "../../process/io.ts";
import { timeText } from "../../text/kind-text.ts";
import { printAnswer } from "../../text/output.ts";
import { protoJson } from "../../text/proto-json.ts";
import { columns } from "../../text/table.ts";
import { leaf, named } from "./tag-parts.ts";

const NAMES: Readonly<Record<number, string>> = {
  [CapacityLimitKind.CEILING]: "ceiling",
  [CapacityLimitKind.INT32]: "32 bits",
  [CapacityLimitKind.SAFE_INTEGER]: "2^53",
  [CapacityLimitKind.TIME_BITS]: "bits of time",
  [CapacityLimitKind.REDIS_MAX]: "maximum in Redis",
};

/** `idmint tag capacity`: when the ids of a tag run out. */
export function addCapacity(group: Command, io: Io): void {
  const command = named(
    leaf(group, "capacity", "say when the ids of a tag run out", [
      "idmint tag capacity orders",
      "idmint tag capacity orders --json | jq -r '.limits[] | select(.kind | endswith(\"CEILING\")).runOutTime'",
    ]),
  );
  command.action(async (name: string) => {
    await withServer(command, io, async (send) => {
      const answer = await send(({ tags }) => tags.getTagCapacity.bind(tags), { name });
      await printAnswer(command, io, {
        json: () => protoJson(GetTagCapacityResponse, answer),
        text: () => capacityText(answer),
      });
    });
  });
}

/** What a server answers, for people. */
function capacityText(answer: GetTagCapacityResponse): string {
  const { limits, workers } = answer;
  const facts = [["rate", rateText(answer)]];
  if (workers !== undefined) {
    facts.push(["worker ids left", `${workers.left} of ${workers.total}`]);
  }
  if (limits.length === 0) return `${columns(facts)}\nThe ids of this tag do not run out.\n`;
  const rows = limits.map((limit) => [
    NAMES[limit.kind] ?? "another limit",
    limit.kind === CapacityLimitKind.TIME_BITS ? "-" : String(limit.lastId),
    limit.idsLeft === undefined ? "-" : String(limit.idsLeft),
    runOutText(limit),
  ]);
  return `${columns(facts)}\n${columns([["LIMIT", "LAST ID", "LEFT", "RUNS OUT"], ...rows])}`;
}

function rateText({ idsPerSecond, watched }: GetTagCapacityResponse): string {
  if (idsPerSecond === undefined || watched === undefined) {
    return "unknown: this server saw no ids being used";
  }
  const seconds = Math.max(1, Math.round(millisecondsOf(watched) / 1_000));
  return `${numberText(idsPerSecond)} ids a second, watched for ${durationText(roundedMs(seconds))}`;
}

/** To the minute where it is hours, to the hour where it is days. */
function roundedMs(seconds: number): number {
  const unit = seconds >= 172_800 ? 3_600 : seconds >= 7_200 ? 60 : 1;
  return Math.round(seconds / unit) * unit * 1_000;
}

function numberText(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

function runOutText({ idsLeft, runOutTime }: CapacityLimit): string {
  if (idsLeft === 0n) return "now";
  // To the second: no forecast is better than that.
  return timeText(runOutTime).replace(/\.\d+Z$/, "Z");
}
