import { type IdmintError, SNOWFLAKE_PRESETS } from "@idmint/core";
import type { TagKind } from "@idmint/core/kinds";
import type { TagSettings } from "@idmint/core/server";
import { expect, test } from "vitest";
import { createdTag } from "../../../src/store/shared/change.ts";

const stamp = { revision: 1n, nowMs: 1 };
const ALL = { name: "t", description: "", order: "UNORDERED", ceiling: 9_999n } as const;
const segment = {
  kind: "segment",
  start: 1n,
  min: 1_000,
  max: 2_000,
  holdForMs: 1_500,
  maxAgeMs: 600_000,
} as const;
const layout = SNOWFLAKE_PRESETS["41-10-12"];
const snowflake = {
  kind: "snowflake",
  layout,
  dataCenter: 0,
  clockPolicy: "REFUSE",
  clockWaitMs: 5,
  registry: "STORE",
} as const;
const daily = { unit: "DAY", timeZone: "UTC", keepForMs: 86_400_000 } as const;

/** What making a tag is refused with where another one of its name is. */
function refusal(present: Partial<TagSettings>, wanted: Partial<TagSettings>): IdmintError {
  const { tag } = createdTag(undefined, { ...ALL, kind: segment, ...present }, stamp);
  try {
    createdTag(tag, { ...ALL, kind: segment, ...wanted }, stamp);
  } catch (thrown) {
    return thrown as IdmintError;
  }
  throw new Error("the same settings");
}

const of = (kind: TagKind): Partial<TagSettings> => ({ kind });

test.each<[string, Partial<TagSettings>, Partial<TagSettings>, string]>([
  [
    "ceiling,segment.min",
    { ceiling: 7n },
    of({ ...segment, min: 7 }),
    "segment.min is 1000, not 7",
  ],
  ["segment.hold_for", {}, of({ ...segment, holdForMs: 2_000 }), "hold_for is 1.5s, not 2s"],
  ["description", { description: "a" }, {}, 'description is "a", not ""'],
  ["kind", {}, of({ kind: "object_id", variant: "CLASSIC" }), "kind is segment, not object_id"],
  [
    "sequence.period,sequence.time_zone,sequence.keep_for",
    of({ kind: "sequence", start: 1n, periods: undefined, redis: undefined }),
    of({ kind: "sequence", start: 1n, periods: daily, redis: undefined }),
    "sequence.period is none, not DAY",
  ],
  [
    "sequence.backend,sequence.step",
    of({ kind: "sequence", start: 1n, periods: undefined, redis: { server: "a", step: 5 } }),
    of({ kind: "sequence", start: 1n, periods: undefined, redis: undefined }),
    "sequence.backend is REDIS, not STORE",
  ],
  [
    "snowflake.layout.worker_bits",
    of(snowflake),
    of({ ...snowflake, layout: { ...layout, workerBits: 9 } }),
    "worker_bits is 10, not 9",
  ],
  [
    "redis_snowflake.time_origin",
    of({ kind: "redis_snowflake", shard: 1, timeOriginMs: 0, redisServer: "a" }),
    of({ kind: "redis_snowflake", shard: 1, timeOriginMs: 1, redisServer: "b" }),
    "time_origin is 1970-01-01T00:00:00.000Z",
  ],
  [
    "ticket.slots",
    of({ kind: "ticket", start: 1n, slots: 60, slotsId: "x" }),
    of({ kind: "ticket", start: 1n, slots: 61, slotsId: "" }),
    "slots is 60, not 61",
  ],
  [
    "uuid.version",
    of({ kind: "uuid", version: 4 }),
    of({ kind: "uuid", version: 7 }),
    "is 4, not 7",
  ],
  ["format.template", { format: { template: "A{id}" } }, {}, 'is "A{id}", not none'],
  [
    "unguessable.key",
    { unguessable: { keyId: 1, keyDigits: 1, keys: [{ keyId: 1, check: "secret" }] } },
    { unguessable: { keyId: 1, keyDigits: 1, keys: [{ keyId: 1, check: "other" }] } },
    "unguessable.key is one, not another",
  ],
])("a tag that is there says that %s differs, and how", (fields, present, wanted, text) => {
  const error = refusal(present, wanted);
  expect(error).toMatchObject({ reason: "TAG_EXISTS", metadata: { tag: "t", fields } });
  expect(error.message).toContain(text);
  expect(error.message).not.toContain("secret");
});
