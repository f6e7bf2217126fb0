// The calls about tags and their ids that a walk makes. Numbers are small or near the ends, so that calls meet each other.
import { MAX_ID } from "@idmint/core";
import type { GrantRequest, TagSettings, TagState } from "@idmint/core/server";
import fc from "fast-check";
import {
  redisSequenceOf,
  redisSnowflakeOf,
  sequenceOf,
  settingsOf,
  ticketOf,
  DAY_MS,
} from "../store/support.ts";
import { snowflakeOf } from "../workers/support.ts";
import { type CallRow, callOf, row } from "./call.ts";
import type { View } from "./view.ts";

/** How many days the walks' sequences keep what has ended. */
export const KEEP_DAYS = 3.5;
export const NAMES: readonly string[] = ["a", "b", "c"];

export const name: fc.Arbitrary<string> = fc.constantFrom(...NAMES);
export const day: fc.Arbitrary<number> = fc.constantFrom(-3, -2, -1, 0, 0, 1);
const revision = fc.constantFrom("none", "right", "wrong");
const seen = fc.constantFrom("none", "right", "ahead");
const rarely = fc.constantFrom(false, false, false, true);
const settings = fc.record({
  kind: fc.constantFrom(
    ..."segment segment segment sequence daily daily redis flake flake redisFlake ticket uuid".split(
      " ",
    ),
  ),
  start: fc.constantFrom(1n, 2n, 30n, 2n ** 53n - 50n, MAX_ID - 49n),
  ceiling: fc.constantFrom(100n, 2n ** 53n - 1n, MAX_ID),
  min: fc.constantFrom(1, 1_000),
  order: fc.constantFrom("UNORDERED" as const, "PER_CLIENT" as const),
  description: fc.constantFrom("", "x"),
  template: fc.constantFrom(undefined, undefined, undefined, undefined, "A-{id}"),
  /** Numbers of keys, of which the last is in use; 0: another key than 1 has elsewhere, under its number. */
  keys: fc.constantFrom(undefined, undefined, undefined, undefined, [1], [1, 2], [0]),
});
type Drawn = typeof settings extends fc.Arbitrary<infer T> ? T : never;

function settingsFrom(view: View, tag: string, wanted: Drawn): TagSettings {
  const { template, keys } = wanted;
  const settings = plainSettings(view, tag, wanted);
  if (settings.kind.kind === "uuid") return settings;
  const checks = keys?.map((key) => ({ keyId: key === 0 ? 1 : key, check: `${key}`.repeat(16) }));
  const keyId = checks?.at(-1)?.keyId ?? 1;
  return {
    ...settings,
    ...(template === undefined ? {} : { format: { template } }),
    ...(checks === undefined ? {} : { unguessable: { keyId, keyDigits: 1, keys: checks } }),
  };
}

function plainSettings({ zone }: View, tag: string, wanted: Drawn): TagSettings {
  const { kind, description, order, ceiling, min } = wanted;
  const start = wanted.start > ceiling ? 1n : wanted.start;
  const common = { description, order, ceiling };
  if (kind === "redis") return redisSequenceOf(tag, common);
  if (kind === "redisFlake") return { ...redisSnowflakeOf(tag), description };
  if (kind === "ticket") return ticketOf(tag, { ...common, start, slots: min === 1 ? 2 : 60 });
  if (kind === "flake") {
    const dataCenter = min === 1 ? 0 : 3;
    return { ...snowflakeOf(tag, { place: { registry: "STORE" } }, { dataCenter }), description };
  }
  if (kind === "uuid") {
    return { ...settingsOf(tag), description, kind: { kind: "uuid", version: min === 1 ? 4 : 7 } };
  }
  if (kind === "sequence") return sequenceOf(tag, { ...common, start });
  if (kind === "segment") return settingsOf(tag, { ...common, start, min });
  const periods = { unit: "DAY", timeZone: zone.timeZone, keepForMs: KEEP_DAYS * DAY_MS } as const;
  return sequenceOf(tag, { ...common, periods });
}

const request = fc.record({
  tag: name,
  count: fc.constantFrom(1, 2, 5, 40, 1_000_000_000),
  kind: fc.constantFrom("right", "right", "right", "other"),
  least: fc.constantFrom("one", "all"),
  after: fc.constantFrom("none", "floor", "above"),
  seen,
});

function requestFrom(
  view: View,
  wanted: typeof request extends fc.Arbitrary<infer T> ? T : never,
): GrantRequest {
  const { tag, count } = wanted;
  const its = view.row(tag);
  const floor = its?.floor ?? 0n;
  const above = floor === MAX_ID ? floor : floor + 1n;
  const after = { none: 0n, floor, above }[wanted.after] ?? 0n;
  const isSequence = (its?.kind.kind === "sequence") === (wanted.kind === "right");
  const kind = isSequence ? "sequence" : "segment";
  const minCount = isSequence || wanted.least === "all" ? count : 1;
  return { tag, kind, count, minCount, after, seenVersion: view.versionOf(tag, wanted.seen) };
}

/** What an operator says of the last id of a day: nothing, the truth, or less than the store knows. */
function boundOf(view: View, tag: string, on: number, which: string): bigint | undefined {
  const start = view.startOf(on);
  const lastId = view.row(tag)?.otherPeriods?.find((other) => other.start === start)?.lastId ?? 0n;
  const known = lastId < 0n ? 0n : lastId;
  if (which === "none") return undefined;
  if (which === "below" && known > 0n) return known - 1n;
  const its = view.issued.filter((range) => range.tag === tag && range.day === on);
  return its.reduce((highest, { to }) => (to > highest ? to : highest), known);
}

