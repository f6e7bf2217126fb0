// Random walks that hold a store against the one in memory, which has none of the code of the stores: the same calls of the port, of
// several servers at once, some of whose answers nobody hears, have to be answered alike.
import { setImmediate as turn, setTimeout as pause } from "node:timers/promises";
import type { CallAnswers, Grant, Raised, Store, StoreChanges } from "@idmint/core/server";
import fc from "fast-check";
import { assertDisjoint, DAY_MS, type StoreHarness } from "../store/suite.ts";
import type { Again } from "../workers/walk.ts";
import { type Drawn, rowOf, step, type Step } from "./steps.ts";
import { KEEP_DAYS, NAMES } from "./tag-calls.ts";
import { View } from "./view.ts";
import { type Call, callOf } from "./call.ts";
import { ask, type Heard, outcomeOf, Worlds } from "./world.ts";

export { walkRegistry } from "../workers/walk.ts";

/** How many steps a store that was put back is looked at before it is accepted. */
const REFUSED_STEPS = 5;
const HANDLES = 3;

const IS_LONG = process.env["IDMINT_LONG"] === "1";
/** How many times as many walks a long run makes. */
const LONGER = 40;
/** What walks of a store may take. */
export const WALK_TIMEOUT_MS: number = IS_LONG ? 3_600_000 : 180_000;

interface WalkOptions {
  readonly runs: number;
  readonly steps: number;
  readonly again?: Again;
}

/** Walks a store and one in memory side by side; fails at the first difference, with the steps that lead there. */
export async function walkStore(
  makeStore: () => Promise<StoreHarness>,
  { runs, steps, again }: WalkOptions,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: steps, size: "max" }),
      async (path) => {
        const harness = await makeStore();
        const walk = new Walk(harness);
        try {
          await walk.open();
          for (const next of path) await walk.take(next);
          await walk.compareAll();
        } finally {
          await walk.end();
        }
      },
    ),
    // Shrinking takes many times longer than a test may. Whoever repeats a failure has the time.
    {
      numRuns: IS_LONG ? runs * LONGER : runs,
      endOnFailure: again === undefined,
      ...again,
    },
  );
}

class Walk {
  readonly #harness: StoreHarness;
  readonly #worlds = new Worlds();
  readonly #view: View;
  #handles: Store[] = [];
  /** Puts the store back as it was, with what the walk knew then. */
  #kept: (() => Promise<void>) | undefined;
  /** Calls that nobody waits for any more. */
  readonly #left = new Set<Promise<unknown>>();
  #refusedFor = 0;

  constructor(harness: StoreHarness) {
    this.#harness = harness;
    this.#view = new View(() => this.#worlds.first);
  }

  async open(): Promise<void> {
    this.#handles = await Promise.all(Array.from({ length: HANDLES }, () => this.#harness.open()));
  }

  async take(next: Step): Promise<void> {
    switch (next.do) {
      case "ask":
        await this.#askTogether([next.call]);
        break;
      case "together":
        await this.#askTogether(next.calls);
        break;
      case "cut":
        await this.#cut(next.call, next.after);
        break;
      case "shift":
        await this.#shift(next.days);
        break;
      case "pass":
        await this.#harness.passWorkers(next.ms);
        this.#worlds.each((database) => database.passWorkers(next.ms));
        break;
      case "reopen":
        await this.#reopen(next.handle);
        break;
      case "keep":
        await this.#keep();
        break;
      case "putBack":
        await this.#kept?.();
    }
    await this.#acceptAfter(REFUSED_STEPS);
  }

  /** A store that was put back is refused, alike, until somebody accepts it. */
  async #acceptAfter(steps: number): Promise<void> {
    const { identity, acceptedIdentity } = this.#worlds.first;
    this.#refusedFor = identity === acceptedIdentity ? 0 : this.#refusedFor + 1;
    if (this.#refusedFor <= steps) return;
    await this.#hear(0, callOf("accept", 1_000n, undefined, this.#view.by()));
  }

  async #askTogether(drawn: readonly Drawn[]): Promise<void> {
    const calls = drawn.flatMap(({ name, handle, what }) => {
      const call = rowOf(name).call(this.#view, what, handle);
      return call === undefined || this.#isRefusedLedger(call) ? [] : [{ handle, call }];
    });
    const isAlone = calls.length === 1;
    const heard = await Promise.all(
      calls.map(({ handle, call }) => hearOf(this.#handle(handle), call, isAlone)),
    );
    if (heard.length > 0) await this.#worlds.hear(heard);
    for (const one of heard) this.#note(one);
  }

  async #hear(handle: number, call: Call): Promise<void> {
    const heard = await hearOf(this.#handle(handle), call, true);
    await this.#worlds.hear([heard]);
    this.#note(heard);
  }

  /** A call that is given up at some moment, or whose connection ends: it may be done by then, or be done later, or never. */
  async #cut(
    { name, handle, what }: Drawn,
    after: Extract<Step, { do: "cut" }>["after"],
  ): Promise<void> {
    const call = rowOf(name).call(this.#view, what, handle);
    if (call === undefined || this.#isRefusedLedger(call)) return;
    const line = after.ends === "line" ? await this.#harness.openCut?.() : undefined;
    const hearing = hearOf(line?.store ?? this.#handle(handle), call, false);
    await waitFor(after);
    line?.cut();
    const left = this.#leave(hearing, line?.store);
    this.#left.add(left);
    const nowMs = Date.now();
    const unheard = { call, outcome: { isUnknown: true }, beganMs: nowMs, endedMs: nowMs } as const;
    const heard = line === undefined ? await Promise.race([hearing, turn(unheard)]) : await hearing;
    await this.#worlds.hear([heard]);
    this.#note(heard);
  }

  async #leave(hearing: Promise<unknown>, store: Store | undefined): Promise<void> {
    await hearing;
    await store?.close();
  }

  #isRefusedLedger({ name }: Call): boolean {
    return this.#harness.keepsLedger === false && name.endsWith("Ledger");
  }

  #note({ call, outcome }: Heard): void {
    if (!("answer" in outcome)) return;
    const { answer } = outcome;
    if (call.name === "grant") for (const grant of answer as readonly Grant[]) this.#granted(grant);
    if (call.name === "raise") this.#raised(answer as CallAnswers["raise"]);
    if (call.name === "changes") this.#view.incarnation = (answer as StoreChanges).incarnation;
    if (call.name === "readTokens") {
      this.#view.listVersion = (answer as CallAnswers["readTokens"]).version;
    }
  }

  #granted(grant: Grant): void {
    if (grant.outcome !== "granted") return;
    const { tag, base, version, period } = grant;
    const to = base + BigInt(grant.count) - 1n;
    const { grants, issued } = this.#view;
    const day = period === undefined ? undefined : this.#view.dayOf(period.start);
    this.#view.grants = [{ tag, from: base, to, version }, ...grants];
    this.#view.issued = [...issued, { tag, day, from: base, to }];
  }

