// The settings of every kind of tag.
import type { TagSettings } from "@idmint/core/server";
import { expect } from "vitest";
import {
  granted,
  grantedOf,
  NO_CHECK,
  raised,
  reasonOf,
  redisSequenceOf,
  redisSnowflakeOf,
  sequenceOf,
  settingsOf,
  type Suite,
  ticketOf,
} from "./support.ts";

const DAY_MS = 86_400_000;
const daily = { unit: "DAY", timeZone: "Asia/Shanghai", keepForMs: 400 * DAY_MS } as const;

export function kindCases(suite: Suite): void {
  const all: readonly TagSettings[] = [
    settingsOf("t", { start: 5n, min: 3, max: 30, holdForMs: 5_000, maxAgeMs: 6_000 }),
    settingsOf("t", { tinyidStep: 100_000 }),
    sequenceOf("t", { start: 2n ** 60n }),
    sequenceOf("t", { periods: { unit: "WEEK", timeZone: "UTC", keepForMs: DAY_MS } }),
    redisSequenceOf("t", { server: "eu-1", step: 1_000_000_000 }),
    redisSnowflakeOf("t", { shard: 4_095, timeOriginMs: 0, redisServer: "b" }),
    ticketOf("t", { start: 9n, slots: 1_024 }),
  ];

  for (const settings of all) {
    const what = `${settings.kind.kind} ${JSON.stringify(settings.kind, bigintsAsText)}`;
    suite(`settings come back as they were made: ${what}`, async (store, open) => {
      const tag = await store.createTag(settings);
      expect(tag).toMatchObject(settings);
      expect(tag).toMatchObject({ version: 0n, generation: 0n, periodStart: "" });
      const other = await open();
      expect(await other.getTags(["t"])).toEqual([tag]);
      expect(await other.createTag(settings)).toEqual(tag);
      const { changed } = await other.changes({ since: 0n, watched: [], limit: 2 });
      expect(changed).toEqual([tag]);
      const changes = all.filter((one) => one !== settings).map((one) => other.createTag(one));
      expect(new Set(await Promise.all(changes.map(reasonOf)))).toEqual(new Set(["TAG_EXISTS"]));
    });
  }

  suite("the Redis server that servers chose makes no other tag", async (store) => {
    const tag = await store.createTag(redisSequenceOf("t", { server: "a" }));
    expect(await store.createTag(redisSequenceOf("t", { server: "b" }))).toEqual(tag);
    const work = store.createTag(redisSequenceOf("t", { server: "b", step: 5 }));
    expect(await reasonOf(work)).toBe("TAG_EXISTS");
    const flake = await store.createTag(redisSnowflakeOf("f", { redisServer: "a" }));
    expect(await store.createTag(redisSnowflakeOf("f", { redisServer: "b" }))).toEqual(flake);
  });

  suite("the slots that servers made make no other tag, and stay with its name", async (store) => {
    const tag = await store.createTag(ticketOf("t", { slotsId: "t.1" }));
    expect(await store.createTag(ticketOf("t", { slotsId: "t.2" }))).toEqual(tag);
    await store.setTagState("t", "DELETED", NO_CHECK);
    const again = await store.createTag(ticketOf("t", { slotsId: "t.3", start: 7n }));
    expect(again.kind).toEqual({ kind: "ticket", start: 7n, slots: 60, slotsId: "t.1" });
    expect(again.floor).toBe(6n);
  });

  suite("of a ticket tag nothing that its ids are made of ever changes", async (store) => {
    const tag = await store.createTag(ticketOf("t"));
    for (const other of [
      ticketOf("t", { start: 2n }),
      ticketOf("t", { slots: 61 }),
      ticketOf("t", { ceiling: 9n }),
    ]) {
      const work = store.updateTag("t", changeTo(other), NO_CHECK);
      expect(await reasonOf(work)).toBe("FIELD_IMMUTABLE");
    }
    expect(await store.getTags(["t"])).toEqual([tag]);
  });

  immutabilityCases(suite);
  tombstoneCases(suite);
}

function bigintsAsText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

function changeTo({ order, ceiling, kind }: TagSettings) {
  return { settings: { order, ceiling, kind } };
}

