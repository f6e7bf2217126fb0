// Takes ids from a live server as fast as it goes, and looks at every one of them.
// Usage: drain-child.ts number|bigint|awaited address tag seconds. Writes one line of JSON.
import { setImmediate as turn } from "node:timers/promises";
import { createIdClient, IdmintError, type IdTag } from "@idmint/client";
import { Stretches, TURN, TurnOfIds } from "./stretches.ts";

export interface Drained {
  readonly ids: number;
  /** How long it took them. */
  readonly seconds: number;
  readonly idsPerSecond: number;
  /** From the first wish for an id until a tenth of a second went by in which the rate was reached; −1: never. */
  readonly secondsToRate: number;
  /** Pairs of stretches of ids that overlap: ids that were issued twice. */
  readonly repeats: number;
  /** Times that no id was ready. */
  readonly waits: number;
  readonly stretches: number;
}

const RATE = 100_000_000;
const WINDOW_MS = 100;

/** Takes ids until the turn is full or none is ready, and answers how many. */
type Take = (tag: IdTag, ids: TurnOfIds) => number | Promise<number>;

function takeNumbers(tag: IdTag, { numbers }: TurnOfIds): number {
  let taken = 0;
  try {
    for (; taken < TURN; taken++) numbers[taken] = tag.nextNumberSync();
  } catch (thrown) {
    assertNotReady(thrown);
  }
  return taken;
}

function takeBigints(tag: IdTag, { bigints }: TurnOfIds): number {
  let taken = 0;
  try {
    for (; taken < TURN; taken++) bigints[taken] = tag.nextSync();
  } catch (thrown) {
    assertNotReady(thrown);
  }
  return taken;
}

async function takeAwaited(tag: IdTag, { bigints }: TurnOfIds): Promise<number> {
  for (let at = 0; at < TURN; at++) bigints[at] = await tag.next();
  return TURN;
}

function assertNotReady(thrown: unknown): void {
  if (!(thrown instanceof IdmintError) || thrown.reason !== "SEGMENT_NOT_READY") throw thrown;
}

const TAKES: Readonly<Record<string, Take>> = {
  number: takeNumbers,
  bigint: (tag, ids) => ids.unpack(takeBigints(tag, ids)),
  awaited: async (tag, ids) => ids.unpack(await takeAwaited(tag, ids)),
};

async function drain(take: Take, address: string, name: string, seconds: number): Promise<Drained> {
  await using client = createIdClient({ address });
  const tag = client.tag(name);
  const turnOfIds = new TurnOfIds();
  const stretches = new Stretches();
  let waits = 0;
  let ids = 0;
  let secondsToRate = -1;
  const start = performance.now();
  let windowStart = start;
  let idsBefore = 0;
  for (let now = start; now - start < seconds * 1_000; now = performance.now()) {
    const taken = await take(tag, turnOfIds);
    stretches.see(turnOfIds.numbers, taken);
    ids += taken;
    if (taken < TURN) {
      waits++;
      await tag.warm();
    } else {
      await turn();
    }
    const elapsed = performance.now() - windowStart;
    if (elapsed < WINDOW_MS) continue;
    if (secondsToRate < 0 && ((ids - idsBefore) / elapsed) * 1_000 >= RATE) {
      secondsToRate = (performance.now() - start) / 1_000;
    }
    windowStart = performance.now();
    idsBefore = ids;
  }
  const elapsed = (performance.now() - start) / 1_000;
  return {
    ids,
    seconds: elapsed,
    idsPerSecond: ids / elapsed,
    secondsToRate,
    repeats: stretches.overlaps(),
    waits,
    stretches: stretches.count,
  };
}

if (import.meta.main) {
  const [, , kind = "", address = "", tag = "", seconds = "1"] = process.argv;
  const take = TAKES[kind];
  if (take === undefined) throw new Error(`no kind ${kind}`);
  console.log(JSON.stringify(await drain(take, address, tag, Number(seconds))));
}
