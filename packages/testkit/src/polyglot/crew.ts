// Callers in several languages, one process each, and what they wrote down.
import { statSync } from "node:fs";
import path from "node:path";
import type { Child } from "../fleet/child.ts";
import { readRecords, RECORD_BYTES } from "../fleet/record.ts";
import { type Verdict, judge } from "../fleet/uniqueness.ts";
import { until } from "../fleet/until.ts";

/** The tags that every caller mints from, and from which of them it holds ids in memory. */
export const TAGS = ["accounts", "ledger", "clicks", "invoices", "streamed"] as const;
export const CACHED = ["accounts", "ledger"] as const;

export type PolyglotTag = (typeof TAGS)[number];

/** What a process of callers does, sent to it as JSON on its command line. It writes to FOLDER/NAME.TAG.ids. */
export interface PolyglotLoad {
  readonly address: string;
  readonly folder: string;
  /** Also the name under which it leases a worker id. */
  readonly name: string;
  /** How many ids it mints, over all tags. It goes on until SIGTERM, slowly. */
  readonly count: number;
  /** Ids that it takes into memory at a time. */
  readonly block: number;
  readonly token?: string;
  /** File of the authority; with it the connection has TLS. */
  readonly ca?: string;
}

/** For what is left to mint, a million ids in the long form. */
const END_MS = 600_000;

export interface Caller {
  readonly load: PolyglotLoad;
  readonly child: Child;
}

function fileOf({ load }: Caller, tag: PolyglotTag): string {
  return path.join(load.folder, `${load.name}.${tag}.ids`);
}

/** When it wrote down its newest id of a tag; 0: it has none. */
function newestAtMs(caller: Caller, tag: PolyglotTag): number {
  const file = fileOf(caller, tag);
  const records = Math.floor(statSync(file).size / RECORD_BYTES);
  if (records === 0) return 0;
  const [newest] = readRecords(file, (records - 1) * RECORD_BYTES);
  return newest?.atMs ?? 0;
}

/**
 * Waits until each caller has an id of each tag that a server gave it after this was called. What it had in memory then
 * is too old `maxAgeMs` later.
 */
export async function untilAllMint(
  callers: readonly Caller[],
  { maxAgeMs, withinMs }: { maxAgeMs: number; withinMs: number },
): Promise<void> {
  const begun = Date.now();
  const lagging = (): string[] =>
    callers.flatMap((caller) =>
      TAGS.flatMap((tag) => {
        const after = CACHED.some((each) => each === tag) ? begun + maxAgeMs : begun;
        return newestAtMs(caller, tag) > after ? [] : [`${caller.load.name} ${tag}`];
      }),
    );
  try {
    await until("all callers mint", () => lagging().length === 0, { withinMs, everyMs: 100 });
  } catch (cause) {
    const text = `do not mint: ${lagging().join(", ")}\n${callers.map(told).join("\n")}`;
    throw new Error(text, { cause });
  }
}

function told({ child }: Caller): string {
  return child.describe();
}

/**
 * Ids of a tag that were issued in a time although none may have been, because they are not above a bound. The first of
 * each stream is left out: its call may have begun before that time.
 */
export function staleIds(
  caller: Caller,
  tag: PolyglotTag,
  { fromMs, untilMs = Infinity, bound }: { fromMs: number; untilMs?: number; bound: bigint },
): readonly bigint[] {
  const begun = new Set<number>();
  const stale: bigint[] = [];
  for (const { base, atMs, stream } of readRecords(fileOf(caller, tag))) {
    if (atMs <= fromMs || atMs >= untilMs) continue;
    if (begun.has(stream) && base <= bound) stale.push(base);
    begun.add(stream);
  }
  return stale;
}

/** Tells a caller to stop when it has minted what it shall, and answers its refusals by reason. */
export async function stopCaller(caller: Caller): Promise<Readonly<Record<string, number>>> {
  const { child } = caller;
  child.signal("SIGTERM");
  const { code } = await child.waitForEnd(END_MS);
  const line = child.stdout.split("\n").find((each) => each.startsWith("report "));
  if (code !== 0 || line === undefined) throw new Error(child.describe());
  return (JSON.parse(line.slice("report ".length)) as { refusals: Record<string, number> })
    .refusals;
}

/** What all callers together received of a tag. */
export function verdictOn(callers: readonly Caller[], tag: PolyglotTag): Verdict {
  return judge(callers.map((caller) => fileOf(caller, tag)));
}