function immutabilityCases(suite: Suite): void {
  const sequence = sequenceOf("t");
  const periodic = sequenceOf("t", { periods: daily });
  const redis = redisSequenceOf("t");
  const flake = redisSnowflakeOf("t");
  const cases: readonly [string, TagSettings, TagSettings][] = [
    ["start of a sequence", sequence, sequenceOf("t", { start: 2n })],
    ["periods of a sequence", sequence, periodic],
    ["having no periods", periodic, sequence],
    ["unit", periodic, sequenceOf("t", { periods: { ...daily, unit: "YEAR" } })],
    ["time zone", periodic, sequenceOf("t", { periods: { ...daily, timeZone: "UTC" } })],
    ["backend", sequence, { ...redis, ceiling: sequence.ceiling }],
    ["kind", sequence, settingsOf("t", { order: "STRICT" })],
    ["shard of a snowflake", flake, redisSnowflakeOf("t", { shard: 1 })],
    ["time origin of a snowflake", flake, redisSnowflakeOf("t", { timeOriginMs: 1 })],
  ];
  for (const [what, from, to] of cases) {
    suite(`the ${what} changes before the first id, and not after it`, async (store) => {
      const issue = async (): Promise<unknown> => {
        const [row] = await store.getTags(["t"]);
        if (row?.kind.kind === "segment") return granted(store, "t");
        const counts = row?.kind.kind === "redis_snowflake" || redisOf(row) !== undefined;
        return counts ? raised(store, "t", { by: 1n }) : grantedOf(store, "t");
      };
      await store.createTag(from);
      expect(await store.updateTag("t", changeTo(to), NO_CHECK)).toMatchObject(to);
      await store.updateTag("t", changeTo(from), NO_CHECK);
      await issue();
      const before = await store.getTags(["t"]);
      const work = store.updateTag("t", changeTo(to), NO_CHECK);
      expect(await reasonOf(work)).toBe("FIELD_IMMUTABLE");
      expect(await store.getTags(["t"])).toEqual(before);
    });
  }

  suite(
    "how long periods are kept, the step and the Redis server change at any time",
    async (store) => {
      await store.createTag(periodic);
      await grantedOf(store, "t");
      const longer = sequenceOf("t", { periods: { ...daily, keepForMs: DAY_MS } });
      expect(await store.updateTag("t", changeTo(longer), NO_CHECK)).toMatchObject(longer);
      await store.createTag({ ...redis, name: "r" });
      await raised(store, "r", { by: 1n });
      const moved = redisSequenceOf("r", { server: "b", step: 5 });
      expect(await store.updateTag("r", changeTo(moved), NO_CHECK)).toMatchObject(moved);
    },
  );
}

function redisOf(row: TagSettings | undefined): unknown {
  return row?.kind.kind === "sequence" ? row.kind.redis : undefined;
}

function tombstoneCases(suite: Suite): void {
  suite("over a sequence with periods only one with the same periods is made", async (store) => {
    await store.createTag(sequenceOf("t", { periods: daily }));
    const { period } = await grantedOf(store, "t", 3);
    await store.setTagState("t", "DELETED", NO_CHECK);
    const weekly = sequenceOf("t", { periods: { ...daily, unit: "WEEK" } });
    for (const settings of [weekly, sequenceOf("t"), settingsOf("t")]) {
      expect(await reasonOf(store.createTag(settings))).toBe("INVALID_ARGUMENT");
    }
    const again = await store.createTag(sequenceOf("t", { periods: daily }));
    expect(again).toMatchObject({ floor: 3n, periodStart: period?.start, generation: 1n });
    expect(await grantedOf(store, "t")).toMatchObject({ base: 4n, period });
  });

  suite("a sequence without periods, or an unissued one, can get others", async (store) => {
    await store.createTag(sequenceOf("a", { periods: daily }));
    await store.createTag(sequenceOf("b"));
    await grantedOf(store, "b", 5);
    for (const tag of ["a", "b"]) await store.setTagState(tag, "DELETED", NO_CHECK);
    await store.createTag(sequenceOf("a"));
    expect(await grantedOf(store, "a")).toMatchObject({ base: 1n, period: undefined });
    await store.createTag(sequenceOf("b", { periods: daily }));
    expect(await grantedOf(store, "b")).toMatchObject({ base: 6n, period: { unit: "DAY" } });
  });

  suite("over a ticket tag only the same is made: others count its ids", async (store) => {
    await store.createTag(ticketOf("t"));
    await store.setTagState("t", "DELETED", NO_CHECK);
    for (const settings of [settingsOf("t"), sequenceOf("t"), ticketOf("t", { slots: 61 })]) {
      expect(await reasonOf(store.createTag(settings))).toBe("INVALID_ARGUMENT");
    }
    expect(await store.createTag(ticketOf("t"))).toMatchObject({ state: "ACTIVE", epoch: 3n });
  });
}
