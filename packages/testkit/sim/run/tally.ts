import { pairOf } from "../check/meetings.ts";
import { FAULT_KINDS } from "../fault-kinds.ts";
import type { Outcome } from "../history.ts";

/** What is counted of a history, as one thread tells it to another. */
export type Counted = Pick<
  Outcome,
  | "hash"
  | "calls"
  | "ids"
  | "faults"
  | "servers"
  | "simulatedMs"
  | "excluded"
  | "judged"
  | "methods"
  | "met"
> & { readonly isBad: boolean };

export function countedOf({ violations, ...all }: Outcome): Counted {
  const { hash, calls, ids, faults, servers, simulatedMs, excluded, judged, methods, met } = all;
  const isBad = violations.length > 0;
  return { hash, calls, ids, faults, servers, simulatedMs, excluded, judged, methods, met, isBad };
}

/** A run whose histories are smaller in the middle shows nothing: they are toys. */
const LEAST = { calls: 300, faults: 5, servers: 3, "simulated seconds": 60 } as const;
/** So many histories have a middle that says something. */
const LEAST_HISTORIES = 200;
/** A long run, and how often it has each fault meet each kind of tag at least. */
const LONG_HISTORIES = 20_000;
const LEAST_MET = 100;

/** What a run of many histories counted, in whatever order they came. */
export class Tally {
  histories = 0;
  bad = 0;
  calls = 0;
  ids = 0;
  faults = 0;
  #simulatedMs = 0;
  #excluded = 0;
  #judged = 0;
  #hash = 0n;
  readonly #all: Readonly<Record<keyof typeof LEAST, number[]>> = {
    calls: [],
    faults: [],
    servers: [],
    "simulated seconds": [],
  };
  readonly #methods = new Map<string, number>();
  readonly #met = new Map<string, number>();

  /** Undefined: a history that did not end. */
  add(one: Counted | undefined): void {
    this.histories++;
    if (one?.isBad !== false) this.bad++;
    if (one === undefined) return;
    this.calls += one.calls;
    this.ids += one.ids;
    this.faults += one.faults;
    this.#simulatedMs += one.simulatedMs;
    if (one.excluded > 0) this.#excluded++;
    this.#judged += one.judged;
    this.#hash ^= BigInt(`0x${one.hash}`);
    this.#all.calls.push(one.calls);
    this.#all.faults.push(one.faults);
    this.#all.servers.push(one.servers);
    this.#all["simulated seconds"].push(Math.round(one.simulatedMs / 1_000));
    for (const [path, count] of one.methods) addTo(this.#methods, path, count);
    for (const [pair, count] of one.met) addTo(this.#met, pair, count);
  }

  /** What makes a run without violations one that shows nothing all the same. */
  get wanting(): readonly string[] {
    const wanting: string[] = [];
    if (this.histories >= LEAST_HISTORIES) {
      for (const [name, middle] of this.#medians()) {
        if (middle < LEAST[name]) wanting.push(`toys: in the middle ${name} ${middle}`);
      }
    }
    if (this.histories < LONG_HISTORIES) return wanting;
    const [pair, count] = this.#leastMet();
    if (count < LEAST_MET) wanting.push(`only ${count} times: ${pair}`);
    return wanting;
  }

  lines(seconds: number): readonly string[] {
    const unanswered = [...this.#methods].filter(([, count]) => count === 0).map(([path]) => path);
    const [pair, count] = this.#leastMet();
    const rate = (of: number): string => (of / seconds).toFixed(1);
    return [
      `medians: ${this.#medians()
        .map(([name, middle]) => `${name} ${middle}`)
        .join(", ")}`,
      ...(unanswered.length === 0
        ? []
        : [`methods that no history had an answer of: ${unanswered.join(" ")}`]),
      `a fault that a kind of tag met least: ${count} times, ${pair}`,
      `in ${seconds.toFixed(0)} s: ${rate(this.histories)} histories/s, ${rate(this.ids)} ids/s, ${rate(this.faults)} faults/s`,
      ...this.wanting,
      [
        `histories ${this.histories}`,
        `violations ${this.bad}`,
        `calls ${this.calls}`,
        `ids ${this.ids}`,
        `faults ${this.faults}`,
        `simulated seconds ${Math.round(this.#simulatedMs / 1_000)}`,
        `excluded histories ${this.#excluded}`,
        `answers held against changes ${this.#judged}`,
        `hash ${this.#hash.toString(16).padStart(16, "0")}`,
      ].join(", "),
    ];
  }

  #medians(): readonly (readonly [keyof typeof LEAST, number])[] {
    const names = ["calls", "faults", "servers", "simulated seconds"] as const;
    return names.map((name) => {
      const all = this.#all[name].toSorted((a, b) => a - b);
      return [name, all[all.length >> 1] ?? 0];
    });
  }

  #leastMet(): readonly [pair: string, count: number] {
    const kinds = [...new Set([...this.#met.keys()].map((pair) => pair.split(" × ")[1] ?? ""))];
    const pairs = FAULT_KINDS.flatMap((fault) => kinds.map((kind) => pairOf(fault, kind)));
    const counted = pairs.map((pair) => [pair, this.#met.get(pair) ?? 0] as const);
    return counted.toSorted(([, a], [, b]) => a - b)[0] ?? ["no call", 0];
  }
}

function addTo(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}