export const TAG_CALLS: Readonly<Record<string, CallRow>> = {
  grant: row(
    8,
    fc.uniqueArray(request, { minLength: 1, maxLength: 3, selector: ({ tag }) => tag }),
    (view, wanted) =>
      callOf(
        "grant",
        wanted.map((one) => requestFrom(view, one)),
      ),
  ),
  giveBack: row(
    4,
    fc.record({ which: fc.nat(3), keep: fc.nat(3), tells: fc.boolean() }),
    (view, { which, keep, tells }) => {
      // Of one of the last grants all but the first `keep` ids, if there are more.
      const grant = view.grants[which];
      if (grant === undefined || grant.from + BigInt(keep) > grant.to) return undefined;
      const giver = tells ? { nodeId: "n1", server: "host:7600", atMs: 5_000 } : undefined;
      const request = { ...grant, from: grant.from + BigInt(keep), giver };
      view.takeBack(request);
      return callOf("giveBack", [request]);
    },
  ),
  raise: row(
    3,
    fc.record({
      tag: name,
      by: fc.constantFrom(0n, 1n, 40n, MAX_ID),
      atLeast: fc.constantFrom(0n, 60n, 2n ** 53n, MAX_ID, -1n),
      newGeneration: fc.boolean(),
      generationFrom: fc.constantFrom(undefined, 0n, 5n),
      seen,
    }),
    (view, { seen: which, generationFrom, ...wanted }) => {
      const seenVersion = view.versionOf(wanted.tag, which);
      const from = generationFrom === undefined ? {} : { generationFrom };
      return callOf("raise", { ...wanted, ...from, seenVersion });
    },
  ),
  exchangeMarks: row(
    2,
    fc.record({
      tag: name,
      generation: fc.bigInt(0n, 12n),
      mark: fc.bigInt(0n, 9n),
      isAsked: fc.boolean(),
    }),
    (_, { isAsked, mark, ...its }) =>
      isAsked
        ? callOf("exchangeMarks", [], [its])
        : callOf("exchangeMarks", [{ ...its, mark }], []),
  ),
  createTag: row(
    5,
    fc.record({ name, settings, validateOnly: rarely }),
    (view, { name: tag, settings: wanted, validateOnly }) =>
      callOf("createTag", settingsFrom(view, tag, wanted), { validateOnly, by: view.by() }),
  ),
  updateTag: row(
    2,
    fc.record({ name, settings, what: fc.nat(3), revision, validateOnly: rarely, isOver: rarely }),
    (view, { name: tag, settings: wanted, what, isOver, ...how }) => {
      const { description, order, ceiling, kind, ...its } = settingsFrom(view, tag, wanted);
      const { format, unguessable } = its;
      const change = [
        { description },
        { description, settings: { order, ceiling, kind } },
        { settings: { order, ceiling, kind }, isEarlierOver: isOver },
        {
          texts: {
            ...(format === undefined ? {} : { format }),
            ...(unguessable === undefined ? {} : { unguessable }),
          },
        },
      ][what];
      const expected = view.revisionOf(tag, how.revision);
      const options = { validateOnly: how.validateOnly, by: view.by() };
      return callOf("updateTag", tag, change ?? {}, expected, options);
    },
  ),
  advanceTag: row(
    2,
    fc.record({
      name,
      by: fc.constantFrom(-1n, 0n, 1n, 20n, 2n ** 40n),
      maxRaise: fc.constantFrom(20n, MAX_ID),
      validateOnly: rarely,
      revision,
    }),
    (view, { name: tag, by, maxRaise, validateOnly, revision: which }) => {
      const its = view.row(tag);
      const floor = (its?.floor ?? 5n) + by;
      if (floor < 1n || floor > MAX_ID) return undefined;
      // Floors of snowflakes are times once the store was accepted, each by its own clock.
      if (its?.kind.kind === "snowflake" && view.database.firstEpoch > 1n) return undefined;
      const expectedRevision = view.revisionOf(tag, which);
      const options = { maxRaise, validateOnly, expectedRevision, by: view.by() };
      return callOf("advanceTag", tag, floor, options);
    },
  ),
  setTagState: row(
    3,
    fc.record({
      name,
      state: fc.constantFrom<TagState>("ACTIVE", "ACTIVE", "PAUSED", "DELETED"),
      revision,
      validateOnly: rarely,
    }),
    (view, { name: tag, state, revision: which, validateOnly }) => {
      const options = { validateOnly, by: view.by() };
      return callOf("setTagState", tag, state, view.revisionOf(tag, which), options);
    },
  ),
  returnToPeriod: row(
    3,
    fc.record({
      name,
      day,
      bound: fc.constantFrom("none", "none", "truth", "below"),
      validateOnly: rarely,
    }),
    (view, { name: tag, day: on, bound, validateOnly }) => {
      const period = { start: view.startOf(on), floor: boundOf(view, tag, on, bound) };
      const options = { validateOnly, expectedRevision: undefined, by: view.by() };
      return callOf("returnToPeriod", tag, period, options);
    },
  ),
  getTags: row(1, fc.subarray([...NAMES, "z"], { minLength: 1 }), (_, names) =>
    callOf("getTags", names),
  ),
  listTags: row(
    1,
    fc.record({
      afterName: fc.constantFrom("", "a", "b"),
      prefix: fc.constantFrom("", "", "b"),
      showDeleted: fc.boolean(),
      limit: fc.constantFrom(0, 1, 2, 100),
    }),
    (_, query) => callOf("listTags", query),
  ),
  recentTags: row(1, fc.constantFrom(0, 100), (_, limit) => callOf("recentTags", limit)),
  listPeriods: row(
    1,
    fc.record({ tag: name, before: day, limit: fc.constantFrom(100) }),
    (view, { before, ...query }) => {
      return callOf("listPeriods", { ...query, before: before === 1 ? "" : view.startOf(before) });
    },
  ),
};
