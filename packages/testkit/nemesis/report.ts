// What a run prints, and whether it is as promised.
import type { Window } from "./journal.ts";
import { RPC_DEADLINE_MS } from "./sites/crew.ts";
import { CLASSES, type Outage, type OutageClass } from "./judge/availability.ts";
import type { SiteVerdict, Violations } from "./judge/judge.ts";

export interface Run {
  readonly seed: string;
  readonly minutes: number;
  readonly windows: readonly Window[];
  readonly verdicts: readonly SiteVerdict[];
}

/** What is promised of a run: bars of a machine that has nothing else to do, and wide ones where it has. */
export interface Bars {
  readonly share: number;
  readonly outageMs: Readonly<Partial<Record<OutageClass, number>>>;
}

const KINDS = ["repeats", "order", "aboveFloor", "ledger", "refusals"] as const;

/** Of docs/internals/nemesis.md. */
export const BARS: Bars = {
  share: 0.999,
  outageMs: {
    kill: 2_000,
    freeze: RPC_DEADLINE_MS + 1_000,
    "cut or slow": RPC_DEADLINE_MS + 1_000,
  },
};

/** Of a short run beside other work: what takes longer than this hangs. */
export const WIDE_BARS: Bars = {
  share: 0.98,
  outageMs: {
    kill: 15_000,
    freeze: 15_000,
    "cut or slow": 15_000,
    clock: 15_000,
    other: 15_000,
  },
};

function shareOf(verdicts: readonly SiteVerdict[]): number {
  const answered = sum(verdicts.map(({ availability }) => availability.answered));
  const refused = sum(verdicts.map(({ availability }) => availability.refused));
  return answered / Math.max(1, answered + refused);
}

/** The longest of all sites, by class. */
function outagesOf(verdicts: readonly SiteVerdict[]): ReadonlyMap<OutageClass, Outage> {
  const all = new Map<OutageClass, Outage>();
  for (const { availability } of verdicts) {
    for (const [name, outage] of availability.longest) {
      if (outage.ms > (all.get(name)?.ms ?? 0)) all.set(name, outage);
    }
  }
  return all;
}

/** What is missed, in words. */
export function missed(verdicts: readonly SiteVerdict[], bars: Bars): readonly string[] {
  const lines: string[] = [];
  const share = shareOf(verdicts);
  if (share < bars.share) {
    lines.push(
      `${percent(share)} of the SDKs' calls were answered, less than ${percent(bars.share)}`,
    );
    for (const { availability, site } of verdicts) {
      for (const { row } of availability.samples.slice(0, 5))
        lines.push(`  ${site}: ${JSON.stringify(row)}`);
    }
  }
  for (const [name, outage] of outagesOf(verdicts)) {
    const bar = bars.outageMs[name] ?? Infinity;
    if (outage.ms > bar)
      lines.push(`an outage (${name}) above ${bar} ms: ${JSON.stringify(outage)}`);
  }
  return lines;
}

export function violationsOf(verdicts: readonly SiteVerdict[], kind: keyof Violations): string[] {
  return verdicts.flatMap(({ site, violations }) =>
    violations[kind].map((line) => `${site}: ${line}`),
  );
}

export function isClean(verdicts: readonly SiteVerdict[]): boolean {
  return KINDS.every((kind) => violationsOf(verdicts, kind).length === 0);
}

export function print({ seed, minutes, windows, verdicts }: Run): void {
  const faults = windows.filter(({ of }) => of === "fault");
  const counts = new Map<string, number>();
  for (const { kind } of faults) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const byKind = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1));
  console.log(`faults: ${byKind.map(([kind, count]) => `${kind} ${count}`).join(", ")}`);
  for (const { site, calls, ids, availability, refusals, from, to } of verdicts) {
    const { answered, refused, excluded } = availability;
    const rate = Math.round(calls / ((to - from) / 1e6));
    console.log(
      `${site}: ${calls} calls, ${rate}/s, ${ids} ids; of the SDKs ${answered} answered, ${refused} refused, ${excluded} while nobody could answer`,
    );
    const reasons = [...refusals].map(([name, count]) => `${name} ${count}`);
    if (reasons.length > 0) console.log(`  refusals: ${reasons.join(", ")}`);
  }
  const outages = outagesOf(verdicts);
  for (const name of CLASSES) {
    const longest = outages.get(name);
    if (longest === undefined) continue;
    const { ms, who, tag, during } = longest;
    console.log(
      `longest outage, ${name}: ${Math.round(ms)} ms (${tag}, ${who}; ${during.join("; ")})`,
    );
  }
  for (const kind of KINDS) {
    for (const line of violationsOf(verdicts, kind)) console.log(`${kind}: ${line}`);
  }
  const calls = sum(verdicts.map((its) => its.calls));
  const ids = verdicts.reduce((all, its) => all + its.ids, 0n);
  const seconds = Math.max(...verdicts.map(({ from, to }) => (to - from) / 1e6));
  const of = (kind: keyof Violations): number => violationsOf(verdicts, kind).length;
  console.log(
    `nemesis seed ${seed}, minutes ${minutes}, faults ${faults.length}, calls ${calls}, calls/s ${Math.round(calls / seconds)}, ` +
      `ids ${ids}, repeats ${of("repeats")}, order violations ${of("order")}, above floors ${of("aboveFloor")}, ` +
      `ledger faults ${of("ledger")}, unexpected refusals ${of("refusals")}, answered ${percent(shareOf(verdicts))}`,
  );
}

/** What docs/proof.md tells of a run. */
export function countedOf(
  windows: readonly Window[],
  verdicts: readonly SiteVerdict[],
): Readonly<Record<string, number>> {
  return {
    faults: windows.filter(({ of }) => of === "fault").length,
    calls: sum(verdicts.map((its) => its.calls)),
    ids: Number(verdicts.reduce((all, its) => all + its.ids, 0n)),
    repeats: violationsOf(verdicts, "repeats").length,
    "order violations": violationsOf(verdicts, "order").length,
    "other violations": (["aboveFloor", "ledger", "refusals"] as const).flatMap((kind) =>
      violationsOf(verdicts, kind),
    ).length,
  };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)} %`;
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
