import type { Tag } from "@idmint/proto";
import { columns } from "../../text/table.ts";
import type { Mode } from "./callers.ts";
import type { Load } from "./pacer-state.ts";
import type { Progress, BenchRun } from "./run.ts";
import type { Tallied } from "./tally.ts";

/** What a run was, and what came of it. */
export interface Report {
  readonly tag: Tag;
  readonly mode: Mode;
  readonly load: Load;
  readonly connections: number;
  readonly count: number;
  /** Whether the tag was made for the run. */
  readonly isOwn: boolean;
  readonly elapsedMs: number;
  readonly end: BenchRun["end"];
  readonly result: Tallied;
}

const WIDTH = 30;

/** The line of a run that goes on. */
export function barText({ share, answered, perSecond, p99Ms }: Progress): string {
  const done = Math.round(share * WIDTH);
  const bar = "#".repeat(done) + ".".repeat(WIDTH - done);
  const percent = String(Math.round(share * 100)).padStart(3);
  const rate = `${Math.round(perSecond)} a second`;
  return `[${bar}] ${percent} %  ${answered} calls  ${rate}  p99 ${p99Ms.toPrecision(3)} ms`;
}

export function reportJson(report: Report): unknown {
  const { tag, mode, load, connections, count, isOwn, elapsedMs, end, result } = report;
  const { ratePerSecond, maxInFlight } = load;
  return {
    tag: tag.name,
    madeForRun: isOwn,
    mode,
    loop: ratePerSecond === undefined ? "closed" : "open",
    ...(ratePerSecond === undefined ? {} : { ratePerSecond }),
    maxInFlight,
    connections,
    idsPerCall: count,
    seconds: elapsedMs / 1_000,
    ended: end,
    calls: result.answered,
    callsPerSecond: perSecond(result.answered, elapsedMs),
    ids: String(result.ids),
    idsPerSecond: perSecond(Number(result.ids), elapsedMs),
    repeats: result.repeats,
    repeated: result.repeated,
    unsent: result.unsent,
    refused: Object.fromEntries(result.refused),
    latencyMs: result.latencyMs,
  };
}

export function reportText(report: Report): string {
  const { tag, mode, load, connections, isOwn, elapsedMs, end, result } = report;
  const { ratePerSecond, maxInFlight } = load;
  const loop =
    ratePerSecond === undefined
      ? `closed loop, ${maxInFlight} callers`
      : `open loop, ${ratePerSecond} calls a second`;
  const { answered, ids, repeats, refused, unsent, latencyMs } = result;
  const seconds = (elapsedMs / 1_000).toFixed(1);
  const lines = connections === 1 ? "" : `, ${connections} connections`;
  const latencies = Object.entries(latencyMs).map(([name, ms]) => [`latency ${name}`, `${ms} ms`]);
  return columns([
    ["tag", isOwn ? `${tag.name} (made for this run)` : tag.name],
    ["mode", `${mode}, ${loop}${lines}`],
    ["time", `${seconds} s${WHY[end]}`],
    ["calls", `${answered}, ${perSecond(answered, elapsedMs)} a second`],
    ["ids", `${ids}, ${perSecond(Number(ids), elapsedMs)} a second`],
    ["repeated ids", String(repeats)],
    ...latencies,
    ...(unsent === 0 ? [] : [["never sent", `${unsent} calls that were due; they count above`]]),
    ...[...refused].map(([reason, count]) => ["refused", `${count} ${reason}`]),
  ]);
}

const WHY: Readonly<Record<BenchRun["end"], string>> = {
  over: "",
  interrupted: ", interrupted",
  full: ", ended early: more ids cannot be compared",
};

function perSecond(count: number, elapsedMs: number): number {
  return Math.round((count * 1_000) / elapsedMs);
}
