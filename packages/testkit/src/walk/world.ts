// What a store may be like by now, as far as its answers tell: stores in memory, one for each possibility.
import { isDeepStrictEqual } from "node:util";
import { IdmintError } from "@idmint/core";
import {
  type Store,
  STORE_CALLS,
  type StoreCall,
  type StoreCalls,
  type StoreChanges,
} from "@idmint/core/server";
import { MemoryDatabase } from "../memory/database.ts";
import { fenced } from "../memory/rows.ts";
import { MemoryStore } from "../memory/store.ts";
import { type Call, callOf } from "./call.ts";
import { alike, type Names, toldOf } from "./told.ts";

/** What was heard of a call: its answer, why it was refused, or nothing, which leaves open whether it was done. */
export type Outcome =
  | { readonly answer: unknown }
  | { readonly reason: string }
  | { readonly isUnknown: true };

export interface Heard {
  readonly call: Call;
  readonly outcome: Outcome;
  /** By the clock of this process, which all stores of a test have too. */
  readonly beganMs: number;
  readonly endedMs: number;
}

/** Calls whose outcome is not known, and which may still be done. Who waited for the one before these has seen what became of it. */
const MAX_LATE = 3;
/** More possibilities than this are a fault of the test. */
const MAX_WORLDS = 2_000;

interface World {
  readonly database: MemoryDatabase;
  readonly late: readonly Call[];
  readonly names: Names;
}

export async function outcomeOf(work: () => Promise<unknown>): Promise<Outcome> {
  try {
    return { answer: await work() };
  } catch (error) {
    if (error instanceof IdmintError) return { reason: error.reason };
    if (error instanceof RangeError) return { reason: "RangeError" };
    throw error;
  }
}

export function ask(store: StoreCalls | Store, { name, args }: Call): Promise<unknown> {
  return (store[name] as (...args: readonly unknown[]) => Promise<unknown>)(...args);
}

/**
 * The stores that one may be by now.
 *
 * INVARIANT: if the store does what the port promises, one of these is in its state. A call whose outcome is not known leaves two,
 * calls that were under way together one for each order, and each answer those which would have answered so.
 */
export class Worlds {
  #worlds: readonly World[];
  readonly #clock = { nowMs: Date.now() };
  #tokens = 0;
  /** See toldOf. */
  forgotten = 0;

  constructor() {
    const database = new MemoryDatabase({
      wallClock: () => this.#clock.nowMs,
      randomToken: () => `t${this.#tokens++}`,
    });
    this.#worlds = [{ database, late: [], names: new Map() }];
  }

  /** One of them, to make calls of. */
  get first(): MemoryDatabase {
    const [world] = this.#worlds;
    if (world === undefined) throw new Error("no world");
    return world.database;
  }

  /** Does something to all of them that is no call. */
  each(change: (database: MemoryDatabase) => void): void {
    this.#clock.nowMs = Date.now();
    // What differs in late calls alone is one.
    for (const database of new Set(this.#worlds.map((world) => world.database))) change(database);
  }

  /** The moment, to be put back later into whatever there is by then. What was late then may still be done. */
  keep(): () => void {
    const kept = this.#worlds.map(({ database, names }) => ({ names, rows: database.snapshot() }));
    return () => {
      const [world] = this.#worlds as readonly [World];
      this.#worlds = kept.map(({ names, rows }) => {
        const database = world.database.clone();
        database.restore(rows);
        database.move();
        return { database, names, late: world.late };
      });
    };
  }

