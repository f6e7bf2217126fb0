// An address that leads to another store than before: names turn, proxies turn, ports are taken over.
import { TestPostgres } from "@idmint/testkit/postgres";
import { granted, nodeRenewalOf, settingsOf, wish } from "@idmint/testkit/store-suite";
import { TcpProxy } from "@idmint/testkit/tcp-proxy";
import type { NodeRenewal, Store } from "@idmint/core/server";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import {
  addToSpread,
  migrateStore,
  openStore,
  type PostgresConfig,
  type SpreadConfig,
  storeStatus,
} from "../../../src/store/open-store.ts";
import {
  migrateTicketDatabase,
  openTicketDatabases,
  type TicketConfig,
} from "../../../src/store/open-tickets.ts";
import { Connections } from "../../../src/store/postgres/connections.ts";
import { grant } from "../../../src/store/postgres/grant.ts";
import { Belonging } from "../../../src/store/postgres/hosts/belonging.ts";
import { passingPins, StorePins } from "../../../src/store/pins/pin.ts";

const UNSAFE = ["fsync", "full_page_writes"];

interface Place {
  readonly server: TestPostgres;
  readonly config: PostgresConfig;
  readonly storeId: string;
}

/** A store with one tag whose floor is `floor`. */
async function placeAt(floor: number): Promise<Place> {
  const server = await TestPostgres.start();
  const config: PostgresConfig = { backend: "postgres", url: server.url(), allowUnsafe: UNSAFE };
  await migrateStore(config, { dryRun: false });
  const store = await openStore(config);
  await store.createTag(settingsOf("t"));
  await granted(store, "t", { count: floor, minCount: floor });
  await store.close();
  const { storeId } = await storeStatus(config);
  return { server, config, storeId };
}

let ours: Place;
let other: Place;

beforeAll(async () => {
  [ours, other] = await Promise.all([placeAt(1_000), placeAt(50_000)]);
  return async () => {
    await Promise.all([ours.server.close(), other.server.close()]);
  };
});

function targetOf({ server: { port } }: Place): { host: string; port: number } {
  return { host: "127.0.0.1", port };
}

function through({ port }: TcpProxy): PostgresConfig {
  return { ...ours.config, url: `postgres://postgres@127.0.0.1:${port}/postgres` };
}

async function floorOf({ server }: Place): Promise<unknown> {
  return (await server.query("SELECT floor::int, version::int FROM idmint.tag"))[0];
}

function foreign(): object {
  const metadata = { store_id: other.storeId, pinned: ours.storeId };
  return { reason: "STORE_UNAVAILABLE", retryable: true, metadata };
}

function poll(renewal: NodeRenewal): Parameters<Store["changes"]>[0] {
  return { since: 0n, watched: [], limit: 10, renewal };
}

test("of another store nothing is believed, nothing is written there, and the right one is taken up again", async () => {
  const proxy = await TcpProxy.start(targetOf(ours));
  onTestFinished(() => proxy.close());
  const store = await openStore(through(proxy));
  onTestFinished(() => store.close());
  await store.changes(poll(nodeRenewalOf("n")));
  const { base } = await granted(store, "t");

  proxy.pointAt(targetOf(other));
  const before = await floorOf(other);
  const calls: (() => Promise<unknown>)[] = [
    () => store.grant([wish("t")]),
    () => store.changes(poll(nodeRenewalOf("n", { count: 2n }))),
    () => store.getTags(["t"]),
    () => store.createTag(settingsOf("new")),
    () => store.readTokens(undefined),
  ];
  for (const call of calls) {
    // The connections of before ended, which is an outage for whoever finds out.
    await expect
      .poll(() => call().then(String, (error: unknown) => error), { timeout: 5_000 })
      .toMatchObject(foreign());
  }
  expect(await floorOf(other)).toEqual(before);
  expect(await other.server.query("SELECT id FROM idmint.node")).toEqual([]);
  expect(await other.server.query("SELECT name FROM idmint.tag")).toEqual([{ name: "t" }]);

  proxy.pointAt(targetOf(ours));
  await expect
    .poll(() => store.grant([wish("t")]).catch((error: unknown) => error), { timeout: 5_000 })
    .toMatchObject([{ outcome: "granted" }]);
  const later = await granted(store, "t");
  expect(later.base).toBeGreaterThan(base);
  expect(later.base).toBeLessThan(50_000n);
});

test("connections that are kept while the address turns go on, and new ones are proved", async () => {
  const proxy = await TcpProxy.start(targetOf(ours));
  onTestFinished(() => proxy.close());
  const store = await openStore({ ...through(proxy), poolSize: 2 });
  onTestFinished(() => store.close());
  await granted(store, "t");
  proxy.pointAt(targetOf(other), { keep: true });
  const before = await floorOf(other);
  const answers = await Promise.allSettled(
    Array.from({ length: 8 }, () => store.grant([wish("t")])),
  );
  for (const answer of answers) {
    if (answer.status === "rejected") expect(answer.reason).toMatchObject(foreign());
    else expect(answer.value).toMatchObject([{ outcome: "granted" }]);
  }
  expect(await floorOf(other)).toEqual(before);
});

function expecting(storeId: string): StorePins {
  return new StorePins({
    known: { stores: new Map([["", storeId]]) },
    settle: async (_place, id) => id,
  });
}

