// Makes snowflakes under a worker id leased from a live server, as fast as it goes, and looks at every one of them.
// Usage: snowflake-child.ts number|bigint address tag seconds. Writes one line of JSON.
import { setImmediate as turn, setTimeout as pause } from "node:timers/promises";
import { createIdClient, IdmintError, type IdTag } from "@idmint/client";
import { TURN } from "./stretches.ts";

export interface MadeHere {
  /** All ids, those before the counted time too. */
  readonly ids: number;
  /** In the counted time: see `counted`. */
  readonly idsPerSecond: number;
  /** Ids that are not above the one before. One worker's ids ascend, so none came twice when there are none of them. */
  readonly notAbove: number;
  /** Times that no id might be made. */
  readonly waits: number;
}

/** The ids of one turn, as they were taken: an array for each way, so that each is written as it comes. */
class TurnOfSnowflakes {
  readonly numbers: Float64Array = new Float64Array(TURN);
  readonly bigints: BigUint64Array = new BigUint64Array(TURN);
  readonly #halves = new Uint32Array(this.bigints.buffer);
  #last = -1;
  #lastHi = -1;
  #lastLo = -1;

  /** Looks at the first `count` of the numbers, and answers how many are not above the one before. */
  lookAtNumbers(count: number): number {
    let notAbove = 0;
    let last = this.#last;
    for (let at = 0; at < count; at++) {
      const id = this.numbers[at] ?? Number.NaN;
      if (!(id > last)) notAbove++;
      last = id;
    }
    this.#last = last;
    return notAbove;
  }

  /** The same for the bigints, which a number would round: by their halves, as little-endian machines have them. */
  lookAtBigints(count: number): number {
    const halves = this.#halves;
    let notAbove = 0;
    let lastHi = this.#lastHi;
    let lastLo = this.#lastLo;
    for (let at = 0; at < count; at++) {
      const hi = halves[2 * at + 1] ?? Number.NaN;
      const lo = halves[2 * at] ?? Number.NaN;
      if (!(hi > lastHi || (hi === lastHi && lo > lastLo))) notAbove++;
      lastHi = hi;
      lastLo = lo;
    }
    this.#lastHi = lastHi;
    this.#lastLo = lastLo;
    return notAbove;
  }
}

interface Taken {
  readonly count: number;
  /** How long to wait for the next id, in milliseconds; 0 when the turn is full. */
  readonly waitMs: number;
}

interface Way {
  readonly take: (tag: IdTag, ids: TurnOfSnowflakes) => Taken;
  readonly lookAt: (ids: TurnOfSnowflakes, count: number) => number;
}

function takeNumbers(tag: IdTag, { numbers }: TurnOfSnowflakes): Taken {
  let count = 0;
  try {
    for (; count < TURN; count++) numbers[count] = tag.nextNumberSync();
  } catch (thrown) {
    return { count, waitMs: waitOf(thrown) };
  }
  return { count, waitMs: 0 };
}

function takeBigints(tag: IdTag, { bigints }: TurnOfSnowflakes): Taken {
  let count = 0;
  try {
    for (; count < TURN; count++) bigints[count] = tag.nextSync();
  } catch (thrown) {
    return { count, waitMs: waitOf(thrown) };
  }
  return { count, waitMs: 0 };
}

function waitOf(thrown: unknown): number {
  if (!(thrown instanceof IdmintError) || thrown.reason !== "SEGMENT_NOT_READY") throw thrown;
  return thrown.retryAfterMs ?? 1;
}

const WAYS: Readonly<Record<string, Way>> = {
  number: { take: takeNumbers, lookAt: (ids, count) => ids.lookAtNumbers(count) },
  bigint: { take: takeBigints, lookAt: (ids, count) => ids.lookAtBigints(count) },
};

/**
 * Counted is the time from the first wait on: until then ids are borrowed from the milliseconds ahead, which is more than
 * the layout has in the long run. Without a wait, all of it. It ends, as it begins, when no more may be made.
 */
async function makeIds(
  way: Way,
  address: string,
  name: string,
  seconds: number,
): Promise<MadeHere> {
  await using client = createIdClient({ address });
  const tag = client.tag(name);
  await tag.warm();
  const turnOfIds = new TurnOfSnowflakes();
  const start = performance.now();
  let [ids, notAbove, waits] = [0, 0, 0];
  let counted = { from: start, ids: 0 };
  for (;;) {
    const { count, waitMs } = way.take(tag, turnOfIds);
    const at = performance.now();
    ids += count;
    notAbove += way.lookAt(turnOfIds, count);
    if (waitMs > 0 && waits++ === 0) counted = { from: at, ids };
    if (at - start >= seconds * 1_000) {
      const elapsed = (at - counted.from) / 1_000;
      return { ids, idsPerSecond: (ids - counted.ids) / elapsed, notAbove, waits };
    }
    if (waitMs > 0) await pause(waitMs);
    else await turn();
  }
}

if (import.meta.main) {
  const [, , kind = "", address = "", tag = "", seconds = "1"] = process.argv;
  const way = WAYS[kind];
  if (way === undefined) throw new Error(`no way ${kind}`);
  console.log(JSON.stringify(await makeIds(way, address, tag, Number(seconds))));
}
