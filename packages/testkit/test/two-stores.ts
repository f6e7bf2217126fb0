// A fleet whose address leads to its own store and to another one by turns, as after a mistyped name, a proxy that turned or
// a volume that was mounted elsewhere.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { IdmintError } from "@idmint/client";
import { expect, onTestFinished } from "vitest";
import { runCli } from "../src/fleet/child.ts";
import { Fleet, type FleetServer } from "../src/fleet/fleet.ts";
import { until } from "../src/fleet/until.ts";
import { isLong, seededRandom, startFleet } from "./fleet-support.ts";

export type Which = "ours" | "other";

/** Two stores, and an address that leads to one of them. */
export interface TwoStores {
  /** Where each store is when nothing turns. */
  readonly urls: Readonly<Record<Which, string>>;
  /** What the servers are told, by their place. Those that lead to `urls.ours` directly never meet the other store. */
  readonly storeUrls: readonly [string, string, string];
  /** Leads the turning address to one of them. */
  pointAt(which: Which): Promise<void> | void;
  /** For everything else in its configuration. */
  readonly env?: Readonly<Record<string, string>>;
}

const TAGS = ["segments", "strict"] as const;
const SERVERS = 3;
/** Small, so that servers ask their store all the time. */
const SEGMENT = { min: 20, max: 40 };
const CALL_MS = 2_000;
/** From the moment the right store is back. */
const BACK_MS = 15_000;

/** Makes both stores with the same tags; the other one's ids begin where `first` says. */
export async function fillStores(stores: TwoStores, first: bigint): Promise<void> {
  for (const which of ["ours", "other"] as const) {
    // oxlint-disable-next-line no-await-in-loop
    await fillStore(stores.urls[which], stores.env, which === "ours" ? 1n : first);
  }
}

async function fillStore(
  storeUrl: string,
  env: Readonly<Record<string, string>> = {},
  start: bigint,
): Promise<void> {
  const fleet = await Fleet.start({ servers: 1, storeUrl, env });
  try {
    await fleet.first.api.createTag({ name: "segments", start, ...SEGMENT });
    await fleet.first.api.createSequence("strict", { start });
  } finally {
    await fleet.close();
  }
}

/** The id of a store, as an operator learns it. */
async function storeIdOf(url: string): Promise<string> {
  const { stdout } = await runCli(["store", "status", "--json"], { IDMINT_STORE_URL: url });
  return (JSON.parse(stdout) as { readonly storeId: string }).storeId;
}

/** Whatever anybody was given, and a fault at the first id that is given twice. */
class Given {
  readonly #ids = new Map(TAGS.map((tag) => [tag as string, new Set<bigint>()]));

  add(tag: string, id: bigint): void {
    const ids = this.#ids.get(tag);
    if (ids?.has(id) === true) throw new Error(`id ${id} of ${tag} was given twice`);
    ids?.add(id);
  }

  get count(): number {
    return [...this.#ids.values()].reduce((sum, { size }) => sum + size, 0);
  }
}

/** Callers of one server, until `signal` says so; answers what nobody should be told. */
async function call(server: FleetServer, given: Given, signal: AbortSignal): Promise<string[]> {
  const unexpected: string[] = [];
  const draw = async (tag: string): Promise<void> => {
    while (!signal.aborted) {
      try {
        // oxlint-disable-next-line no-await-in-loop
        given.add(tag, await server.api.id(tag, CALL_MS));
      } catch (thrown) {
        const error = IdmintError.from(thrown);
        if (error.reason === "INTERNAL") throw thrown;
        // A store that is away is no store that went back: nobody has to accept anything.
        if (error.code === "FAILED_PRECONDITION") unexpected.push(error.message);
        // oxlint-disable-next-line no-await-in-loop
        await pause(20);
      }
    }
  };
  await Promise.all(TAGS.flatMap((tag) => [draw(tag), draw(tag)]));
  return unexpected;
}

/**
 * Turns the address to and fro at random while three servers are called and killed, and looks at what was given.
 *
 * What must hold: no id is given twice, the other store is as it was, and once the right one is back every server goes on by
 * itself. A server that is started anew knows which store is its own, by its configuration or by the file that it kept.
 */
export async function turnToAndFro(
  stores: TwoStores,
  { turns = isLong ? 12 : 5 }: { readonly turns?: number } = {},
): Promise<void> {
  const { seed, below } = seededRandom();
  const ourId = await storeIdOf(stores.urls.ours);
  const otherBefore = await stateOf(stores);
  const folder = await temporaryFolder();
  await stores.pointAt("ours");
  const fleet = await startFleet({
    servers: SERVERS,
    storeUrl: stores.storeUrls[2],
    env: stores.env ?? {},
    envOf: stores.storeUrls.map((url, at) => ({
      IDMINT_STORE_URL: url,
      ...(at === 0
        ? { IDMINT_STORE_EXPECT_ID: ourId }
        : { IDMINT_SNOWFLAKE_CACHE_FILE: `${folder}/cache-${at}` }),
    })),
  });
  const given = new Given();
  const stop = new AbortController();
  const calling = Promise.all(
    fleet.servers.map((server) => call(server, given, stop.signal)),
  ).finally(() => stop.abort());
  // An id that was given twice ends the test at the next look.
  calling.catch(() => undefined);
  const said: string[] = [];
  for (let turn = 0; turn < turns && !stop.signal.aborted; turn++) {
    const which: Which = turn % 2 === 0 ? "other" : "ours";
    said.push(which);
    // oxlint-disable-next-line no-await-in-loop
    await stores.pointAt(which);
    const victim = fleet.servers[below(SERVERS)];
    if (below(3) === 0 && victim?.runs === true) {
      said.push(`kill ${victim.name}`);
      // oxlint-disable-next-line no-await-in-loop
      await victim.kill();
    }
    // oxlint-disable-next-line no-await-in-loop
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
        for (const tag of TAGS) given.add(tag, await server.api.id(tag, CALL_MS));
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
  expect(await stateOf(stores)).toEqual(otherBefore);
}

function startAll(fleet: Fleet): void {
  for (const server of fleet.servers) if (!server.runs) server.spawn();
}

/** What the other store would show of anybody who had used it. */
async function stateOf({ urls, env = {} }: TwoStores): Promise<unknown> {
  const fleet = await Fleet.start({ servers: 1, storeUrl: urls.other, env });
  try {
    const tags = await Promise.all(TAGS.map((tag) => fleet.first.api.getTag(tag)));
    return tags.map(({ name, floor, version, epoch }) => ({ name, floor, version, epoch }));
  } finally {
    await fleet.close();
  }
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "idmint-two-stores-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