test("a store that is expected by its id is waited for", async () => {
  await expect(openStore(other.config, expecting(ours.storeId))).rejects.toMatchObject(foreign());
  const store = await openStore(ours.config, expecting(ours.storeId));
  await store.close();
});

test("a session that leads to another store than its connection did grants nothing", async () => {
  const belonging = new Belonging("idmint.store", passingPins().of(""));
  const lent = new Connections({ ...ours.config, poolSize: 1 }, belonging);
  onTestFinished(() => lent.close());
  expect((await grant(lent, [wish("t")]))[0]).toMatchObject({ outcome: "granted" });
  const nameStore = (id: string): Promise<unknown> =>
    ours.server.query(
      `UPDATE idmint.store SET store_id = '${id}', written_by = pg_current_xact_id()::xid`,
    );
  // As if a pooler lent another session, or the store had been made another one.
  await nameStore("another");
  const before = await floorOf(ours);
  for (let time = 0; time < 2; time++) {
    await expect(grant(lent, [wish("t")])).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  }
  expect(await floorOf(ours)).toEqual(before);
  await nameStore(ours.storeId);
  expect((await grant(lent, [wish("t")]))[0]).toMatchObject({ outcome: "granted" });
});

/** Fulfils once what a call ends with is that the place leads to a store that does not belong there. */
async function untilForeign(call: () => Promise<unknown>): Promise<void> {
  await expect
    .poll(() => call().then(String, (error: unknown) => error), { timeout: 5_000 })
    .toMatchObject({
      reason: "STORE_UNAVAILABLE",
      message: expect.stringContaining("another store answers") as string,
    });
}

/** Proxies to both servers, and what turns them to each other's. */
async function twoProxies(): Promise<{
  readonly urlOf: (place: Place, database: string) => string;
  readonly swap: (isSwapped: boolean) => void;
}> {
  const [one, two] = [await TcpProxy.start(targetOf(ours)), await TcpProxy.start(targetOf(other))];
  onTestFinished(async () => {
    await one.close();
    await two.close();
  });
  return {
    urlOf: (place, database) =>
      `postgres://postgres@127.0.0.1:${(place === ours ? one : two).port}/${database}`,
    swap: (isSwapped) => {
      one.pointAt(targetOf(isSwapped ? other : ours));
      two.pointAt(targetOf(isSwapped ? ours : other));
    },
  };
}

test("databases of one store that change places are away, and refused at a start", async () => {
  for (const { server } of [ours, other]) await server.createDatabase("spread");
  const { urlOf, swap } = await twoProxies();
  const databaseOf = (place: Place): PostgresConfig => ({
    ...ours.config,
    url: urlOf(place, "spread"),
  });
  const config: SpreadConfig = {
    backend: "spread",
    databases: new Map([
      ["default", databaseOf(ours)],
      ["b", databaseOf(other)],
    ]),
  };
  await migrateStore(config, { dryRun: false });
  await addToSpread(config);
  const store = await openStore(config);
  onTestFinished(() => store.close());
  const tags = Array.from({ length: 8 }, (_, at) => `t${at}`);
  for (const tag of tags) await store.createTag(settingsOf(tag));
  for (const tag of tags) await granted(store, tag);
  const floors = async (): Promise<unknown> =>
    Promise.all(
      [ours, other].map(({ server }) =>
        server.query("SELECT name, floor::int, version::int FROM idmint.tag ORDER BY 1", "spread"),
      ),
    );
  const before = await floors();
  swap(true);
  for (const tag of tags) await untilForeign(() => store.grant([wish(tag)]));
  expect(await floors()).toEqual(before);
  await expect(openStore(config)).rejects.toMatchObject({ reason: "SCHEMA_MISMATCH" });
  swap(false);
  for (const tag of tags) {
    await expect
      .poll(() => store.grant([wish(tag)]).catch((error: unknown) => error), { timeout: 5_000 })
      .toMatchObject([{ outcome: "granted" }]);
  }
});

test("ticket databases that change places are away; the wrong name is never pinned", async () => {
  const { urlOf, swap } = await twoProxies();
  const configs = new Map<Place, TicketConfig>();
  for (const place of [ours, other]) {
    await place.server.createDatabase("ticket");
    const name = place === ours ? "x" : "y";
    const its = { ...ours.config, name, url: urlOf(place, "ticket") };
    configs.set(place, its);
    await migrateTicketDatabase(its, { dryRun: false });
  }
  const [database] = await openTicketDatabases([configs.get(ours) as TicketConfig]);
  onTestFinished(() => database?.close());
  const makeSlots = async (slotsId: string): Promise<void> =>
    database?.make({ slotsId, slots: 4, own: [0, 1], above: 0n });
  swap(true);
  await expect(makeSlots("a")).rejects.toMatchObject({ reason: "SCHEMA_MISMATCH" });
  swap(false);
  await expect
    .poll(() => makeSlots("a").then(() => "made", String), { timeout: 5_000 })
    .toBe("made");
  swap(true);
  await untilForeign(() => makeSlots("b"));
  expect(await other.server.query("SELECT * FROM idmint_ticket.slot", "ticket")).toEqual([]);
  swap(false);
  await expect
    .poll(() => makeSlots("b").then(() => "made", String), { timeout: 5_000 })
    .toBe("made");
});
