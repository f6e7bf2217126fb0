// The least that draining can cost here: values made by nothing but a counter, and for every segment of them one call of
// bare grpc-js to the same server, on its way while they are made. They are looked at as the SDK's are.
// Usage: drain-floor.ts number|bigint|awaited address tag seconds segment. Writes one line of JSON.
import { setImmediate as turn } from "node:timers/promises";
import { credentials, Metadata } from "@grpc/grpc-js";
import { IdServiceClient } from "@idmint/proto/grpc-js";
import type { Drained } from "./drain-child.ts";
import { Stretches, TURN, TurnOfIds } from "./stretches.ts";

const DEADLINE_MS = 20_000;

/** Fills a turn with the values from `base` on. */
type Make = (ids: TurnOfIds, base: number) => unknown;

function makeNumbers({ numbers }: TurnOfIds, base: number): void {
  for (let at = 0; at < TURN; at++) numbers[at] = base + at;
}

function makeBigints({ bigints }: TurnOfIds, base: number): void {
  const first = BigInt(base);
  for (let at = 0; at < TURN; at++) bigints[at] = first + BigInt(at);
}

async function ready(id: bigint): Promise<bigint> {
  return id;
}

async function makeAwaited({ bigints }: TurnOfIds, base: number): Promise<void> {
  const first = BigInt(base);
  for (let at = 0; at < TURN; at++) bigints[at] = await ready(first + BigInt(at));
}

const MAKES: Readonly<Record<string, Make>> = {
  number: makeNumbers,
  bigint: (ids, base) => {
    makeBigints(ids, base);
    ids.unpack(TURN);
  },
  awaited: async (ids, base) => {
    await makeAwaited(ids, base);
    ids.unpack(TURN);
  },
};

async function floor(
  make: Make,
  address: string,
  tag: string,
  seconds: number,
  segment: number,
): Promise<Drained> {
  const client = new IdServiceClient(address, credentials.createInsecure(), {
    "grpc.enable_retries": 0,
    "grpc.enable_channelz": 0,
  });
  const metadata = new Metadata();
  const call = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const options = { deadline: Date.now() + DEADLINE_MS };
      const request = { tag, count: segment, after: 0n, instance: "" };
      client.allocateSegment(request, metadata, options, (error, answer) => {
        if (error === null) resolve(answer);
        else reject(error);
      });
    });
  const turnOfIds = new TurnOfIds();
  const stretches = new Stretches();
  let ids = 0;
  const start = performance.now();
  while (performance.now() - start < seconds * 1_000) {
    const answer = call();
    for (let made = 0; made < segment; made += TURN) {
      await make(turnOfIds, ids);
      stretches.see(turnOfIds.numbers, TURN);
      ids += TURN;
      await turn();
    }
    await answer;
  }
  const elapsed = (performance.now() - start) / 1_000;
  client.close();
  return {
    ids,
    seconds: elapsed,
    idsPerSecond: ids / elapsed,
    secondsToRate: -1,
    repeats: stretches.overlaps(),
    waits: 0,
    stretches: stretches.count,
  };
}

const [, , kind = "", address = "", tag = "", seconds = "1", segment = ""] = process.argv;
const make = MAKES[kind];
if (make === undefined) throw new Error(`no kind ${kind}`);
console.log(JSON.stringify(await floor(make, address, tag, Number(seconds), Number(segment))));
