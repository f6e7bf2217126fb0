// Which calls of SDKs were answered, and how long programs had to do without.
import path from "node:path";
import type { Window } from "../journal.ts";
import type { SiteTag } from "../tags.ts";
import type { AnyRow, Placed } from "./rows.ts";

/** The longest time in which a program asked for ids of a tag and got none. */
export interface Outage {
  readonly ms: number;
  readonly who: string;
  readonly tag: string;
  readonly from: number;
  readonly to: number;
  /** What befell the site meanwhile. */
  readonly during: readonly string[];
}

/**
 * What an outage is counted under: the first of these that befell its site meanwhile. Those in brackets are no outages of servers: the
 * store was away, or the program itself could not run.
 */
export const CLASSES = [
  "(store)",
  "(program)",
  "cut or slow",
  "freeze",
  "kill",
  "clock",
  "other",
] as const;
export type OutageClass = (typeof CLASSES)[number];

const CLASS_OF_KIND: Readonly<Record<string, OutageClass>> = {
  "cut-callers": "cut or slow",
  "slow-callers": "cut or slow",
  "cut-store": "cut or slow",
  "slow-store": "cut or slow",
  "freeze-server": "freeze",
  "kill-server": "kill",
  "stop-server": "kill",
  "rolling-restart": "kill",
  "step-clock": "clock",
};

/** A stream goes on: what follows a fault so soon is of that fault. */
const AFTER_US = 2_000_000;
const SHOWN_MS = 500;
const RECENT_US = 1_000_000;
/** No outage is longer, or it is shown as if nothing had befallen the site before. */
const LONGEST_US = 300_000_000;

export class Availability {
  answered = 0;
  refused = 0;
  /** Calls while no server could be reached, or while the store was away that the tag needs. */
  excluded = 0;
  readonly longest = new Map<OutageClass, Outage>();
  readonly samples: Placed[] = [];
  readonly #tags: ReadonlyMap<string, SiteTag>;
  readonly #windows: readonly Window[];
  /** Those that a call of about now may have met. */
  #recent: readonly Window[] = [];
  #recentAt = -Infinity;
  readonly #servers: number;
  readonly #unanswered = new Map<string, number>();
  /** When the process of a history did not run. */
  readonly #stalls = new Map<string, { from: number; to: number }[]>();

  constructor(tags: readonly SiteTag[], windows: readonly Window[], servers: number) {
    this.#tags = new Map(tags.map((its) => [its.tag.name, its]));
    this.#windows = windows;
    this.#servers = servers;
  }

  /** An answer or a refusal of an SDK. To be told them in the order in which they came. */
  add(placed: Placed): void {
    const { history, row } = placed;
    if (row.to > this.#recentAt + RECENT_US) this.#look(row.to);
    const refusal = "refused" in row ? row.refused : undefined;
    if (refusal === "STALL") {
      const { from, to } = row;
      this.#stalls.set(history, [...(this.#stalls.get(history) ?? []), { from, to }].slice(-50));
      return;
    }
    const tag = this.#tags.get(row.tag);
    // Calls that were under way when the program was told to end.
    if (tag === undefined || tag.isDisturbed || refusal?.endsWith("CLIENT_CLOSED") === true) return;
    const isAway = this.#isAway(row, tag);
    if (isAway) this.excluded++;
    else if (refusal === undefined) this.answered++;
    else {
      this.refused++;
      if (this.samples.length < 20) this.samples.push(placed);
    }
    const stream = `${history} ${row.who} ${row.tag}`;
    if (refusal !== undefined) {
      if (!this.#unanswered.has(stream)) this.#unanswered.set(stream, row.from);
      return;
    }
    const from = this.#unanswered.get(stream) ?? row.from;
    this.#unanswered.delete(stream);
    this.#outage({ history, row, from }, tag);
  }

  #look(at: number): void {
    this.#recentAt = at;
    const [from, to] = [at - LONGEST_US, at + RECENT_US];
    this.#recent = this.#windows.filter((its) => its.from <= to && its.to >= from);
  }

  /** Streams that ended without an answer: when the run did, or their process was killed, which asked for nothing after that. */
  end(atUs: number): void {
    for (const [stream, from] of this.#unanswered) {
      const [history = "", who = "", name = ""] = stream.split(" ");
      const tag = this.#tags.get(name);
      const to = killedAt(history, this.#windows) ?? atUs;
      this.#look(to);
      const row: AnyRow = { tag: name, who, time: "", from, to, refused: "", message: "" };
      if (tag !== undefined) this.#outage({ history, row, from }, tag);
    }
  }

  /** Whether nobody could answer: no server, or not for want of the store. Clocks of snowflakes may be away too. */
  #isAway({ from, to }: Pick<AnyRow, "from" | "to">, { tag, survives, needs }: SiteTag): boolean {
    const meanwhile = overlapping(this.#recent, from, to);
    const down = new Set(meanwhile.filter((its) => its.of === "server").map((its) => its.target));
    if (down.size >= this.#servers) return true;
    return meanwhile.some(
      ({ of, target }) =>
        of === "back" ||
        (of === "operator" && target === tag.name) ||
        (of === "store" && !survives && (target === "" || target === needs)),
    );
  }

  #outage(
    { history, row, from }: { history: string; row: AnyRow; from: number },
    tag: SiteTag,
  ): void {
    const { to, who } = row;
    const stalls = (this.#stalls.get(history) ?? []).filter(
      (its) => its.to > from && its.from < to,
    );
    const stalled = stalls.reduce((sum, its) => sum + its.to - its.from, 0);
    const ms = (to - from - stalled) / 1_000;
    if (ms < SHOWN_MS) return;
    const meanwhile = overlapping(this.#recent, from - AFTER_US, to);
    const name = this.#isAway({ from, to }, tag) ? "(store)" : classOf(meanwhile, history);
    if (ms <= (this.longest.get(name)?.ms ?? 0)) return;
    const during = meanwhile.map(({ of, kind, target }) => `${of} ${kind} ${target}`.trim());
    this.longest.set(name, { ms, who, tag: row.tag, from, to, during });
  }
}

/** PROGRAM.N is the history of its process that the N-th kill ended; undefined: that one runs on. */
function killedAt(history: string, windows: readonly Window[]): number | undefined {
  const [program = "", count = ""] = path.basename(history).split(".");
  const kills = windows.filter(
    ({ kind, of, target }) => kind === "kill-caller" && of === "caller" && target === program,
  );
  return kills[Number(count) - 1]?.from;
}

function classOf(windows: readonly Window[], history: string): OutageClass {
  const found = new Set(
    windows.map(({ of, kind, target }) => {
      if (of === "store" || of === "back") return "(store)";
      if (of === "caller") return history.includes(target) ? "(program)" : "other";
      return CLASS_OF_KIND[kind] ?? "other";
    }),
  );
  return CLASSES.find((name) => found.has(name)) ?? "other";
}

function overlapping(windows: readonly Window[], from: number, to: number): readonly Window[] {
  return windows.filter((its) => its.from <= to && its.to >= from);
}
