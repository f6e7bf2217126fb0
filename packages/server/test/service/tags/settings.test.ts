import { MAX_ID, MAX_SAFE_ID } from "@idmint/core";
import type { TagChange, TagSettings } from "@idmint/core/server";
import { isSameButForTuning } from "@idmint/core/kinds";
import { expect, test } from "vitest";
import { NOWHERE, type Placement } from "../../../src/service/tags/placement.ts";
import type { UnguessableKey } from "../../../src/service/issue/tag-text.ts";
import { draftOf, settingsOf, type TagDraft } from "../../../src/service/tags/settings.ts";
import { changeOf } from "../../../src/service/tags/update-mask.ts";

/** A server with Redis and ticket databases. */
const PLACEMENT: Placement = {
  ...NOWHERE,
  redisServerFor: (tag) => `server of ${tag}`,
  hasTicketDatabases: true,
};
const NOW_MS = Date.UTC(2026, 10, 21);
const DAY_MS = 86_400_000;
const PORTS = {
  nowMs: NOW_MS,
  texts: { keys: new Map<number, UnguessableKey>(), offsetAt: () => undefined },
  keys: [],
};

const DEFAULT_SEGMENT = { kind: "segment" } as const;
const DEFAULT_SEQUENCE = { kind: "sequence" } as const;

const uuid = (version: number) => ({ kind: "uuid", version }) as const;

const made = (kind: TagDraft["kind"], more: Partial<TagDraft> = {}): TagSettings => {
  const plain = { name: "t", description: "", order: undefined, ceiling: 0n };
  const draft = { ...plain, format: undefined, unguessable: undefined, kind, ...more };
  const answer = settingsOf(draft, { ...PORTS, placement: PLACEMENT });
  if ("violations" in answer) throw new Error(JSON.stringify(answer.violations));
  return answer.settings;
};

test("a sequence counts in the store, strictly, from 1 to 2^63 − 1, unless told", () => {
  expect(made(DEFAULT_SEQUENCE)).toMatchObject({
    order: "STRICT",
    ceiling: MAX_ID,
    kind: { kind: "sequence", start: 1n, periods: undefined, redis: undefined },
  });
});

test("ended periods are kept for 400 days, unless told", () => {
  const { kind } = made({ ...DEFAULT_SEQUENCE, period: "DAY", time_zone: "Asia/Shanghai" });
  expect(kind).toMatchObject({
    periods: { unit: "DAY", timeZone: "Asia/Shanghai", keepForMs: 400 * DAY_MS },
  });
});

test("a sequence in Redis ends at 2^53 − 1, and is placed on a Redis server when it is made", () => {
  expect(made({ ...DEFAULT_SEQUENCE, backend: "REDIS" })).toMatchObject({
    ceiling: MAX_SAFE_ID,
    kind: { redis: { server: "server of t", step: 10_000 } },
  });
  const there = { ...DEFAULT_SEQUENCE, backend: "REDIS", redis_server: "b", step: 7 } as const;
  expect(made(there, { ceiling: 100n })).toMatchObject({
    ceiling: 100n,
    kind: { redis: { server: "b", step: 7 } },
  });
});

test("a snowflake of Redis begins in 2026 unless told, and a ticket has 60 slots", () => {
  expect(made({ kind: "redis_snowflake", shard: 3 })).toMatchObject({
    order: "UNORDERED",
    ceiling: MAX_ID,
    kind: { shard: 3, timeOriginMs: Date.UTC(2026, 0, 1), redisServer: "server of t" },
  });
  expect(made({ kind: "ticket" })).toMatchObject({
    order: "UNORDERED",
    kind: { kind: "ticket", start: 1n, slots: 60, slotsId: "" },
  });
});

test("settings of every kind, taken as a draft, are the same settings", () => {
  const all = [
    made(DEFAULT_SEGMENT, { order: "PER_CLIENT", description: "d" }),
    made({ ...DEFAULT_SEQUENCE, start: 5n }, { ceiling: 9n }),
    made({ ...DEFAULT_SEQUENCE, period: "WEEK", time_zone: "UTC", keep_for: DAY_MS }),
    made({ ...DEFAULT_SEQUENCE, backend: "REDIS", step: 3 }),
    made({ kind: "redis_snowflake", shard: 1, time_origin: 5, redis_server: "a" }),
    made({ kind: "ticket", start: 2n, slots: 4, slots_id: "t.x" }),
    made(uuid(4)),
    made({ ...uuid(2), number: 7 }),
    made({ ...uuid(5), namespace: "URL" }),
    made({ kind: "object_id", variant: "MACHINE_PROCESS" }),
    made(DEFAULT_SEGMENT, { format: "A{id}" }),
  ];
  for (const settings of all) {
    // A change is made by any server, also by one that could not place a new tag.
    const again = settingsOf(draftOf(settings), { ...PORTS, placement: undefined });
    expect(again).toEqual({ settings });
  }
});

test("what tunes a sequence may change any time, what makes its ids only before the first", () => {
  const daily = made({ ...DEFAULT_SEQUENCE, period: "DAY", time_zone: "UTC" });
  const row = {
    ...daily,
    state: "ACTIVE",
    floor: 0n,
    periodStart: "",
    generation: 0n,
    version: 0n,
    epoch: 1n,
    revision: 1n,
    createdAtMs: 0,
    updatedAtMs: 0,
  } as const;
  const kind = {
    ...DEFAULT_SEQUENCE,
    period: "MONTH",
    time_zone: "Asia/Tokyo",
    keep_for: DAY_MS,
  } as const;
  const draft = { ...draftOf(daily), kind };
  const change = (...paths: string[]) => changeOf(row, draft, paths, PORTS);
  const tunes = ({ settings }: TagChange) => isSameButForTuning(settings!.kind, daily.kind);
  expect(tunes(change("sequence.keep_for"))).toBe(true);
  expect(change("sequence.keep_for")).toMatchObject({
    settings: { kind: { periods: { unit: "DAY", timeZone: "UTC", keepForMs: DAY_MS } } },
  });
  expect(tunes(change("sequence.period"))).toBe(false);
  expect(change("sequence.period")).toMatchObject({
    settings: { kind: { periods: { unit: "MONTH", timeZone: "UTC" } } },
  });
  expect(tunes(change("sequence.time_zone"))).toBe(false);
  expect(tunes(change("description"))).toBe(true);
});
