// What sequences rest on in PostgreSQL alone.
import type { Store } from "@idmint/core/server";
import {
  assertDisjoint,
  grantedOf,
  raised,
  raiseOf,
  reasonOf,
  redisSequenceOf,
  redisSnowflakeOf,
  refusalOf,
  sequenceOf,
  settingsOf,
} from "@idmint/testkit/store-suite";
import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { openStore } from "../../../src/store/open-store.ts";
import { type PostgresHarness, postgresHarness } from "../harness.ts";

const daily = { unit: "DAY", timeZone: "UTC", keepForMs: 86_400_000 } as const;

async function withStore(
  work: (store: Store, harness: PostgresHarness) => Promise<void>,
): Promise<void> {
  const harness = await postgresHarness();
  const store = await harness.open();
  try {
    await store.createTag(sequenceOf("t"));
    await store.createTag(sequenceOf("daily", { periods: daily }));
    await store.createTag(redisSequenceOf("r", { step: 50 }));
    await work(store, harness);
  } finally {
    await store.close();
    await harness.remove();
  }
}

/** The SQLSTATE that a call of next_max_normal_sequence fails with, or the maximum it answers. */
async function nextMax(url: string, tag: string, step: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const text = "SELECT idmint.next_max_normal_sequence($1, $2) AS max";
    const { rows } = await client.query<{ max: string }>(text, [tag, step]);
    return rows[0]?.max ?? "";
  } catch (error) {
    return `refused ${(error as { code?: string }).code}`;
  } finally {
    await client.end();
  }
}

test("rows changed by hand are refused in every way there is", async () => {
  await withStore(async (store, { config, database }) => {
    await grantedOf(store, "t", 5);
    await raised(store, "r", { by: 100n });
    await database.query("UPDATE idmint.tag SET floor = 1 WHERE name IN ('t', 'r')");
    expect(await refusalOf(store, "t")).toBe("STORE_EPOCH_CHANGED");
    expect(await store.raise(raiseOf("r", { by: 1n }))).toMatchObject({
      reason: "STORE_EPOCH_CHANGED",
      detail: expect.stringContaining("changed by hand") as string,
    });
    expect(await nextMax(config.url, "r", "5")).toBe("refused 55000");
    expect((await grantedOf(store, "daily")).base).toBe(1n);
  });
});

for (const [what, change] of [
  ["is another database", "identity = identity || '0', written_by = pg_current_xact_id()::xid"],
  ["was loaded from a dump", "revision = revision"],
] as const) {
  test(`a store that ${what} raises nothing, and lists no periods`, async () => {
    await withStore(async (store, { config, database }) => {
      await database.query(`UPDATE idmint.store SET ${change}`);
      expect(await refusalOf(store, "t")).toBe("STORE_EPOCH_CHANGED");
      const answer = await store.raise(raiseOf("r", { by: 1n }));
      expect(answer).toMatchObject({ outcome: "refused", reason: "STORE_EPOCH_CHANGED" });
      expect(await nextMax(config.url, "r", "5")).toBe("refused 55000");
      const list = store.listPeriods({ tag: "daily", before: "", limit: 1 });
      expect(await reasonOf(list)).toBe("STORE_EPOCH_CHANGED");
      await store.accept(10n);
      expect((await raised(store, "r", { by: 1n })).before).toBe(10n);
      expect(await nextMax(config.url, "r", "5")).toBe("16");
    });
  });
}

test("the period is told by the store's clock, whatever the server's says", async () => {
  await withStore(async (store, harness) => {
    const text = "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS today";
    const today = async () => (await harness.database.query(text))[0]?.["today"];
    const before = await today();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3 * 86_400_000 });
    onTestFinished(() => void vi.useRealTimers());
    const { period, base } = await grantedOf(store, "daily");
    // The day may have ended meanwhile.
    expect([before, await today()]).toContain(period?.start);
    expect(Date.now() - (period?.endsAtMs ?? 0)).toBeGreaterThan(86_400_000);
    expect(base).toBe(1n);
  });
});

/** Sets this server's clock, not the store's. */
function setClock(aheadMs: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now: realNow() + aheadMs });
}

function realNow(): number {
  return performance.timeOrigin + performance.now();
}