  /** Takes what was heard of calls that were under way together. Throws where no order explains it. */
  async hear(heard: readonly Heard[]): Promise<void> {
    const found = new Found();
    const moments = momentsOf(heard);
    for (const nowMs of moments) {
      for (const world of this.#worlds) await this.#visit(world, heard, nowMs, found);
      if (found.worlds.length > 0) break;
    }
    if (found.worlds.length === 0) throw new Error(await this.#complaint(heard));
    if (heard.some(({ call }) => call.name === "accept")) found.mixEpochs(moments);
    if (found.worlds.length > MAX_WORLDS) throw new Error(`${found.worlds.length} possibilities`);
    this.#worlds = found.worlds;
  }

  async #visit(world: World, left: readonly Heard[], nowMs: number, found: Found): Promise<void> {
    if (!found.isNew(world, left)) return;
    if (left.length === 0) return;
    for (const call of world.late) {
      this.#clock.nowMs = nowMs;
      const late = world.late.filter((one) => one !== call);
      const { next } = await this.#run(world, call);
      await this.#visit({ ...next, late }, left, nowMs, found);
    }
    for (const one of left) {
      const rest = left.filter((other) => other !== one);
      const { call, outcome } = one;
      if ("isUnknown" in outcome) {
        await this.#visit(later(world, call), rest, nowMs, found);
        continue;
      }
      this.#clock.nowMs = timeOf(outcome) ?? nowMs;
      if (isUndone(world, one)) {
        await this.#visit(world, rest, nowMs, found);
        continue;
      }
      const { next, outcome: its } = await this.#run(world, carriedOut(world, one));
      const names = this.#agreed(call, outcome, its, world);
      if (names !== undefined) await this.#visit({ ...next, names }, rest, nowMs, found);
    }
  }

  async #run(world: World, call: Call): Promise<{ next: World; outcome: Outcome }> {
    const database = world.database.clone();
    const store = new MemoryStore({ database, maxBatch: 1_000 });
    const outcome = await outcomeOf(() => ask(store, inNamesOf(world, call)));
    return { next: { ...world, database }, outcome };
  }

  /** The names, if the two outcomes are alike. */
  #agreed(call: Call, real: Outcome, model: Outcome, { names }: World): Names | undefined {
    if (!("answer" in real && "answer" in model)) {
      return isDeepStrictEqual(real, model) ? names : undefined;
    }
    const [one, other] = [real, model].map(({ answer }) => toldOf(call, answer, this.forgotten));
    return alike(one, other, names);
  }

  async #complaint(heard: readonly Heard[]): Promise<string> {
    const lines = [`${this.#worlds.length} possible, none explains:`];
    for (const { call, outcome } of heard) {
      lines.push(`asked ${call.name} ${show(call.args)}`, ` heard ${show(told(call, outcome))}`);
      for (const world of this.#worlds.slice(0, 3)) {
        this.#clock.nowMs = heard[0]?.beganMs ?? 0;
        const { outcome: its } = await this.#run(world, call);
        lines.push(` model ${show(told(call, its))}`, `  late ${show(world.late)}`);
      }
    }
    return lines.join("\n");
  }
}

/** When it may have been, a second at a time. */
function momentsOf(heard: readonly Heard[]): readonly number[] {
  const from = Math.min(...heard.map(({ beganMs }) => beganMs));
  const to = Math.max(...heard.map(({ endedMs }) => endedMs));
  const moments = [from];
  for (let at = (Math.floor(from / 1_000) + 1) * 1_000; at < to; at += 1_000) moments.push(at);
  return to > from ? [...moments, to] : moments;
}

function told(call: Call, outcome: Outcome): unknown {
  return "answer" in outcome ? toldOf(call, outcome.answer, 0) : outcome;
}

/** The clock of the store, where an answer says it. */
function timeOf(outcome: Outcome): number | undefined {
  const answer = "answer" in outcome ? outcome.answer : undefined;
  return (answer as { readonly nowMs?: number } | undefined)?.nowMs;
}

/** What a store that is refused may do or refuse: no ids rest on it. */
const MAY_BE_REFUSED: ReadonlySet<StoreCall> = new Set([
  ...(["findInLedger", "listLedger", "recordLedger", "listAudit", "recordAudit"] as const),
  ...(["trimAudit", "exchangeMarks", "forgetNodes", "recentTags", "setTraffic"] as const),
]);

