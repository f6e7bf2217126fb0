// Whom the ledger names after servers were killed under load: SDKs that draw, give back and draw again, beside callers
// without an SDK, on servers that share a store.
import { createIdClient, type IdClient } from "@idmint/client";
import { LookupResult, type LookupIdResponse } from "@idmint/proto";
import { expect, test } from "vitest";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { isLong, seededRandom, sqliteFile, startFleet } from "../fleet-support.ts";

const TAG = "orders";
const SDKS = 4;
/** How long everybody draws between two events. */
const STRETCH_MS = isLong ? 10_000 : 700;
const SAMPLES = isLong ? 10_000 : 1_000;
/** Lookups at once. */
const AT_ONCE = 20;

/** Who had each id last: the name of an SDK, or of the server that issued it by itself. */
type Truth = Map<bigint, { readonly sdk?: string; readonly server?: string }>;

/** Draws until it is stopped. What the SDK was handed and did not issue goes back when it closes. */
class Sdk {
  readonly name: string;
  readonly #client: IdClient;
  readonly #truth: Truth;
  #isDrawing = true;
  readonly #done: Promise<void>;

  constructor(name: string, fleet: Fleet, truth: Truth) {
    this.name = name;
    this.#truth = truth;
    const { addresses } = fleet;
    this.#client = createIdClient({ addresses, min: 100, max: 200, worker: { instance: name } });
    this.#done = this.#draw();
  }

  async #draw(): Promise<void> {
    const tag = this.#client.tag(TAG);
    while (this.#isDrawing) {
      const id = await tag.next().catch(() => undefined);
      if (id !== undefined) this.#truth.set(id, { sdk: this.name });
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  async close(): Promise<void> {
    this.#isDrawing = false;
    await this.#done;
    await this.#client.close();
  }
}

async function drawWithoutSdk(server: FleetServer, truth: Truth, until: number): Promise<void> {
  while (performance.now() < until && server.runs) {
    const many = await server.api
      .generateIds({ tag: TAG, count: 3, asList: true })
      .catch(() => ({ ids: [] as bigint[] }));
    for (const id of many.ids) truth.set(id, { server: server.name });
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function lookUp(server: FleetServer, id: bigint): Promise<LookupIdResponse> {
  const { tags } = server.api;
  const request = { tag: TAG, value: { $case: "id" as const, value: id } };
  return server.api.send(tags.lookupId.bind(tags), request);
}

test("of ids drawn while servers are killed the ledger names the right SDK, or says that it does not know", async () => {
  const names = ["one", "two"];
  const fleet = await startFleet({
    servers: names.length,
    storeUrl: `sqlite:${await sqliteFile()}`,
    envOf: names.map((name) => ({ IDMINT_INSTANCE: name })),
  });
  await fleet.first.api.createTag({ name: TAG, min: 500, max: 500 });
  const truth: Truth = new Map();
  const stretch = async (): Promise<void> => {
    const until = performance.now() + STRETCH_MS;
    await Promise.all(fleet.servers.map((server) => drawWithoutSdk(server, truth, until)));
  };
  const crew = (round: string): Sdk[] =>
    Array.from({ length: SDKS }, (_, at) => new Sdk(`sdk-${round}-${at}`, fleet, truth));
  const [one, two] = fleet.servers;
  if (one === undefined || two === undefined) throw new Error("no fleet");

  let sdks = crew("a");
  await stretch();
  await one.kill();
  await stretch();
  // They give back what they hold, and others are handed it.
  await Promise.all(sdks.map((sdk) => sdk.close()));
  sdks = crew("b");
  await stretch();
  await one.start();
  // A server that stops gives back to the store.
  await Promise.all([stretch(), two.stop()]);
  await two.start();
  await stretch();
  await Promise.all(sdks.map((sdk) => sdk.close()));

  const { below, seed } = seededRandom();
  const ids = [...truth.keys()];
  const counts = new Map<string, number>();
  const wrong: string[] = [];
  const check = async (sample: number): Promise<void> => {
    const id = ids[below(ids.length)] ?? 0n;
    const { sdk, server } = truth.get(id) ?? {};
    const found = await lookUp(sample % 2 === 0 ? one : two, id);
    const told = found.client?.instance;
    const its = found.server?.server;
    if (told !== undefined && told !== sdk)
      wrong.push(`${id}: ${told} instead of ${sdk ?? server}`);
    if (its !== undefined && server !== undefined && its !== nameOf(server)) {
      wrong.push(`${id}: server ${its} instead of ${server}`);
    }
    const known = sdk === undefined ? "of a server" : told === undefined ? "not known" : "known";
    counts.set(known, (counts.get(known) ?? 0) + 1);
    expect(found.result).not.toBe(LookupResult.CONTRADICTION);
  };
  for (let sample = 0; sample < SAMPLES; sample += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => check(sample + at)));
  }
  console.log(`the ledger of ${ids.length} ids (seed ${seed}): ${JSON.stringify([...counts])}`);
  expect(wrong).toEqual([]);
  // Of what SDKs drew only the last moments of killed servers are lost.
  const [known = 0, unknown = 0] = [counts.get("known"), counts.get("not known")];
  expect(known).toBeGreaterThan(SAMPLES / 10);
  expect(unknown).toBeLessThan(known);

  function nameOf(server: string): string {
    const at = fleet.servers.findIndex(({ name }) => name === server);
    return names[at] ?? "";
  }
});