test("a store's clock that is ahead of the server's begins no period, and the tag goes on in its own", async () => {
  await withStore(async (store) => {
    onTestFinished(() => void vi.useRealTimers());
    setClock(-3 * 86_400_000);
    const before = await grantedOf(store, "daily", 4);
    const day = new Date(Date.now()).toISOString().slice(0, 10);
    expect(before.period).toMatchObject({ start: day, doubt: "HELD_BACK" });
    expect(await grantedOf(store, "daily")).toMatchObject({ base: 5n, period: before.period });
    setClock(0);
    const today = await grantedOf(store, "daily", 2);
    expect(today.base).toBe(1n);
    expect(today.period?.start.localeCompare(day)).toBe(1);
    expect(today.period).not.toHaveProperty("doubt");
    const [ended] = await store.listPeriods({ tag: "daily", before: "", limit: 1 });
    expect(ended).toMatchObject({ start: day, lastId: 5n });
    // A server whose clock is behind keeps the period that another one began.
    setClock(-3 * 86_400_000);
    expect(await grantedOf(store, "daily")).toMatchObject({
      base: 3n,
      period: { start: today.period?.start, doubt: "AHEAD" },
    });
  });
});

test("a period of the row that is later than the clock's stays, until its own ids are continued", async () => {
  await withStore(async (store, harness) => {
    const today = await grantedOf(store, "daily", 3);
    await harness.shiftPeriods(1);
    const tomorrow = await grantedOf(store, "daily", 2);
    expect(tomorrow.base).toBe(4n);
    expect(tomorrow.period?.start.localeCompare(today.period?.start ?? "")).toBe(1);
    const [row] = await store.getTags(["daily"]);
    expect(row?.periodStart).toBe(tomorrow.period?.start);
    // The day that the row was in all the while has come.
    await harness.shiftPeriods(-1);
    expect(await grantedOf(store, "daily")).toMatchObject({ base: 6n });
    expect(await store.listPeriods({ tag: "daily", before: "", limit: 5 })).toEqual([]);
  });
});

test("a grant that waited while an operator went back begins no period from its older snapshot", async () => {
  await withStore(async (store, harness) => {
    await grantedOf(store, "daily", 3);
    await harness.shiftPeriods(-2);
    // The period that is left; the clock is in it, so whoever goes back from it begins it again at once.
    const left = await grantedOf(store, "daily", 7);
    const other = await harness.open();
    const client = new pg.Client({ connectionString: harness.config.url });
    await client.connect();
    await client.query("BEGIN");
    await client.query("SELECT FROM idmint.tag WHERE name = 'daily' FOR UPDATE");
    const start = new Date(Date.parse(left.period?.start ?? "") - 2 * 86_400_000);
    const period = { start: start.toISOString().slice(0, 10), floor: undefined };
    const back = store.returnToPeriod("daily", period, { expectedRevision: undefined });
    await waiters(harness, 1);
    const waiting = grantedOf(other, "daily");
    await waiters(harness, 2);
    await client.query("COMMIT");
    await client.end();
    expect((await back).tag.floor).toBe(3n);
    expect(await waiting).toMatchObject({ base: 8n, period: { start: left.period?.start } });
    await other.close();
  });
});

/** Returns when so many sessions wait for a lock. */
async function waiters({ database }: PostgresHarness, count: number): Promise<void> {
  const text =
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  await expect.poll(async () => (await database.query(text))[0]?.["n"]).toBe(count);
}

test("the clock is read when the lock is had", async () => {
  await withStore(async (store, harness) => {
    await grantedOf(store, "daily");
    await harness.shiftPeriods(-1);
    const holder = harness.database.query(`BEGIN;
      SELECT FROM idmint.tag WHERE name = 'daily' FOR UPDATE;
      SELECT pg_sleep(1);
      SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS released_ms; COMMIT;
      SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS released_ms`);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const askedMs = Date.now();
    await grantedOf(store, "daily");
    await holder;
    const [ended] = await store.listPeriods({ tag: "daily", before: "", limit: 1 });
    expect((ended?.endedAtMs ?? 0) - askedMs).toBeGreaterThan(400);
  });
});

test("grants of periods touch no index", async () => {
  const harness = await postgresHarness();
  const store = await harness.open();
  await store.createTag(sequenceOf("daily", { periods: daily }));
  await store.createTag(redisSequenceOf("r"));
  for (let i = 0; i < 50; i++) {
    await grantedOf(store, "daily");
    await raised(store, "r", { by: 1n, newGeneration: true });
  }
  // The end of its sessions makes the counts of a store known.
  await store.close();
  const counts =
    "SELECT n_tup_upd AS all, n_tup_hot_upd AS hot FROM pg_stat_all_tables WHERE relname = 'tag'";
  const seen = { all: 0, hot: 0 };
  await expect
    .poll(
      async () => {
        const [row] = await harness.database.query(counts);
        Object.assign(seen, { all: Number(row?.["all"]), hot: Number(row?.["hot"]) });
        return seen.all;
      },
      { timeout: 10_000 },
    )
    .toBe(100);
  // None would be where an index has a column that changed; a page that is full for a moment costs a few.
  expect(seen.hot).toBeGreaterThan(80);
  await harness.remove();
});

