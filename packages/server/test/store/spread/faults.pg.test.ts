// Tags in several databases of a real PostgreSQL: moved under load by movers that are killed, cut off, configured wrong.
import type { Store } from "@idmint/core/server";
import { type ChildProcess, spawn } from "node:child_process";
import { builtOf } from "@idmint/testkit";
import { createTestDatabase, type TestDatabase, TestPostgres } from "@idmint/testkit/postgres";
import {
  granted,
  NO_CHECK,
  reasonOf,
  sequenceOf,
  settingsOf,
  wish,
} from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test } from "vitest";
import {
  addToSpread,
  migrateStore,
  moveTagTo,
  openStore,
  type PostgresConfig,
  type SpreadConfig,
  spreadStatus,
} from "../../../src/store/open-store.ts";
import { open as openPostgres, type PostgresStore } from "../../../src/store/postgres/store.ts";
import { homeOf } from "../../../src/store/spread/home.ts";
import { moveTag } from "../../../src/store/spread/move.ts";
import { generateId, Refusal, startTest } from "../../support.ts";
import { postgresHarness, type SpreadHarness, spreadHarness } from "../harness.ts";

const NAMES = ["b", "default"];

async function spread(...args: Parameters<typeof spreadHarness>): Promise<SpreadHarness> {
  const harness = await spreadHarness(...args);
  onTestFinished(() => harness.remove());
  return harness;
}

async function opened(config: SpreadConfig): Promise<Store> {
  const store = await openStore(config);
  onTestFinished(() => store.close());
  return store;
}

/** Names of tags that are at home there. */
function tagsAt(
  home: string,
  count: number,
  members: readonly string[] = NAMES,
  prefix = "t",
): string[] {
  const names = Array.from({ length: 1_000 }, (_, at) => `${prefix}${at}`);
  return names.filter((name) => homeOf(members, name) === home).slice(0, count);
}

async function placesOf({ config }: SpreadHarness): Promise<Map<string, PostgresStore>> {
  const members = [...config.databases.keys()].toSorted();
  const places = new Map<string, PostgresStore>();
  for (const [name, its] of config.databases) {
    const store = await openPostgres({ ...its, place: { member: name, members } });
    onTestFinished(() => store.close());
    places.set(name, store);
  }
  return places;
}

test("a moved tag goes on above what it issued, for servers that knew it and for new ones", async () => {
  const harness = await spread();
  const [store, other] = [await opened(harness.config), await opened(harness.config)];
  const [tag = ""] = tagsAt("default", 1);
  const made = await store.createTag(settingsOf(tag));
  const first = await granted(store, tag);
  expect(await moveTagTo(harness.config, tag, "b")).toEqual({ moved: true });
  expect(await moveTagTo(harness.config, tag, "b")).toEqual({ moved: false });
  const [record] = await other.getTags([tag]);
  expect(record).toMatchObject({ floor: 10n, createdAtMs: made.createdAtMs, state: "ACTIVE" });
  expect(record?.revision).toBeGreaterThan(made.revision);
  const next = await granted(store, tag, { seenVersion: first.version });
  expect(next).toMatchObject({ base: 11n });
  expect(next.epoch).toBeGreaterThan(first.epoch);
  expect(store.groupOf?.(tag)).toBe("b");
  const listed = await store.listTags({ afterName: "", prefix: "", showDeleted: true, limit: 9 });
  expect(listed).toEqual({ tags: await store.getTags([tag]), unreadable: [] });
  // Deleted and made again, it stays where it is, above all of its ids.
  await other.setTagState(tag, "DELETED", NO_CHECK);
  const late = await opened(harness.config);
  expect((await late.createTag(settingsOf(tag))).floor).toBe(20n);
  expect(await moveTagTo(harness.config, tag, "default")).toEqual({ moved: true });
  expect((await granted(other, tag, { seenVersion: next.version })).base).toBe(21n);
  const watched = [{ tag, version: next.version }];
  expect((await other.changes({ since: 0n, watched, limit: 9 })).behind).toEqual([]);
});

