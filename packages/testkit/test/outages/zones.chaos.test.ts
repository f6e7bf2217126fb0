// Two zones of three servers each on one PostgreSQL, under SDKs of one zone: it is cut off, heals, loses a server to an operator
// and gets weights, and no call fails.
import { setTimeout as pause } from "node:timers/promises";
import { createIdClient, type IdClient, type IdClientEvent, IdmintError } from "@idmint/client";
import { Order } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { isLong, ownPostgres, startFleet } from "../fleet-support.ts";

const CLIENTS = 25;
const TAGS = 40;
const CALLS_PER_SECOND = 1_000;
/** Ids of a load: each pair of client and tag loads every four seconds. */
const SEGMENT = 4;
const RAMP_MS = 5_000;
const CUT_MS = isLong ? 60_000 : 5_000;
/** How long loads are counted: once for each pair at least. */
const WINDOW_MS = isLong ? 15_000 : 4_000;
const HOME_SHARE = 0.99;
/** Of a call. A machine that does much else may give this process no time for seconds. */
const DEADLINE_MS = 20_000;
/** How long whole windows are waited for, on a machine that does much else; a quiet one needs seconds, which are printed. */
const HOME_MS = 60_000;
const FOLLOW_MS = 60_000;
const NAMES = ["a1", "a2", "a3", "b1", "b2", "b3"] as const;

type Name = (typeof NAMES)[number];
type Loads = Readonly<Record<Name, number>>;

/** Callers of a zone, in this process: each id once, and in order where that is promised. */
class Callers {
  readonly failures: string[] = [];
  slowestMs = 0;
  answered = 0;
  repeated = 0;
  inversions = 0;
  readonly #tags = Array.from({ length: TAGS }, (_, at) => ({
    name: `tag-${at}`,
    isOrdered: at % 2 === 0,
    seen: new Set<bigint>(),
  }));
  readonly #clients: readonly { readonly client: IdClient; readonly last: bigint[] }[];
  readonly #inFlight = new Set<Promise<void>>();
  #isOver = false;
  #next = 0;

  constructor(addresses: readonly string[], onEvent: (event: IdClientEvent) => void) {
    this.#clients = Array.from({ length: CLIENTS }, () => {
      const options = { addresses, zone: "a", min: SEGMENT, max: SEGMENT, deadlineMs: DEADLINE_MS };
      return { client: createIdClient({ ...options, onEvent }), last: [] };
    });
  }

  async createTags({ api }: FleetServer): Promise<void> {
    for (const { name, isOrdered } of this.#tags) {
      const order = isOrdered ? Order.PER_CLIENT : Order.UNORDERED;
      await api.createTag({ name, min: 1_000, max: 1_000, order });
    }
  }

  async run(): Promise<void> {
    const start = performance.now();
    let due = start;
    while (!this.#isOver) {
      // Nothing is in memory at first, and each call is a load.
      const perSecond = due - start < RAMP_MS ? CALLS_PER_SECOND / 2 : CALLS_PER_SECOND;
      // What a busy machine could not do in time is not made up for by a storm.
      due = Math.max(due, performance.now() - 200);
      for (; due <= performance.now(); due += 1_000 / perSecond) this.#begin();
      await pause(5);
    }
    await Promise.all(this.#inFlight);
    await Promise.all(this.#clients.map(({ client }) => client.close()));
  }

  stop(): void {
    this.#isOver = true;
  }

  #begin(): void {
    const at = this.#next++ % (CLIENTS * TAGS);
    const call = this.#call(at % CLIENTS, Math.floor(at / CLIENTS));
    this.#inFlight.add(call);
    void call.finally(() => this.#inFlight.delete(call));
  }

  async #call(clientAt: number, tagAt: number): Promise<void> {
    const { client, last } = this.#clients[clientAt]!;
    const { name, isOrdered, seen } = this.#tags[tagAt]!;
    const start = performance.now();
    try {
      const id = await client.tag(name).next();
      this.answered++;
      this.slowestMs = Math.max(this.slowestMs, performance.now() - start);
      if (seen.has(id)) this.repeated++;
      seen.add(id);
      if (isOrdered && id <= (last[tagAt] ?? 0n)) this.inversions++;
      last[tagAt] = id;
    } catch (thrown) {
      this.failures.push(IdmintError.from(thrown).message);
    }
  }
}

/** Loads that each server has answered since its start; undefined of one that does not answer. */
async function loadsOf(fleet: Fleet): Promise<Loads> {
  const counts = await Promise.all(
    fleet.servers.map(async ({ api }) => {
      const status = api.nodes.getNodeStatus.bind(api.nodes);
      return Number((await api.send(status, {})).issuedIds) / SEGMENT;
    }),
  );
  return Object.fromEntries(NAMES.map((name, at) => [name, counts[at]!])) as Record<Name, number>;
}