test("a time zone that only the server knows is refused", async () => {
  await withStore(async (store, { database }) => {
    // ICU keeps a name that the time zone database gave up.
    const timeZone = "US/Pacific-New";
    expect(new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone).not.toBe("");
    expect(
      await database.query(`SELECT FROM pg_timezone_names WHERE name = '${timeZone}'`),
    ).toEqual([]);
    const make = store.createTag(sequenceOf("new", { periods: { ...daily, timeZone } }));
    await expect(make).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
      violations: [
        {
          field: "tag.sequence.time_zone",
          description: expect.stringContaining("PostgreSQL") as string,
        },
      ],
    });
  });
});

test("the maxima of sequences that count in Redis are in a view", async () => {
  await withStore(async (store, { database }) => {
    await store.createTag(redisSnowflakeOf("flake"));
    await store.createTag(redisSequenceOf("gone"));
    await store.setTagState("gone", "DELETED", undefined);
    await raised(store, "r", { by: 100n });
    expect(await database.query("SELECT * FROM idmint.normal_sequence")).toEqual([
      { name: "r", current_max_id: "100", increment_step: "50" },
    ]);
  });
});

test("next_max_normal_sequence raises the maximum, for its caller alone", async () => {
  await withStore(async (store, { config }) => {
    await raised(store, "r", { by: 100n, newGeneration: true });
    expect(await nextMax(config.url, "r", "50")).toBe("150");
    const [row] = await store.getTags(["r"]);
    expect(row).toMatchObject({ floor: 150n, version: 2n, generation: 2n });
    // Our servers see a row of theirs, and a new generation, under which Redis starts anew.
    expect(await raised(store, "r", { by: 50n, seenVersion: 2n })).toMatchObject({
      before: 150n,
      floor: 200n,
      generation: 2n,
    });
  });
});

test("next_max_normal_sequence refuses what a raise refuses", async () => {
  await withStore(async (store, { config }) => {
    const { url } = config;
    await store.createTag(settingsOf("segment"));
    await store.createTag(redisSnowflakeOf("flake"));
    await store.createTag(redisSequenceOf("small", { ceiling: 10n }));
    for (const tag of ["t", "daily", "segment", "flake"]) {
      expect(await nextMax(url, tag, "5")).toBe("refused 42809");
    }
    expect(await nextMax(url, "nobody", "5")).toBe("refused P0002");
    for (const step of ["0", "-1", "1000000001"]) {
      expect(await nextMax(url, "r", step)).toBe("refused 22023");
    }
    expect(await nextMax(url, "small", "11")).toBe("refused 2200H");
    expect(await nextMax(url, "small", "10")).toBe("10");
    expect(await nextMax(url, "small", "1")).toBe("refused 2200H");
    await store.setTagState("r", "PAUSED", undefined);
    expect(await nextMax(url, "r", "5")).toBe("refused 55000");
    await store.setTagState("r", "DELETED", undefined);
    expect(await nextMax(url, "r", "5")).toBe("refused P0002");
  });
});

test("next_max_normal_sequence judges the row as it is when the lock is had", async () => {
  await withStore(async (store, { config, database }) => {
    const pause = database.query(`BEGIN;
      UPDATE idmint.tag SET state = 'PAUSED', written_by = pg_current_xact_id()::xid WHERE name = 'r';
      SELECT pg_sleep(0.7); COMMIT`);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await nextMax(config.url, "r", "5")).toBe("refused 55000");
    await pause;
    expect((await store.getTags(["r"]))[0]).toMatchObject({ state: "PAUSED", floor: 0n });
  });
});

test("next_max_normal_sequence and raises at once share nothing", async () => {
  await withStore(async (store, harness) => {
    const ranges: { from: bigint; to: bigint }[] = [];
    const callers = [1, 2, 3].map(async (step) => {
      for (let round = 0; round < 15; round++) {
        const max = BigInt(await nextMax(harness.config.url, "r", String(step)));
        ranges.push({ from: max - BigInt(step) + 1n, to: max });
      }
    });
    const other = await harness.open();
    const servers = [store, other].map(async (server) => {
      for (let round = 0; round < 30; round++) {
        const { before, floor } = await raised(server, "r", { by: 7n });
        ranges.push({ from: before + 1n, to: floor });
      }
    });
    await Promise.all([...callers, ...servers]);
    await other.close();
    assertDisjoint(ranges);
    const [row] = await store.getTags(["r"]);
    expect(row).toMatchObject({ floor: 15n * 6n + 60n * 7n, version: 105n, generation: 45n });
  });
});

