// A fleet whose address leads to its own store and to another one by turns, as after a mistyped name, a proxy that turned or
// a volume that was mounted elsewhere.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { IdmintError } from "@idmint/client";
import { expect, onTestFinished } from "vitest";
import type { Api } from "../../src/fleet/api.ts";
import { runCli } from "../../src/fleet/child.ts";
import { Fleet, type FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { seededRandom, startFleet } from "../fleet-support.ts";

export type Which = "ours" | "other";

type Env = Readonly<Record<string, string>>;

/** Two stores, and an address that leads to one of them. */
export interface TwoStores {
  /** How servers reach each store when nothing turns. */
  readonly direct: Readonly<Record<Which, Env>>;
  /** What the servers of the fleet are told. The last one leads to its own store directly. */
  readonly told: readonly [Env, Env, Env];
  /** Leads the turning address to one of them. */
  readonly pointAt: (which: Which) => Promise<void> | void;
  readonly tags?: readonly string[];
  /** Makes the tags, whose ids begin at `start`. Default: a segment tag and a strict one. */
  readonly make?: (api: Api, start: bigint) => Promise<void>;
  /** What a store that is no stranger has to have before a server starts. */
  readonly prepare?: (env: Env) => Promise<void>;
  /** What the other store would show of anybody who had used it. Default: its tags. */
  readonly stateOfOther?: () => Promise<unknown>;
}

const TAGS: readonly string[] = ["segments", "strict"];
const SERVERS = 3;
/** Of the address, in one round. */
const TURNS = 6;
/** Small, so that servers ask their store all the time. */
const SEGMENT = { min: 20, max: 40 };
const CALL_MS = 2_000;
/** From the moment the right store is back, a start included: so long that only who hangs exceeds it. */
const BACK_MS = 60_000;

/** Makes both stores with the same tags; the other one's ids begin where `first` says. */
export async function fillStores(stores: TwoStores, first: bigint): Promise<void> {
  const { direct, make = makeTags, prepare = async () => undefined } = stores;
  for (const which of ["ours", "other"] as const) {
    await prepare(direct[which]);
    await withServer(direct[which], (api) => make(api, which === "ours" ? 1n : first));
  }
}

async function makeTags(api: Api, start: bigint): Promise<void> {
  await api.createTag({ name: "segments", start, ...SEGMENT });
  await api.createSequence("strict", { start });
}

async function withServer<T>(env: Env, work: (api: Api) => Promise<T>): Promise<T> {
  const fleet = await Fleet.start({ servers: 1, storeUrl: env["IDMINT_STORE_URL"] ?? "", env });
  try {
    return await work(fleet.first.api);
  } finally {
    await fleet.close();
  }
}

/** The id of a store, as an operator learns it and servers are told. */
async function storeIdOf(env: Env): Promise<string> {
  const { stdout } = await runCli(["store", "status", "--json"], env);
  return (JSON.parse(stdout) as { readonly storeId: string }).storeId;
}

/** Whatever anybody was given, and a fault at the first id that is given twice. */
export class Given {
  readonly #ids = new Map<string, Set<bigint>>();

  add(tag: string, id: bigint): void {
    const ids = this.#ids.get(tag) ?? new Set();
    if (ids.has(id)) throw new Error(`id ${id} of ${tag} was given twice`);
    this.#ids.set(tag, ids.add(id));
  }

  get count(): number {
    return [...this.#ids.values()].reduce((sum, { size }) => sum + size, 0);
  }
}

/** Callers of one server, until `signal` says so; answers what nobody should be told. */
async function call(
  server: FleetServer,
  tags: readonly string[],
  given: Given,
  signal: AbortSignal,
): Promise<string[]> {
  const unexpected: string[] = [];
  const draw = async (tag: string): Promise<void> => {
    while (!signal.aborted) {
      try {
        given.add(tag, await server.api.id(tag, CALL_MS));
      } catch (thrown) {
        const error = IdmintError.from(thrown);
        if (error.reason === "INTERNAL") throw thrown;
        // A store that is away is no store that went back: nobody has to accept anything.
        if (error.reason === "STORE_EPOCH_CHANGED") unexpected.push(error.message);
        await pause(20);
      }
    }
  };
  await Promise.all(tags.flatMap((tag) => [draw(tag), draw(tag)]));
  return unexpected;
}

/**
 * Turns the address to and fro at random while three servers are called and killed, and looks at what was given.
 *
 * What must hold: no id is given twice, the other store is as it was, and once the right one is back every server goes on by
 * itself. A server that is started anew knows which store is its own, by its configuration or by the file that it kept.
 */
export async function turnToAndFro(stores: TwoStores): Promise<void> {
  const { direct, told, tags = TAGS, stateOfOther = () => tagsOf(direct.other, tags) } = stores;
  const ourId = await storeIdOf(direct.ours);
  const otherBefore = await stateOfOther();
  const folder = await temporaryFolder();
  await stores.pointAt("ours");
  const fleet = await startFleet({
    servers: SERVERS,
    storeUrl: told[2]["IDMINT_STORE_URL"] ?? "",
    envOf: told.map((env, at) => ({
      ...env,
      ...(at === 0
        ? { IDMINT_STORE_EXPECT_ID: ourId }
        : { IDMINT_SNOWFLAKE_CACHE_FILE: path.join(folder, `cache-${at}`) }),
    })),
  });
  try {
    await turnBeside(fleet, stores, tags);
  } finally {
    // Rounds follow each other, and none may run beside the fleets of those before it.
    await fleet.close();
  }
  expect(await stateOfOther()).toEqual(otherBefore);
}

async function turnBeside(fleet: Fleet, stores: TwoStores, tags: readonly string[]): Promise<void> {
  const { seed, below } = seededRandom();
  const given = new Given();
  const stop = new AbortController();
  const calling = Promise.all(
    fleet.servers.map((server) => call(server, tags, given, stop.signal)),
  ).finally(() => stop.abort());
  // An id that was given twice ends the test at the next look.
  calling.catch(() => undefined);
  const said: string[] = [];
  for (let turn = 0; turn < TURNS && !stop.signal.aborted; turn++) {
    const which: Which = turn % 2 === 0 ? "other" : "ours";
    said.push(which);
    await stores.pointAt(which);
    const victim = fleet.servers[below(SERVERS)];
    if (below(3) === 0 && victim?.runs === true) {
      said.push(`kill ${victim.name}`);
      await victim.kill();
    }
    await pause(300 + below(1_500));
    startAll(fleet);
  }
  await stores.pointAt("ours");
  const back = performance.now();
  const again = fleet.servers.map((server) =>
    until(
      `${server.name} goes on by itself`,
      async () => {
        if (!server.runs) server.spawn();
        for (const tag of tags) given.add(tag, await server.api.id(tag, CALL_MS));
        return true;
      },
      { withinMs: BACK_MS },
    ),
  );
  try {
    await Promise.race([Promise.all(again), calling]);
  } finally {
    stop.abort();
  }
  const afterMs = Math.round(performance.now() - back);
  const unexpected = (await calling).flat();
  console.log(`seed ${seed}: ${said.join(", ")}; ${given.count} ids; back after ${afterMs} ms`);
  expect(unexpected).toEqual([]);
}

function startAll(fleet: Fleet): void {
  for (const server of fleet.servers) if (!server.runs) server.spawn();
}

export function tagsOf(env: Env, names: readonly string[]): Promise<unknown> {
  return withServer(env, async (api) => {
    const tags = await Promise.all(names.map((tag) => api.getTag(tag)));
    return tags.map(({ name, floor, version, epoch }) => ({ name, floor, version, epoch }));
  });
}

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "idmint-two-stores-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
