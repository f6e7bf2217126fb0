import type { ResponseOf } from "../../api/json.ts";
import type { ChartData, ChartLine } from "../../parts/chart-data.ts";

export type Figures = ResponseOf<"NodeService", "listFigures">;
export type NodeFigures = Figures["nodes"][number];
type Alarm = NodeFigures["alarms"][number];
type Run = NodeFigures["runs"][number];

/** A list of a run: one figure for each second. */
type Column = (run: Run) => readonly (number | string)[] | undefined;

/** A server may answer a little earlier than others; one that lags by more does not hold the chart back. */
const MOST_LAG_SECONDS = 3;
/** Reasons with a line of their own; the others are one line together. */
const MOST_REASONS = 5;
/** "Now" is the mean of so many seconds: one alone jumps. */
const NOW_SECONDS = 5;

/** What lines are called that have no name of their own. */
interface Labels {
  readonly issued: string;
  /** Of refusals, those with rare reasons. */
  readonly others: string;
}

/** What all servers counted together, on one line of seconds. */
export interface Fleet {
  readonly issued: ChartData;
  readonly refusals: ChartData;
  readonly latency: ChartData;
  readonly calls: readonly (number | null)[];
  readonly refused: readonly (number | null)[];
}

/**
 * Puts the figures of all servers on one line of seconds, by the clock of the server that was asked: each told by how much its
 * own clock is ahead of that one.
 */
export function fleetOf({ nodes, seconds }: Figures, labels: Labels): Fleet {
  const line = linesOf(nodes, seconds);
  const sum = (column: Column): readonly (number | null)[] => combined(nodes, line, column, add);
  const worst = (column: Column): readonly (number | null)[] =>
    combined(nodes, line, column, Math.max);
  return {
    issued: {
      seconds: line,
      lines: [{ label: labels.issued, values: sum((run) => run.issuedIds) }],
    },
    refusals: { seconds: line, lines: refusalLines(nodes, line, labels.others) },
    latency: {
      seconds: line,
      lines: [
        { label: "p99", values: worst((run) => run.latencyP99Micros) },
        { label: "p50", values: worst((run) => run.latencyP50Micros) },
      ],
    },
    calls: sum((run) => run.calls),
    refused: sum((run) => run.refusedCalls),
  };
}

function add(a: number, b: number): number {
  return a + b;
}

/** The seconds that a chart has: up to the newest that nearly all servers have told. */
function linesOf(nodes: readonly NodeFigures[], seconds: number): readonly number[] {
  const ends = nodes.flatMap((node) => {
    const run = node.runs.at(-1);
    return run === undefined ? [] : [firstOf(run, node) + run.calls.length - 1];
  });
  if (ends.length === 0) return [];
  const newest = Math.max(...ends);
  const end = Math.min(...ends.filter((one) => one >= newest - MOST_LAG_SECONDS));
  return Array.from({ length: seconds }, (_, at) => end - seconds + 1 + at);
}

/** A run's first second, by the clock of the server that was asked. */
function firstOf(run: Run, { aheadMillis }: NodeFigures): number {
  return Math.round((Date.parse(run.startTime ?? "") - aheadMillis) / 1_000);
}

/** One line of all servers. A second that no server has is null; what one of them has not is left out of the second. */
function combined(
  nodes: readonly NodeFigures[],
  line: readonly number[],
  column: Column,
  join: (a: number, b: number) => number,
): readonly (number | null)[] {
  const values = Array<number | null>(line.length).fill(null);
  const [start = 0] = line;
  for (const node of nodes) {
    for (const run of node.runs) {
      const first = firstOf(run, node) - start;
      for (const [at, figure] of (column(run) ?? []).entries()) {
        const value = Number(figure);
        const place = first + at;
        // -1: there was nothing to measure in that second.
        if (value < 0 || place < 0 || place >= values.length) continue;
        const before = values[place] ?? null;
        values[place] = before === null ? value : join(before, value);
      }
    }
  }
  return values;
}

function callsOf(reason: string): Column {
  return (run) =>
    run.refusals.find((one) => one.reason === reason)?.calls ?? run.calls.map(() => 0);
}

function refusalLines(
  nodes: readonly NodeFigures[],
  line: readonly number[],
  otherReasons: string,
): readonly ChartLine[] {
  const reasons = refusalsOf(nodes);
  const shown = reasons.slice(0, MOST_REASONS).map(({ reason }) => reason);
  const lines = shown.map((label) => ({
    label,
    values: combined(nodes, line, callsOf(label), add),
  }));
  if (reasons.length <= MOST_REASONS) return lines;
  const others: Column = (run) => {
    const rest = run.refusals.filter(({ reason }) => !shown.includes(reason));
    return run.calls.map((_, at) => rest.reduce((sum, { calls }) => sum + (calls[at] ?? 0), 0));
  };
  return [...lines, { label: otherReasons, values: combined(nodes, line, others, add) }];
}