test("next_max_normal_sequence is undone with its transaction, and commits as a store does", async () => {
  await withStore(async (store, { config, database }) => {
    await database.query(
      "BEGIN; SELECT idmint.next_max_normal_sequence('r', 50); ROLLBACK; SELECT 1",
    );
    expect((await store.getTags(["r"]))[0]).toMatchObject({ floor: 0n, version: 0n });
    expect((await raised(store, "r", { by: 1n })).before).toBe(0n);
    const [row] = await database.query(`SET synchronous_commit = off; BEGIN;
      SELECT idmint.next_max_normal_sequence('r', 50);
      SELECT current_setting('synchronous_commit') AS value`);
    expect(row).toEqual({ value: "on" });
    const store2 = await openStore(config);
    expect((await raised(store2, "r", { by: 1n })).before).toBe(1n);
    await store2.close();
  });
});

/** Calls of next_max_normal_sequence under savepoints, of one transaction each, and the maximum that is left. */
const SAVEPOINTS: readonly (readonly [string, string, bigint])[] = [
  ["in a savepoint", "SAVEPOINT a; CALL; RELEASE a;", 5n],
  ["in a savepoint that stays open", "SAVEPOINT a; CALL;", 5n],
  [
    "in nested savepoints",
    "SAVEPOINT a; CALL; SAVEPOINT b; CALL; SAVEPOINT c; RELEASE b; CALL;",
    15n,
  ],
  ["after a rollback to a savepoint", "SAVEPOINT a; CALL; ROLLBACK TO a; CALL;", 5n],
  ["before a rollback to a savepoint", "CALL; SAVEPOINT a; CALL; ROLLBACK TO a;", 5n],
  [
    "of an outer savepoint, after an inner one was rolled back",
    "SAVEPOINT a; CALL; SAVEPOINT b; CALL; ROLLBACK TO b; RELEASE a;",
    5n,
  ],
  [
    "several times within and without",
    "CALL; CALL; SAVEPOINT a; CALL; CALL; RELEASE a; CALL;",
    25n,
  ],
  [
    "in an EXCEPTION block",
    "DO $$ BEGIN CALL; EXCEPTION WHEN division_by_zero THEN RAISE; END $$;",
    5n,
  ],
  [
    "in a handler, after its block was undone",
    "DO $$ BEGIN CALL; PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN CALL; END $$;",
    5n,
  ],
  [
    "in a loop of EXCEPTION blocks",
    `DO $$ BEGIN FOR i IN 1..4 LOOP BEGIN CALL; PERFORM 1 / (i - 2);
      EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$;`,
    15n,
  ],
];

test("next_max_normal_sequence leaves a row of ours, wherever in a transaction it is called", async () => {
  await withStore(async (store, { database }) => {
    let floor = 0n;
    for (const [where, calls, raisedBy] of SAVEPOINTS) {
      const text = calls.replaceAll("CALL;", (_call, at: number) =>
        calls.lastIndexOf("DO $$", at) === -1
          ? "SELECT idmint.next_max_normal_sequence('r', 5);"
          : "PERFORM idmint.next_max_normal_sequence('r', 5);",
      );
      await database.query(`BEGIN; ${text} COMMIT; SELECT 1`);
      floor += raisedBy;
      const [row] = await database.query(
        "SELECT floor, xmin = written_by AS is_ours FROM idmint.tag WHERE name = 'r'",
      );
      expect({ where, ...row }).toEqual({ where, floor: String(floor), is_ours: true });
      expect((await raised(store, "r", { by: 1n })).before).toBe(floor);
      floor += 1n;
    }
  });
});

test("a row changed by hand under a savepoint is refused there as anywhere", async () => {
  await withStore(async (store, { config, database }) => {
    await database.query(
      "BEGIN; SAVEPOINT a; UPDATE idmint.tag SET floor = 1 WHERE name = 'r'; COMMIT; SELECT 1",
    );
    expect(await nextMax(config.url, "r", "5")).toBe("refused 55000");
    expect(await refusalOf(store, "r")).toBe("STORE_EPOCH_CHANGED");
  });
});