test("a move that is cut off after any step grants nothing twice, and is finished by the next", async () => {
  const harness = await spread();
  const places = await placesOf(harness);
  const store = await opened(harness.config);
  const [tag = ""] = tagsAt("default", 1);
  await store.createTag(sequenceOf(tag));
  let last = 0n;
  let seenVersion = 0n;
  const steps = ["left", "arrived", "gone", "opened"];
  for (const [at, cut] of steps.entries()) {
    const to = at % 2 === 0 ? "b" : "default";
    const cutOff = (step: string): void => {
      if (step === cut) throw new Error("cut off");
    };
    await expect(moveTag(places, tag, to, cutOff)).rejects.toThrow("cut off");
    const want = {
      ...wish(tag, { count: 5, minCount: 5, seenVersion }),
      kind: "sequence" as const,
    };
    // A server's poll may see any step: it must not look for the tag where it has not arrived.
    const watched = [{ tag, version: seenVersion }];
    expect((await store.changes({ since: 0n, watched, limit: 9 })).behind).toEqual([]);
    expect((await store.changes({ since: 0n, watched, limit: 9 })).behind).toEqual([]);
    const [during] = await store.grant([want]);
    if (cut === "opened") expect(during?.outcome).toBe("granted");
    else expect(during).toEqual({ outcome: "refused", tag, reason: "TAG_MOVED" });
    if (during?.outcome === "granted") last = during.base + 4n;
    expect((await store.getTags([tag])).map(({ name }) => name)).toEqual([tag]);
    expect(await reasonOf(store.createTag(settingsOf(tag)))).toMatch(
      /STORE_UNAVAILABLE|TAG_EXISTS/,
    );
    const elsewhere = to === "b" ? "default" : "b";
    if (cut !== "opened") {
      expect(await reasonOf(moveTag(places, tag, elsewhere))).toBe("INVALID_ARGUMENT");
    }
    await moveTag(places, tag, to);
    const [after] = await store.grant([want]);
    if (after?.outcome !== "granted")
      throw new Error(`refused after the move: ${JSON.stringify(after)} ${cut}`);
    expect(after.base).toBe(last + 1n);
    last = after.base + 4n;
    seenVersion = after.version;
  }
});

