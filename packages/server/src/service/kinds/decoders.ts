import { decode, decodeObjectId, decodeUuid, invalidField, timeOf } from "@idmint/core";
import { specOf, type TagKind } from "@idmint/core/kinds";
import type { TextKind } from "./text-ids.ts";

/** What an id holds besides its number or its text. */
export interface Held {
  /** Milliseconds since 1970. Absent: it holds no time. */
  readonly timeMs?: number | undefined;
  /** Of a number that was composed of them. */
  readonly fields?: {
    readonly ticks: number;
    readonly extension: number;
    readonly dataCenter: number;
    readonly worker: number;
    readonly sequence: number;
  };
  readonly uuidVersion?: number;
}

/** What an id of a tag holds that is a number; numbers that were counted hold nothing. */
export function heldInNumber(kind: TagKind, number: bigint): Held {
  const layout = specOf(kind).composed?.layout(kind);
  if (layout === undefined) return {};
  const { tick: ticks, ...fields } = decode(layout, number);
  return { timeMs: timeOf(layout, ticks), fields: { ticks, ...fields } };
}

type Decode<Kind> = (kind: Kind, text: string) => Held;

const TEXTS: {
  readonly [Name in TextKind["kind"]]: Decode<Extract<TextKind, { readonly kind: Name }>>;
} = {
  uuid: ({ version }, text) => {
    const found = decodeUuid(text);
    if (found?.version === version) return { uuidVersion: version, timeMs: found.timeMs };
    const must = `must be a UUID of version ${version}, with its dashes`;
    throw invalidField("text", must, "INVALID_ID");
  },
  object_id: (_kind, text) => {
    const timeMs = decodeObjectId(text);
    if (timeMs !== undefined) return { timeMs };
    throw invalidField("text", "must be an ObjectId: 24 hexadecimal digits", "INVALID_ID");
  },
};

/** What an id of a tag holds that is text by itself. INVALID_ARGUMENT for what is no id of the kind. */
export function heldInText(kind: TextKind, text: string): Held {
  // The settings are of the kind that the decoder is looked up by.
  return (TEXTS[kind.kind] as Decode<TextKind>)(kind, text);
}