/** The loads of a whole window from a moment on, the first in which a condition holds; and how long after now it began. */
async function loadsOnce(
  fleet: Fleet,
  holds: (loads: Loads) => boolean,
  withinMs: number,
): Promise<{ readonly loads: Loads; readonly afterMs: number }> {
  const start = performance.now();
  const seen: { readonly loads: Loads; readonly atMs: number }[] = [];
  return until(
    "the loads of a window are as they should be",
    async () => {
      seen.push({ loads: await loadsOf(fleet), atMs: performance.now() - start });
      const last = seen.at(-1)!;
      // The latest that lies a whole window back.
      const first = seen.findLast(({ atMs }) => last.atMs - atMs >= WINDOW_MS);
      if (first === undefined) return undefined;
      const loads = difference(last.loads, first.loads);
      return holds(loads) ? { loads, afterMs: Math.round(first.atMs) } : undefined;
    },
    { withinMs: withinMs + WINDOW_MS, everyMs: 500 },
  );
}

function difference(after: Loads, before: Loads): Loads {
  const between = NAMES.map((name) => [name, Math.round(after[name] - before[name])] as const);
  return Object.fromEntries(between) as Record<Name, number>;
}

function atHome(loads: Loads): boolean {
  return homeShare(loads) >= HOME_SHARE;
}

/** Whether the servers of the zone have about as many loads each. */
function isEven({ a1, a2, a3 }: Loads): boolean {
  return [a1, a2, a3].every((loads) => Math.abs(loads / (a1 + a2 + a3) - 1 / 3) < 0.1);
}

function shareOfFirst({ a1, a2 }: Loads): number {
  return a1 / (a1 + a2);
}

/** Whether the drained server is left and the weights of the others are met. */
function isFollowed(loads: Loads): boolean {
  return loads.a3 === 0 && Math.abs(shareOfFirst(loads) - 0.9) <= 0.05;
}

function homeShare(loads: Loads): number {
  const home = loads.a1 + loads.a2 + loads.a3;
  return home / (home + loads.b1 + loads.b2 + loads.b3);
}

test(
  "callers notice nothing of a zone that is cut off and heals, a drained server and new weights",
  { timeout: 360_000 },
  async () => {
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const envOf = NAMES.map((name) => ({
      IDMINT_INSTANCE: name,
      IDMINT_NODE_ZONE: name.slice(0, 1),
    }));
    const fleet = await startFleet({ servers: NAMES.length, storeUrl: url, envOf });
    const near = fleet.servers.slice(0, 3);
    const events = new Map<string, number>();
    const onEvent = ({ type }: IdClientEvent): void =>
      void events.set(type, (events.get(type) ?? 0) + 1);
    // One address of each zone; the others are learned.
    const seeds = [near[0]!.address, fleet.servers[3]!.address];
    const callers = new Callers(seeds, onEvent);
    await callers.createTags(near[0]!);
    const running = callers.run();
    onTestFinished(async () => {
      callers.stop();
      await running;
    });
    const figures: Record<string, unknown> = {};

    // All servers have to start and to hear of each other first.
    const before = await loadsOnce(fleet, (loads) => atHome(loads) && isEven(loads), 60_000);
    figures["before"] = [before, homeShare(before.loads)];

    const answeredAtCut = callers.answered;
    for (const server of near) server.process.signal("SIGSTOP");
    await pause(CUT_MS);
    figures["answered while cut off"] = callers.answered - answeredAtCut;
    for (const server of near) server.process.signal("SIGCONT");
    const healed = await loadsOnce(fleet, atHome, HOME_MS);
    figures["healed"] = [healed, homeShare(healed.loads)];

    await drain(fleet, "a3");
    await weigh(fleet, "a1", 90);
    await weigh(fleet, "a2", 10);
    const { afterMs } = await loadsOnce(fleet, isFollowed, FOLLOW_MS);
    const { a3: drainedAt } = await loadsOf(fleet);
    // It stays so; what a machine was too busy for in one window, it shows in the next.
    const stays = (loads: Loads): boolean => isFollowed(loads) && atHome(loads);
    const { loads: weighed } = await loadsOnce(fleet, stays, FOLLOW_MS);
    const { a3: drainedAfter } = await loadsOf(fleet);
    figures["90/10"] = [afterMs, weighed, shareOfFirst(weighed), homeShare(weighed)];

    callers.stop();
    await running;
    const { answered, failures, repeated, inversions, slowestMs } = callers;
    console.log(
      JSON.stringify(figures),
      { answered, slowestMs, repeated, inversions },
      failures.slice(0, 5),
      events,
    );
    expect(failures).toEqual([]);
    expect(repeated).toBe(0);
    expect(inversions).toBe(0);
    expect(drainedAfter).toBe(drainedAt);
    // A third of the pace, on the busiest machine.
    expect(answered).toBeGreaterThan(CALLS_PER_SECOND * 10);
  },
);

async function drain(fleet: Fleet, name: Name): Promise<void> {
  await fleet.cli("node", "drain", name, "--address", fleet.servers[3]!.address);
}

async function weigh(fleet: Fleet, name: Name, weight: number): Promise<void> {
  await fleet.cli("node", "weight", name, String(weight), "--address", fleet.servers[3]!.address);
}