/** A mover that runs until it is killed; `lines` has what it did. */
function mover(config: SpreadConfig, tag: string): { child: ChildProcess; lines: string[] } {
  const file = builtOf("packages/server/test/store/spread/move-tag-child.ts");
  const args = [JSON.stringify([...config.databases]), tag, "b", "default"];
  const child = spawn(process.execPath, ["-C", "idmint-source", file, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  child.stdout?.on("data", (data: Buffer) => lines.push(...data.toString().split("\n")));
  onTestFinished(() => void child.kill("SIGKILL"));
  return { child, lines };
}

test(
  "under load, with movers that are killed, no id is granted twice",
  { timeout: 60_000 },
  async () => {
    const harness = await spread();
    const stores = [await opened(harness.config), await opened(harness.config)];
    const [tag = ""] = tagsAt("b", 1);
    await stores[0]?.createTag(settingsOf(tag));
    const bases = new Set<bigint>();
    const load = { isOver: false };
    let grants = 0;
    const lanes = stores.map(async (store) => {
      let seenVersion = 0n;
      while (!load.isOver) {
        const [grant] = await store.grant([wish(tag, { seenVersion })]);
        if (grant?.outcome === "granted") {
          expect(bases.has(grant.base)).toBe(false);
          bases.add(grant.base);
          seenVersion = grant.version;
          grants++;
        } else {
          expect(grant).toMatchObject({ reason: "TAG_MOVED" });
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      }
    });
    let moves = 0;
    for (let kill = 0; kill < 5; kill++) {
      const { child, lines } = mover(harness.config, tag);
      const wanted = 8 + kill * 3;
      await expect
        .poll(() => lines.length, { timeout: 20_000, interval: 1 })
        .toBeGreaterThan(wanted);
      child.kill("SIGKILL");
      moves += lines.filter((line) => line === "moved").length;
    }
    load.isOver = true;
    await Promise.all(lanes);
    expect(moves).toBeGreaterThan(4);
    expect(grants).toBeGreaterThan(20);
    // All bases are of grants of ten: none overlaps if none is the same and all are of the same grid.
    expect([...bases].every((base) => base % 10n === 1n)).toBe(true);
  },
);

test(
  "a server issues the ids of a sequence in their order while it moves",
  { timeout: 120_000 },
  async () => {
    const { config } = await spread();
    const store = await openStore(config);
    const server = await startTest({ parts: { store } });
    const [tag = ""] = tagsAt("default", 1);
    await store.createTag(sequenceOf(tag));
    const moving = { isOver: false };
    const issued: bigint[] = [];
    const refusals: string[] = [];
    const load = (async (): Promise<void> => {
      while (!moving.isOver) {
        try {
          issued.push((await generateId(server, tag)).id);
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
          // Callers try this again by themselves; anything else would say that the tag was lost.
          if (error.code !== "UNAVAILABLE") refusals.push(`${error.code}: ${error.message}`);
        }
      }
    })();
    const goesOn = async (): Promise<void> => {
      const before = issued.length;
      // Far more than it takes, on a machine that does much else too.
      const isDone = (): boolean => refusals.length > 0 || issued.length > before + 5;
      await expect.poll(isDone, { timeout: 25_000 }).toBe(true);
      expect(refusals).toEqual([]);
    };
    try {
      for (const to of ["b", "default", "b"]) {
        await goesOn();
        expect(await moveTagTo(config, tag, to)).toEqual({ moved: true });
      }
      await goesOn();
    } finally {
      moving.isOver = true;
      await load;
    }
    expect(issued.every((id, at) => at === 0 || id > (issued[at - 1] ?? 0n))).toBe(true);
    expect(refusals).toEqual([]);
  },
);

test("a database that dies leaves the tags of the others alone", { timeout: 60_000 }, async () => {
  const mortal = await TestPostgres.start();
  onTestFinished(() => mortal.close());
  const given = new Map<string, TestDatabase>([["b", await mortal.createDatabase()]]);
  const { config } = await spread(["default", "b"], given, { timeoutMs: 1_000 });
  const store = await openStore(config);
  const server = await startTest({ parts: { store } });
  const [dead = "", more = ""] = tagsAt("b", 2);
  const alive = tagsAt("default", 40);
  for (const name of [dead, ...alive]) {
    await store.createTag(settingsOf(name, { min: 1, max: 1, holdForMs: 1_000 }));
  }
  await generateId(server, dead);
  await generateId(server, alive[0] ?? "");
  await mortal.stop("kill");
  const asked = Promise.allSettled([dead, more, dead].map((name) => generateId(server, name)));
  let slowest = 0;
  for (const name of alive) {
    const startedAt = performance.now();
    await generateId(server, name);
    slowest = Math.max(slowest, performance.now() - startedAt);
  }
  expect(slowest).toBeLessThan(900);
  expect((await asked).slice(1).every(({ status }) => status === "rejected")).toBe(true);
  const poll = await store.changes({ since: 0n, watched: [], limit: 100 });
  expect(poll.changed).toHaveLength(alive.length);
  // A server starts without it, and finds it when it is back.
  const late = await opened(config);
  expect((await granted(late, alive[1] ?? "")).outcome).toBe("granted");
  expect(await reasonOf(late.grant([wish(dead)]))).toBe("STORE_UNAVAILABLE");
  await mortal.start();
  expect((await granted(late, dead)).outcome).toBe("granted");
  const changedSince = async (): Promise<string[]> => {
    const { changed } = await store.changes({ since: poll.revision, watched: [], limit: 100 });
    return changed.map(({ name }) => name);
  };
  await expect.poll(changedSince, { timeout: 10_000 }).toEqual([dead]);
});

test("a set of databases that is not the recorded one is refused", async () => {
  const { config } = await spread();
  const { databases } = config;
  const only = databases.get("default");
  const b = databases.get("b");
  if (only === undefined || b === undefined) throw new Error("two databases");
  const third = await postgresHarness();
  onTestFinished(() => third.remove());
  const set = (...list: (readonly [string, typeof only])[]): SpreadConfig => ({
    backend: "spread",
    databases: new Map(list),
  });
  const wrong = [
    only,
    set(["default", b], ["b", only]),
    set(["default", only], ["c", b]),
    set(["default", only], ["b", b], ["c", third.config]),
    set(["default", only], ["b", third.config]),
  ];
  for (const one of wrong) {
    expect(await reasonOf(openStore(one))).toBe("SCHEMA_MISMATCH");
  }
  await expect(openStore(only)).rejects.toThrow("idmint store spread add");
  // What is of another store, or has tags of its own, is not added.
  const theirs = await openStore(third.config);
  await theirs.createTag(settingsOf("t"));
  await theirs.close();
  const withThird = set(["default", only], ["b", b], ["c", third.config]);
  expect(await reasonOf(addToSpread(withThird))).toBe("INVALID_ARGUMENT");
  const { config: other } = await spread();
  const foreign = other.databases.get("b");
  if (foreign === undefined) throw new Error("two databases");
  const mixed = set(["default", only], ["b", foreign]);
  expect(await reasonOf(addToSpread(mixed))).toBe("INVALID_ARGUMENT");
  await expect(openStore(mixed)).rejects.toThrow("INVALID_ARGUMENT");
  await expect(openStore(config).then((store) => store.close())).resolves.toBeUndefined();
});

test("a further database becomes home of new tags; all others stay, and none is made twice", async () => {
  const harness = await postgresHarness();
  onTestFinished(() => harness.remove());
  const alone = await openStore(harness.config);
  onTestFinished(() => alone.close());
  const names = Array.from({ length: 30 }, (_, at) => `t${at}`);
  for (const name of names) {
    await alone.createTag(settingsOf(name));
    await granted(alone, name);
  }
  await alone.setTagState("t0", "DELETED", NO_CHECK);
  const databases = new Map([["default", harness.config]]);
  for (const name of ["b", "c"]) {
    const database = await createTestDatabase();
    onTestFinished(() => database.close());
    databases.set(name, { ...harness.config, url: database.url });
    const config: SpreadConfig = { backend: "spread", databases: new Map(databases) };
    await migrateStore(config, { dryRun: false });
    expect(await reasonOf(openStore(config))).toBe("SCHEMA_MISMATCH");
    expect(await addToSpread(config)).toEqual({ added: [name] });
    expect(await addToSpread(config)).toEqual({ added: [] });
    const store = await opened(config);
    const made = await Promise.all(names.map((tag) => store.createTag(settingsOf(tag))));
    expect(made.every(({ floor, version }) => floor >= 10n && version > 0n)).toBe(true);
    await store.setTagState("t0", "DELETED", NO_CHECK);
    const fresh = tagsAt(name, 5, [...databases.keys()], `${name}-`);
    for (const tag of fresh) await store.createTag(settingsOf(tag));
  }
  // A server of before goes on with ids, and makes and changes no tags.
  expect((await granted(alone, "t1")).base).toBe(11n);
  expect(await reasonOf(alone.createTag(settingsOf("new")))).toBe("SCHEMA_MISMATCH");
  const standings = await spreadStatus({ backend: "spread", databases });
  const here = standings.map(({ here: tags }) => tags);
  expect(here.reduce((sum, tags) => sum + tags, 0)).toBe(40);
  expect(here.slice(1).every((tags) => tags > 0)).toBe(true);
});

test("databases without a schema are told as such, and not as away", async () => {
  const databases = new Map<string, PostgresConfig>();
  for (const name of NAMES) {
    const database = await createTestDatabase();
    onTestFinished(() => database.close());
    const allowUnsafe = ["fsync", "full_page_writes"];
    databases.set(name, { backend: "postgres", url: database.url, allowUnsafe });
  }
  const config: SpreadConfig = { backend: "spread", databases };
  for (const { illness } of await spreadStatus(config)) {
    expect(illness).toContain("SCHEMA_MISMATCH: the database has no schema of idmint's yet");
  }
  expect(await reasonOf(addToSpread(config))).toBe("SCHEMA_MISMATCH");
});

test("a database that was restored from before a move forgets no move when it is accepted", async () => {
  const harness = await spread();
  const [tag = ""] = tagsAt("default", 1);
  const store = await opened(harness.config);
  await store.createTag(settingsOf(tag));
  await granted(store, tag);
  const old = harness.databases.get("default");
  await old?.query("CREATE TABLE public.backup AS SELECT * FROM idmint.tag");
  await moveTagTo(harness.config, tag, "b");
  for (let i = 0; i < 5; i++) await granted(store, tag);
  await old?.query("DELETE FROM idmint.tag; INSERT INTO idmint.tag SELECT * FROM public.backup");
  await old?.query("UPDATE idmint.store SET identity = 'another'");
  const late = await opened(harness.config);
  expect((await late.changes({ since: 0n, watched: [], limit: 9 })).fenced).toContain("default");
  expect(await late.accept(0n)).toMatchObject({ tags: expect.any(Number) as number });
  const again = await opened(harness.config);
  expect((await granted(again, tag)).base).toBe(61n);
});
