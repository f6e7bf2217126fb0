import { durationOf, type KeyedPermutation, UnguessableIds } from "@idmint/core";
import {
  ObjectIdVariant,
  Order,
  PeriodUnit,
  SequenceBackend,
  Tag,
  WorkerRegistry,
} from "@idmint/proto";
import { keyOf } from "../../server/src/unguessable/keys.ts";
import type { UnguessableKey } from "../../server/src/service/issue/tag-text.ts";
import type { SimKindName } from "./kind-names.ts";
import type { TagPlan } from "./plan.ts";

/** The key of unguessable ids that all servers have. */
export const KEY_ID = 1;
export const KEY: UnguessableKey = keyOf(Uint8Array.from({ length: 32 }, (_, at) => 7 * at));

const INVOICE = /^INV(?<number>\d{12})\d$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-(?<version>\d)[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const SLOTS = [4, 12, 60] as const;
const UUID_VERSIONS = [1, 2, 4, 6, 7] as const;

interface SimKind {
  /** `start`: the first id, of those that count from one. */
  readonly proto: (plan: TagPlan, start: bigint) => Parameters<(typeof Tag)["fromPartial"]>[0];
  /** Whether each id is one that the store granted. */
  readonly isGranted: boolean;
  /** Whether ids are numbers above a floor that an operator may raise. */
  readonly hasFloor: boolean;
  /** Whether it counts from 1 again and again, and from nothing else. */
  readonly hasPeriods: boolean;
  /** Whether an id hangs on a worker id that is leased. */
  readonly isLeased: boolean;
  /** Whether an id holds a time, so that some wait for their clock. */
  readonly isTimed: boolean;
  /** Whether it counts in Redis, or its workers are leased there. */
  readonly isInRedis: boolean;
  /** Whether callers get text. */
  readonly isText: boolean;
  /** The number that was granted, of a text or of a number that tells nothing. Undefined: that is no id of the tag. */
  readonly numberOf?: (plan: TagPlan, id: string) => bigint | undefined;
  /** Whether a text can be an id of the tag, where there is no number. */
  readonly isId?: (plan: TagPlan, text: string) => boolean;
}

const NOTHING = {
  isGranted: false,
  hasFloor: false,
  hasPeriods: false,
  isLeased: false,
  isTimed: false,
  isInRedis: false,
  isText: false,
} as const;
const NUMBERS = { ...NOTHING, isGranted: true, hasFloor: true } as const;
const LEASED = { ...NOTHING, isLeased: true, isTimed: true } as const;
const TEXTS = { ...NOTHING, isText: true } as const;

function segmentOf({ min, max, holdForMs, maxAgeMs }: TagPlan, start: bigint) {
  const value = {
    start,
    min,
    max,
    holdFor: durationOf(holdForMs),
    maxAge: durationOf(maxAgeMs),
  };
  return { kind: { $case: "segment", value } } as const;
}

const KINDS: Readonly<Record<SimKindName, SimKind>> = {
  segment: { ...NUMBERS, proto: segmentOf },
  sequence: {
    ...NUMBERS,
    proto: (_, start) => ({ kind: { $case: "sequence", value: { start } } }),
  },
  daily: {
    ...NUMBERS,
    // Floors of periods are of the present one only.
    hasFloor: false,
    hasPeriods: true,
    proto: () => ({
      kind: { $case: "sequence", value: { period: PeriodUnit.DAY, timeZone: "UTC" } },
    }),
  },
  counted_in_redis: {
    ...NUMBERS,
    isInRedis: true,
    proto: ({ min, size }, start) => {
      // Small steps, so that the maximum is raised now and then.
      const value = {
        start,
        backend: SequenceBackend.REDIS,
        step: min,
        maxSkip: size < 0.3 ? 2 * min : 0,
      };
      return { kind: { $case: "sequence", value } };
    },
  },
  redis_snowflake: {
    ...NOTHING,
    isGranted: true,
    isTimed: true,
    isInRedis: true,
    proto: () => ({ kind: { $case: "redisSnowflake", value: {} } }),
  },
  ticket: {
    ...NUMBERS,
    proto: (plan) => ({ kind: { $case: "ticket", value: { slots: slotsOf(plan) ?? 0 } } }),
  },
  leased_in_redis: {
    ...LEASED,
    isInRedis: true,
    proto: () => ({ kind: { $case: "snowflake", value: { registry: WorkerRegistry.REDIS } } }),
  },
  snowflake: { ...LEASED, proto: () => ({ kind: { $case: "snowflake", value: {} } }) },
  serial: {
    ...LEASED,
    isText: true,
    proto: () => ({
      kind: { $case: "snowflake", value: {} },
      format: { template: "S{yyyyMMddHHmmssSSS}{machine:4}{seq:4}" },
    }),
    isId: (_plan, text) => /^S\d{25}$/.test(text),
  },
  invoice: {
    ...NUMBERS,
    isText: true,
    proto: (plan, start) => ({
      ...segmentOf(plan, start),
      format: { template: "INV{id:12}{luhn}" },
    }),
    numberOf: (_plan, text) => {
      const digits = INVOICE.exec(text)?.groups?.["number"];
      return digits === undefined ? undefined : BigInt(digits);
    },
  },
  coupons: {
    ...NUMBERS,
    proto: (plan, start) => ({
      ...segmentOf(plan, start),
      unguessable: { keyId: KEY_ID, keyDigits: 1 },
    }),
    numberOf: ({ name, ceiling }, id) => revealed(name, ceiling, BigInt(id)),
  },
  uuid: {
    ...TEXTS,
    proto: ({ size }) => ({ kind: { $case: "uuid", value: { version: versionOf(size) } } }),
    isId: ({ size }, text) => UUID.exec(text)?.groups?.["version"] === String(versionOf(size)),
  },
  object_id: {
    ...TEXTS,
    proto: ({ size }) => {
      const variant = size < 0.5 ? ObjectIdVariant.CLASSIC : ObjectIdVariant.MACHINE_PROCESS;
      return { kind: { $case: "objectId", value: { variant } } };
    },
    isId: (_plan, text) => /^[0-9a-f]{24}$/.test(text),
  },
};

/** The residue classes of a ticket tag; undefined: it is none. */
export function slotsOf({ kind, size }: Pick<TagPlan, "kind" | "size">): number | undefined {
  if (kind !== "ticket") return undefined;
  return SLOTS[Math.floor(size * SLOTS.length)] ?? 4;
}

export function simKind({ kind }: Pick<TagPlan, "kind">): SimKind {
  return KINDS[kind];
}

/** The tag as CreateTag gets it. `start`: its first id, where it counts from one. */
export function protoOf(plan: TagPlan, start: bigint): Tag {
  const { name, order, ceiling, kind } = plan;
  const made = { name, order: Order[order], ...simKind(plan).proto(plan, start) };
  const isBounded = kind !== "uuid" && kind !== "object_id" && !simKind(plan).isTimed;
  return Tag.fromPartial(isBounded ? { ...made, ceiling } : made);
}

function versionOf(size: number): number {
  return UUID_VERSIONS[Math.floor(size * UUID_VERSIONS.length)] ?? 4;
}

const permutations = new Map<string, UnguessableIds>();

function revealed(name: string, ceiling: bigint, id: bigint): bigint | undefined {
  const permutation: KeyedPermutation = KEY.permutationOf(name);
  let ids = permutations.get(name);
  if (ids === undefined) {
    ids = new UnguessableIds({ ceiling, keyDigits: 1 }, [[KEY_ID, permutation]]);
    permutations.set(name, ids);
  }
  try {
    return ids.reveal(id).number;
  } catch {
    return undefined;
  }
}
