// How long callers of a STRICT tag wait for the next id when servers go, with one of them left.
import { setTimeout as pause } from "node:timers/promises";
import { createIdClient, type IdClient } from "@idmint/client";
import { expect, onTestFinished, test } from "vitest";
import type { Fleet, FleetServer } from "../../../src/fleet/fleet.ts";
import { ownPostgres, startFleet } from "../../fleet-support.ts";

const TAG = "bills";
const RPC_DEADLINE_MS = 1_000;
/** By then a caller is back at its first choice. */
const SETTLED_MS = 7_000;
/** A caller that asks about so often. */
const EVERY_MS = 2;

/** Asks for id after id, and knows the longest time between two answers. */
class Caller {
  readonly #client: IdClient;
  #isOver = false;
  #longestMs = 0;
  #answers = 0;
  readonly #running: Promise<void>;

  constructor(fleet: Fleet) {
    this.#client = createIdClient({
      addresses: fleet.addresses,
      rpcDeadlineMs: RPC_DEADLINE_MS,
      deadlineMs: 20_000,
    });
    this.#running = this.#run();
    onTestFinished(() => this.close());
  }

  get answers(): number {
    return this.#answers;
  }

  /** The longest gap since it was asked last. */
  takeLongestMs(): number {
    const longest = this.#longestMs;
    this.#longestMs = 0;
    return longest;
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#running;
    await this.#client.close();
  }

  async #run(): Promise<void> {
    const tag = this.#client.tag(TAG);
    let last = 0n;
    let before = performance.now();
    while (!this.#isOver) {
      const id = await tag.next();
      expect(id).toBeGreaterThan(last);
      last = id;
      const now = performance.now();
      this.#longestMs = Math.max(this.#longestMs, now - before);
      before = now;
      this.#answers++;
      await pause(EVERY_MS);
    }
  }
}

async function callerOfThree(): Promise<{ fleet: Fleet; caller: Caller }> {
  const postgres = await ownPostgres();
  const { url } = await postgres.createDatabase();
  const fleet = await startFleet({ servers: 3, storeUrl: url });
  await fleet.first.api.createSequence(TAG);
  const caller = new Caller(fleet);
  while (caller.answers < 10) await pause(10);
  // By now it has the list of servers, and has looked at them.
  await pause(500);
  caller.takeLongestMs();
  return { fleet, caller };
}

/** Two of three, so that each pair of them is in the order in which the caller asks. */
function pairsOf(fleet: Fleet): readonly (readonly [FleetServer, FleetServer])[] {
  const [a, b, c] = fleet.servers as readonly [FleetServer, FleetServer, FleetServer];
  return [
    [a, b],
    [b, c],
    [c, a],
  ];
}

test(
  "two of three servers are killed at once, again and again: the next id comes within 2 s",
  { timeout: 240_000 },
  async () => {
    const { fleet, caller } = await callerOfThree();
    const gaps: number[] = [];
    for (const pair of pairsOf(fleet)) {
      await Promise.all(pair.map((server) => server.kill()));
      await pause(2_500);
      gaps.push(Math.round(caller.takeLongestMs()));
      // The start of servers takes the time of this machine from everybody; it is not what is measured.
      await Promise.all(pair.map((server) => server.start()));
      await pause(500);
      caller.takeLongestMs();
    }
    console.log("gaps after kills, in ms:", gaps);
    for (const gap of gaps) expect(gap).toBeLessThan(2_000);
  },
);

test(
  "two of three servers freeze at once: the next id comes within the rpc deadline and a second",
  { timeout: 240_000 },
  async () => {
    const { fleet, caller } = await callerOfThree();
    const gaps: number[] = [];
    for (const pair of pairsOf(fleet)) {
      for (const server of pair) server.process.signal("SIGSTOP");
      await pause(2 * RPC_DEADLINE_MS + 1_500);
      gaps.push(Math.round(caller.takeLongestMs()));
      for (const server of pair) server.process.signal("SIGCONT");
      await pause(SETTLED_MS);
      caller.takeLongestMs();
    }
    console.log("gaps after freezes, in ms:", gaps);
    for (const gap of gaps) expect(gap).toBeLessThan(RPC_DEADLINE_MS + 1_000);
  },
);
