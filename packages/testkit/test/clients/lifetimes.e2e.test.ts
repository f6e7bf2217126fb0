// Connections that end while calls fly: they grow old, or their server starts anew. Users of the SDK notice nothing of it.
import { connect } from "node:http2";
import { setTimeout as pause } from "node:timers/promises";
import { createIdClient, type IdClientEvent } from "@idmint/client";
import type { StreamIdsRequest, StreamIdsResponse } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import type { Fleet } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { isLong, sqliteFile, startFleet } from "../fleet-support.ts";

const FAST = { IDMINT_GRPC_DOOR: "fast" };
const AGE = { IDMINT_LIMITS_CONNECTION_AGE: "1s" };
/** How long calls are made while connections grow old: twice at least, or as often as in days of a real server. */
const FLIGHT_MS = isLong ? 120_000 : 2_500;
/** Callers of each tag. */
const CALLERS = 4;
/** Far more than a server takes to start on a machine that does much else. */
const PATIENCE_MS = 60_000;
const PATIENT = { withinMs: PATIENCE_MS };

async function startOne(env: Readonly<Record<string, string>>): Promise<Fleet> {
  const fleet = await startFleet({
    servers: 1,
    storeUrl: `sqlite:${await sqliteFile()}`,
    env: { IDMINT_STORE_TIMEOUT: "30s", ...env },
  });
  const { api } = fleet.first;
  await api.createTag({ name: "accounts", min: 100, max: 100 });
  await api.createSequence("invoices");
  await api.createSnowflake("clicks");
  return fleet;
}

interface Flight {
  /** All ids of each tag, in the order in which they came. */
  readonly ids: Readonly<Record<"accounts" | "clicks" | "invoices", bigint[]>>;
  readonly events: readonly IdClientEvent[];
  /** Lets the callers stop, and waits for them. Rejects when one was refused anything. */
  readonly land: () => Promise<void>;
}

/** Callers of an SDK that ask for one id after the other: from segments of ten, one by one, and under a leased worker id. */
function fly(fleet: Fleet): Flight {
  const events: IdClientEvent[] = [];
  const client = createIdClient({
    addresses: [fleet.first.address],
    min: 10,
    max: 10,
    deadlineMs: PATIENCE_MS,
    // A machine that stands still for seconds is no connection that was lost.
    rpcDeadlineMs: PATIENCE_MS / 2,
    worker: { instance: "lifetimes" },
    onEvent: (event) => events.push(event),
  });
  onTestFinished(() => client.close());
  const ids = { accounts: [], clicks: [], invoices: [] } as Flight["ids"];
  const over = { isSo: false };
  const call = async (name: keyof typeof ids): Promise<void> => {
    const tag = client.tag(name);
    while (!over.isSo) {
      ids[name].push(await tag.next());
      await pause(5);
    }
  };
  const names = Object.keys(ids) as (keyof typeof ids)[];
  const callers = names.flatMap((name) => Array.from({ length: CALLERS }, () => call(name)));
  const all = Promise.all(callers);
  // It is looked at when they land.
  all.catch(() => undefined);
  return {
    ids,
    events,
    land: async () => {
      over.isSo = true;
      await all;
    },
  };
}

function expectDistinct({ ids }: Flight): void {
  for (const [name, all] of Object.entries(ids)) {
    expect(all.length, name).toBeGreaterThan(0);
    expect(new Set(all).size, name).toBe(all.length);
  }
}

/**
 * A call that grpc-js had not sent when its connection was told to go is refused by grpc-js itself, in these words. The client
 * asks again.
 */
const UNSENT = "Stream refused by server";

function isFailure(event: IdClientEvent): boolean {
  return event.type === "endpoint-failed" && !event.error.message.includes(UNSENT);
}

test(
  "connections that grow old are nothing to users of the SDK",
  { timeout: 300_000 },
  async () => {
    const fleet = await startOne(AGE);
    const seen: number[] = [];
    const other = connect(`http://${fleet.first.address}`);
    onTestFinished(() => other.destroy());
    other.on("goaway", (code: number) => seen.push(code));
    const flight = fly(fleet);
    await pause(FLIGHT_MS);
    await flight.land();
    // A connection was told to go, and so were those of the SDK.
    await until("a connection is told to go", () => seen.length > 0, PATIENT);
    expect(seen[0]).toBe(0);
    expectDistinct(flight);
    expect(flight.events.filter(isFailure)).toEqual([]);
    // Nobody else has asked, so no id of the sequence was taken for a call that was lost.
    const sorted = flight.ids.invoices.toSorted((a, b) => (a < b ? -1 : 1));
    expect(sorted).toEqual(sorted.map((_, at) => BigInt(at + 1)));
  },
);

test(
  "a server of two processes that starts anew costs users of the SDK time, and nothing else",
  { timeout: 300_000 },
  async () => {
    const fleet = await startOne({ ...AGE, ...FAST, IDMINT_PROCESSES: "2" });
    await until("both processes serve", () => fleet.first.listens, PATIENT);
    const flight = fly(fleet);
    const count = (): number => flight.ids.invoices.length;
    const flies = async (): Promise<void> => {
      const before = count();
      await until("calls fly", () => count() > before + 20 * CALLERS, PATIENT);
    };
    await flies();
    for (let i = 0; i < (isLong ? 5 : 1); i++) {
      expect((await fleet.first.stop()).code).toBe(0);
      await fleet.first.start();
      await until("both processes serve", () => fleet.first.listens, PATIENT);
      await flies();
    }
    await flight.land();
    expectDistinct(flight);
  },
);

test.runIf(isLong)(
  "a stream outlives its connection by 30 s, and loses nothing when it ends",
  { timeout: 300_000 },
  async () => {
    const fleet = await startOne({ ...AGE, ...FAST });
    const { ids } = fleet.first.api;
    const stream = ids.streamIds();
    const answers: bigint[] = [];
    const end: { code?: number; details?: string } = {};
    stream.on("data", ({ result }: StreamIdsResponse) => {
      expect(result?.$case).toBe("one");
      if (result?.$case === "one") answers.push(result.value.id);
    });
    stream.on("error", () => undefined);
    stream.on("status", (status: object) => Object.assign(end, status));
    const begun = Date.now();
    while (end.code === undefined) {
      const request: StreamIdsRequest = { call: 1, tag: "invoices", count: 0, name: "" };
      stream.write(request);
      await pause(5);
      if (Date.now() - begun > 120_000) break;
    }
    expect(end).toMatchObject({ code: 14, details: expect.stringContaining("too old") as unknown });
    expect(Date.now() - begun).toBeGreaterThan(29_000);
    expect(answers).toEqual(answers.map((_, at) => BigInt(at + 1)));
    // The next one was not taken for it.
    expect(await fleet.first.api.id("invoices")).toBe(BigInt(answers.length + 1));
  },
);