/** Whether nothing was done, rightly: somebody else was at the row, or the store is refused. */
function isUndone({ database }: World, { call, outcome }: Heard): boolean {
  if ("answer" in outcome) return outcome.answer === "busy";
  const isRefused = "reason" in outcome && outcome.reason === "STORE_EPOCH_CHANGED";
  return isRefused && MAY_BE_REFUSED.has(call.name) && fenced(database) !== "";
}

/** The call as the store took it: a server whose row was forgotten may be renewed by the next poll only. */
function carriedOut({ database }: World, { call, outcome }: Heard): Call {
  if (call.name !== "changes" || !("answer" in outcome)) return call;
  const [{ renewal, ...query }] = call.args;
  const [part] = (outcome.answer as StoreChanges).parts;
  const isForgotten = renewal !== undefined && !database.nodes.has(renewal.node.id);
  return isForgotten && part?.isRenewed === false ? callOf("changes", query) : call;
}

function later(world: World, call: Call): World {
  if (STORE_CALLS[call.name].effect === "read") return world;
  return { ...world, late: [...world.late, call].slice(-MAX_LATE) };
}

/** Histories and lists have names of their own in memory. */
function inNamesOf({ names }: World, call: Call): Call {
  const nameOf = (name: string): string => names.get(name) ?? name;
  if (call.name === "readTokens")
    return callOf("readTokens", nameOf(call.args[0] ?? "") || undefined);
  if (call.name !== "changes") return call;
  const [query] = call.args;
  const { renewal } = query;
  if (renewal === undefined) return call;
  const incarnation = nameOf(renewal.incarnation);
  return callOf("changes", { ...query, renewal: { ...renewal, incarnation } });
}

/** The possibilities found so far. Two that only times tell apart are one. */
class Found {
  readonly worlds: World[] = [];
  readonly #seen = new Map<string, Set<string>>();

  isNew(world: World, left: readonly Heard[]): boolean {
    const rest = left.map(({ call }) => show(call)).join();
    const seen = this.#seen.get(rest) ?? new Set<string>();
    this.#seen.set(rest, seen);
    const print = printOf(world);
    if (seen.has(print)) return false;
    seen.add(print);
    if (left.length === 0) this.worlds.push(world);
    return true;
  }

  /** An accept takes the present second for an epoch, and may look at the clock anew for each tag. */
  mixEpochs(moments: readonly number[]): void {
    const epochs = [...new Set(moments.map((ms) => BigInt(Math.floor(ms / 1_000))))];
    const names = [...(this.worlds[0]?.database.rows.keys() ?? []), ""];
    for (const name of names) {
      for (const world of this.worlds) {
        for (const other of withOtherEpoch(world, name, epochs)) this.isNew(other, []);
      }
    }
  }
}

/** Other epochs for a tag, or for tags that are made later (""), where it has one of these. */
function withOtherEpoch(world: World, name: string, epochs: readonly bigint[]): readonly World[] {
  const { rows, firstEpoch } = world.database;
  const row = rows.get(name);
  const present = row?.epoch ?? firstEpoch;
  if (!epochs.includes(present)) return [];
  return epochs.flatMap((epoch) => {
    if (epoch === present) return [];
    const database = world.database.clone();
    if (row === undefined) database.firstEpoch = epoch;
    else database.rows.set(name, { ...row, epoch });
    return [{ ...world, database }];
  });
}

function printOf({ database, late }: World): string {
  const { rows, audit, access, ...more } = database.snapshot();
  const byName = [...rows.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const ids = audit.map(({ id }) => id).toSorted();
  return show([byName, ids, access.tokens, more, database.identity, late]);
}

function show(value: unknown): string {
  return JSON.stringify(value, (key, its: unknown) => {
    if (typeof its === "bigint") return `${its}n`;
    if (its instanceof Map) return [...(its as ReadonlyMap<unknown, unknown>)];
    return key.endsWith("AtMs") && typeof its === "number" && its > 1e12 ? "a time" : its;
  });
}
