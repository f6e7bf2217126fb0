import { decode, decodeObjectId, decodeUuid, invalidField, timeOf } from "@idmint/core";
import {
  decomposeId,
  type RedisSnowflakeKind,
  type SnowflakeKind,
  type TagKind,
  type UuidKind,
} from "@idmint/core/kinds";

/** The fields of a number that was composed of them. */
interface Fields {
  readonly ticks: number;
  readonly extension: number;
  readonly dataCenter: number;
  readonly worker: number;
  readonly sequence: number;
}

/** What an id holds besides its number or its text. */
export interface Held {
  /** Milliseconds since 1970. Absent: it holds no time. */
  readonly timeMs?: number | undefined;
  readonly fields?: Fields;
  readonly uuidVersion?: number;
}

/** Takes ids of one kind apart. INVALID_ARGUMENT for what is no id of the kind. */
export type Decoder<Kind> =
  | { readonly ofText: (kind: Kind, text: string) => Held }
  | { readonly firstId: bigint; readonly ofNumber: (kind: Kind, number: bigint) => Held };

/** Numbers that were counted hold nothing. */
const COUNTED: Decoder<TagKind> = { firstId: 1n, ofNumber: () => ({}) };

const DECODERS: {
  readonly [Name in TagKind["kind"]]: Decoder<Extract<TagKind, { readonly kind: Name }>>;
} = {
  segment: COUNTED,
  sequence: COUNTED,
  redis_snowflake: { firstId: 0n, ofNumber: redisSnowflake },
  ticket: COUNTED,
  snowflake: { firstId: 0n, ofNumber: snowflake },
  uuid: { ofText: uuid },
  object_id: { ofText: objectId },
};

export function decoderOf({ kind }: TagKind): Decoder<TagKind> {
  // Only given settings of the kind that it is looked up by.
  return DECODERS[kind] as Decoder<TagKind>;
}

function snowflake({ layout }: SnowflakeKind, number: bigint): Held {
  const { tick: ticks, ...fields } = decode(layout, number);
  return { timeMs: timeOf(layout, ticks), fields: { ticks, ...fields } };
}

function redisSnowflake({ timeOriginMs }: RedisSnowflakeKind, number: bigint): Held {
  const { atMs: timeMs, shard: worker, counter: sequence } = decomposeId(timeOriginMs, number);
  const ticks = timeMs - timeOriginMs;
  return { timeMs, fields: { ticks, extension: 0, dataCenter: 0, worker, sequence } };
}

function uuid({ version }: UuidKind, text: string): Held {
  const found = decodeUuid(text);
  if (found?.version === version) return { uuidVersion: version, timeMs: found.timeMs };
  throw invalidField("text", `must be a UUID of version ${version}, with its dashes`, "INVALID_ID");
}

function objectId(_kind: unknown, text: string): Held {
  const timeMs = decodeObjectId(text);
  if (timeMs !== undefined) return { timeMs };
  throw invalidField("text", "must be an ObjectId: 24 hexadecimal digits", "INVALID_ID");
}