  #raised(answer: CallAnswers["raise"]): void {
    const { tag, before, floor } = answer as Raised;
    if (answer.outcome === "refused" || floor === before) return;
    const range = { tag, day: undefined, from: before + 1n, to: floor };
    this.#view.issued = [...this.#view.issued, range];
  }

  async #shift(days: number): Promise<void> {
    await this.#harness.shiftPeriods(days);
    const { forgotten } = this.#worlds;
    this.#worlds.forgotten = Math.max(forgotten, Date.now() - KEEP_DAYS * DAY_MS) + days * DAY_MS;
    this.#worlds.each((database) => database.shiftPeriods(days));
    // Ids of different days are different, and the walk tells days by their distance from today.
    this.#view.issued = this.#view.issued.map((one) =>
      one.day === undefined ? one : { ...one, day: one.day + days },
    );
  }

  async #reopen(at: number): Promise<void> {
    await this.#handle(at).close();
    this.#handles[at] = await this.#harness.open();
  }

  async #keep(): Promise<void> {
    if (this.#kept !== undefined) return;
    await Promise.all(this.#left);
    const putBack = await this.#harness.keep?.();
    if (putBack === undefined) return;
    const back = this.#worlds.keep();
    const { grants, issued } = this.#view;
    this.#kept = async () => {
      this.#kept = undefined;
      await Promise.all(this.#left);
      await Promise.all(this.#handles.map((store) => store.close()));
      await putBack();
      back();
      // What was granted since is of a history that is lost.
      Object.assign(this.#view, { grants, issued });
      await this.open();
    };
  }

  /** Every row, by every way of reading, from every server, and no id in two hands. */
  async compareAll(): Promise<void> {
    await Promise.all(this.#left);
    await this.#acceptAfter(0);
    for (const handle of this.#handles.keys()) {
      for (const call of READ) if (!this.#isRefusedLedger(call)) await this.#hear(handle, call);
    }
    for (const tag of NAMES) {
      const issued = this.#view.issued.filter((range) => range.tag === tag);
      for (const day of new Set(issued.map((range) => range.day))) {
        assertDisjoint(issued.filter((range) => range.day === day));
      }
    }
  }

  #handle(at: number): Store {
    return this.#handles[at] as Store;
  }

  async end(): Promise<void> {
    await Promise.allSettled(this.#left);
    await Promise.all(this.#handles.map((store) => store.close()));
    await this.#harness.remove();
  }
}

/** What shows all that a store has. */
const READ: readonly Call[] = [
  callOf("changes", { since: 0n, watched: [], limit: 100, nodes: true }),
  callOf("listTags", { afterName: "", prefix: "", showDeleted: true, limit: 100 }),
  callOf("getTags", NAMES),
  callOf("readTokens", undefined),
  ...(["change", "refusal"] as const).map((kind) =>
    callOf("listAudit", { kind, before: undefined, sinceMs: 0, limit: 10_000 }),
  ),
  ...NAMES.flatMap((tag) => [
    callOf("listPeriods", { tag, before: "", limit: 100 }),
    callOf("listWorkers", { tag, after: undefined, limit: 100 }),
    callOf("listLedger", { tag, after: undefined, limit: 10_000 }),
    callOf("exchangeMarks", [], [{ tag, generation: 0n }]),
  ]),
];

async function hearOf(store: Store, call: Call, isAlone: boolean): Promise<Heard> {
  const beganMs = Date.now();
  const outcome = await outcomeOf(() => ask(store, call));
  const isUnknown = "reason" in outcome && outcome.reason === "STORE_UNAVAILABLE" && !isAlone;
  const heard = isUnknown ? ({ isUnknown } as const) : outcome;
  return { call, outcome: heard, beganMs, endedMs: Date.now() };
}

async function waitFor({
  turns,
  ms,
}: {
  readonly turns: number;
  readonly ms: number;
}): Promise<void> {
  for (let each = 0; each < turns; each++) await turn();
  if (ms > 0) await pause(ms);
}
