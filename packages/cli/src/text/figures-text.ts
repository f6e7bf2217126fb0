// The figures of servers, as tables and as numbers.
import {
  AlarmSeverity,
  type FigureRun,
  type ListFiguresResponse,
  type NodeFigures,
  nodeStateToJSON,
  type SilenceReason,
  silenceReasonToJSON,
} from "@idmint/proto";
import { timeText } from "./kind-text.ts";
import { plain } from "../process/plain.ts";
import { columns } from "./table.ts";

/** What a server did a second, on average over the seconds that it counted; undefined: it counted none. */
export interface NodeRates {
  readonly issued: number;
  readonly calls: number;
  readonly refused: number;
  /** By reason, those with the most first. */
  readonly refusals: readonly (readonly [reason: string, calls: number])[];
}

export function ratesOf({ runs }: Pick<NodeFigures, "runs">): NodeRates | undefined {
  const seconds = runs.reduce((sum, { issuedIds }) => sum + issuedIds.length, 0);
  if (seconds === 0) return undefined;
  const perSecond = (of: (run: FigureRun) => readonly (bigint | number)[]): number =>
    sumOf(runs.flatMap((run) => of(run))) / seconds;
  const reasons = new Set(runs.flatMap(({ refusals }) => refusals.map(({ reason }) => reason)));
  const refusals = [...reasons].map((reason) => {
    const its = ({ refusals: all }: FigureRun): readonly number[] =>
      all.find((each) => each.reason === reason)?.calls ?? [];
    return [reason, perSecond(its)] as const;
  });
  return {
    issued: perSecond(({ issuedIds }) => issuedIds),
    calls: perSecond(({ calls }) => calls),
    refused: perSecond(({ refusedCalls }) => refusedCalls),
    refusals: refusals.toSorted(([, a], [, b]) => b - a),
  };
}

function sumOf(numbers: readonly (bigint | number)[]): number {
  return numbers.reduce<number>((sum, each) => sum + Number(each), 0);
}

/** The servers with their figures, those that are silent, and what a person should know of. */
export function figuresText(answer: ListFiguresResponse): string {
  return [serversText(answer), silentText(answer), refusalsText(answer), alarmsText(answer)]
    .filter((part) => part !== "")
    .join("\n");
}

function serversText({ nodes }: ListFiguresResponse): string {
  const rates = nodes.map(ratesOf);
  const rows = nodes.map((node, at) => [
    plain(node.instance),
    plain(node.zone),
    node.status === undefined ? "-" : nodeStateToJSON(node.status.state).replace("NODE_STATE_", ""),
    rateText(rates[at]?.issued),
    rateText(rates[at]?.calls),
    rateText(rates[at]?.refused),
    latencyText(node.latencyP50Micros),
    latencyText(node.latencyP99Micros),
    offsetText(node.storeOffsetMillis),
    node.status?.stateReason === "" ? "" : plain(node.status?.stateReason ?? ""),
  ]);
  const total = (of: (rate: NodeRates) => number): string =>
    rateText(rates.reduce((sum, rate) => sum + (rate === undefined ? 0 : of(rate)), 0));
  const sums = [total((rate) => rate.issued), total((rate) => rate.calls)];
  const all = ["all", "", "", ...sums, total((rate) => rate.refused), "", "", "", ""];
  const head = [
    "SERVER",
    "ZONE",
    "STATE",
    "IDS/S",
    "CALLS/S",
    "REFUSED/S",
    "P50",
    "P99",
    "CLOCK",
    "",
  ];
  return columns([head, ...rows, ...(nodes.length > 1 ? [all] : [])]);
}

/** Those of which nothing is known, and why; empty when there are none. */
function silentText({ silentNodes }: ListFiguresResponse): string {
  if (silentNodes.length === 0) return "";
  const rows = silentNodes.map(({ instance, zone, address, reason, detail }) => [
    plain(instance),
    plain(zone),
    plain(address),
    silenceWord(reason),
    plain(detail),
  ]);
  return columns([["SILENT", "ZONE", "ADDRESS", "WHY", ""], ...rows]);
}

export function silenceWord(reason: SilenceReason): string {
  return silenceReasonToJSON(reason).replace("SILENCE_REASON_", "");
}

function refusalsText({ nodes }: ListFiguresResponse): string {
  const sums = new Map<string, number>();
  for (const [reason, calls] of nodes.flatMap((node) => ratesOf(node)?.refusals ?? [])) {
    sums.set(reason, (sums.get(reason) ?? 0) + calls);
  }
  if (sums.size === 0) return "";
  const rows = [...sums].toSorted(([, a], [, b]) => b - a);
  return columns([
    ["REFUSED FOR", "CALLS/S"],
    ...rows.map(([reason, calls]) => [plain(reason), rateText(calls)]),
  ]);
}

/** Alarms of all servers that told theirs; empty when there are none. */
export function alarmsText({ nodes }: ListFiguresResponse): string {
  const rows = nodes.flatMap(({ instance, alarms }) =>
    alarms.map(({ alarm, severity, summary, startTime, lasting }) => [
      plain(alarm),
      severity === AlarmSeverity.CRITICAL ? "critical" : "warning",
      plain(instance),
      `${lasting ? "since" : "at"} ${timeText(startTime)}`,
      plain(summary),
    ]),
  );
  return rows.length === 0 ? "" : columns([["ALARM", "SEVERITY", "SERVER", "WHEN", ""], ...rows]);
}

/** A tag at each server. */
export function tagFiguresText(answer: ListFiguresResponse): string {
  const rows = answer.nodes.map(({ instance, zone, tagFigures }) => {
    const runs = tagFigures?.runs ?? [];
    const seconds = runs.reduce((sum, { issuedIds }) => sum + issuedIds.length, 0);
    const issued = sumOf(runs.flatMap(({ issuedIds }) => issuedIds));
    const isKnown = tagFigures?.known === true;
    return [
      plain(instance),
      plain(zone),
      seconds === 0 ? "-" : rateText(issued / seconds),
      isKnown ? String(tagFigures.readyIds) : "-",
      lastsText(runs.at(-1)?.remainingSeconds.at(-1)),
      isKnown ? String(tagFigures.waitingCalls) : "-",
      isKnown ? String(tagFigures.epoch) : "-",
    ];
  });
  const head = ["SERVER", "ZONE", "IDS/S", "IN MEMORY", "LASTS", "WAITING", "EPOCH"];
  return [columns([head, ...rows]), silentText(answer)].filter((part) => part !== "").join("\n");
}

export function rateText(rate: number | undefined): string {
  if (rate === undefined) return "-";
  return String(rate >= 100 ? Math.round(rate) : Number(rate.toPrecision(3)));
}

export function latencyText(micros: number | undefined): string {
  return micros === undefined ? "-" : `${Number((micros / 1_000).toPrecision(3))} ms`;
}

function offsetText(ms: number | undefined): string {
  if (ms === undefined) return "-";
  return `${ms < 0 ? "-" : "+"}${Number(Math.abs(ms).toPrecision(2))} ms`;
}

function lastsText(seconds: number | undefined): string {
  if (seconds === undefined || seconds < 0) return "-";
  if (seconds < 120) return `${Number(seconds.toPrecision(2))} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}