/** Why calls were refused in all of the time, the most frequent reason first. */
export function refusalsOf(
  nodes: readonly NodeFigures[],
): readonly { readonly reason: string; readonly calls: number }[] {
  const totals = new Map<string, number>();
  for (const { reason, calls } of nodes.flatMap(({ runs }) =>
    runs.flatMap((run) => run.refusals),
  )) {
    totals.set(reason, (totals.get(reason) ?? 0) + calls.reduce(add, 0));
  }
  return [...totals]
    .map(([reason, calls]) => ({ reason, calls }))
    .filter(({ calls }) => calls > 0)
    .toSorted((a, b) => b.calls - a.calls || (a.reason < b.reason ? -1 : 1));
}

/** The mean of the newest seconds; undefined when none of them is known. */
export function nowOf(values: readonly (number | null)[]): number | undefined {
  const newest = values.slice(-NOW_SECONDS).filter((value) => value !== null);
  return newest.length === 0 ? undefined : newest.reduce(add, 0) / newest.length;
}

/** What one server issued in the newest seconds, for its row. */
export function rateOf({ runs }: NodeFigures): number | undefined {
  const issued = runs.at(-1)?.issuedIds.map(Number) ?? [];
  return nowOf(issued);
}

/** An alarm, and the servers that tell it. */
export interface FleetAlarm {
  readonly alarm: Alarm;
  readonly instances: readonly string[];
}

/** Alarms of all servers, the same of several as one; critical and lasting ones first, then the newest. */
export function alarmsOf(nodes: readonly NodeFigures[]): readonly FleetAlarm[] {
  const all = nodes.flatMap(({ alarms, instance }) => alarms.map((alarm) => ({ alarm, instance })));
  const same = Map.groupBy(
    all,
    ({ alarm }) => `${alarm.alarm}\n${alarm.summary}\n${alarm.lasting}`,
  );
  return [...same.values()]
    .flatMap((its) => {
      const [first] = its.toSorted((a, b) => timeOf(b.alarm) - timeOf(a.alarm));
      const instances = [...new Set(its.map(({ instance }) => instance))].toSorted();
      return first === undefined ? [] : [{ alarm: first.alarm, instances }];
    })
    .toSorted((a, b) => rankOf(a.alarm) - rankOf(b.alarm) || timeOf(b.alarm) - timeOf(a.alarm));
}

function rankOf({ severity, lasting }: Alarm): number {
  return (severity === "ALARM_SEVERITY_CRITICAL" ? 0 : 1) + (lasting ? 0 : 2);
}

function timeOf({ startTime }: Alarm): number {
  return Date.parse(startTime ?? "") || 0;
}

type Status = NonNullable<NodeFigures["status"]>;
type Store = NonNullable<Status["store"]>;

const STORE_RANK = [
  "STORE_STATE_FENCED",
  "STORE_STATE_UNREACHABLE",
  "STORE_STATE_UNSPECIFIED",
  "STORE_STATE_GRANTING",
];

/** The store as the server sees it that has the most trouble with it. */
export function worstStore(nodes: readonly NodeFigures[]): Store | undefined {
  const [worst] = nodes
    .flatMap(({ status }) => status?.store ?? [])
    .toSorted((a, b) => STORE_RANK.indexOf(a.state) - STORE_RANK.indexOf(b.state));
  return worst;
}

/** Ticket databases by name, each as the server sees it that has the most trouble with it. */
export function ticketsOf(nodes: readonly NodeFigures[]): Status["ticketDatabases"] {
  const all = nodes.flatMap(({ status }) => status?.ticketDatabases ?? []);
  const byName = Map.groupBy(all, ({ name }) => name);
  return [...byName.values()]
    .flatMap((its) =>
      its.toSorted((a, b) => STORE_RANK.indexOf(a.state) - STORE_RANK.indexOf(b.state)).slice(0, 1),
    )
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Since when issuing is stopped on all servers; undefined: it is not. */
export function stoppedSince(nodes: readonly NodeFigures[]): string | undefined {
  return nodes
    .map(({ status }) => status?.stoppedTime ?? undefined)
    .find((time) => time !== undefined);
}

/** The longest that the event loop of a server kept others waiting lately, in microseconds. */
export function loopOf({ runs }: NodeFigures): number | undefined {
  const delays = runs.at(-1)?.loopDelayMicros.slice(-NOW_SECONDS) ?? [];
  return delays.length === 0 ? undefined : Math.max(...delays);
}
