// Ids that a kind whose ids are text would make now. Servers make theirs by core and a library, which a page need not carry
// for an example.
import type { KindName, TagKind, UuidKind } from "@idmint/core/kinds";

/** Steps of 100 nanoseconds from the beginning of the Gregorian calendar to 1970. */
const GREGORIAN = 122_192_928_000_000_000n;
const DOMAINS = ["PERSON", "GROUP", "ORG"];

/** A number of so many random bits. */
function random(bits: number): bigint {
  const bytes = crypto.getRandomValues(new Uint8Array(bits / 8));
  return bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

/** A UUID of two halves, with its version and variant in their places. */
function uuid(version: number, high: bigint, low: bigint): string {
  const withVersion = (high & ~0xf000n) | (BigInt(version) << 12n);
  const withVariant = (low & ~(3n << 62n)) | (2n << 62n);
  const hex = ((withVersion << 64n) | withVariant).toString(16).padStart(32, "0");
  return [0, 8, 12, 16, 20].map((at, i, all) => hex.slice(at, all[i + 1])).join("-");
}

/** The time of version 1: its low bits first. */
function lowFirst(ticks: bigint): bigint {
  return ((ticks & 0xffff_ffffn) << 32n) | (((ticks >> 32n) & 0xffffn) << 16n) | (ticks >> 48n);
}

type Sample<Kind> = (kind: Kind, nowMs: number) => string | undefined;

/** One id of each kind whose ids are text; undefined: they are numbers. */
const SAMPLES: {
  readonly [Name in KindName]: Sample<Extract<TagKind, { readonly kind: Name }>> | undefined;
} = {
  segment: undefined,
  sequence: undefined,
  redis_snowflake: undefined,
  ticket: undefined,
  snowflake: undefined,
  uuid: uuidSample,
  object_id: (_kind, nowMs) => {
    const seconds = BigInt(Math.floor(nowMs / 1_000));
    return ((seconds << 64n) | random(64)).toString(16).padStart(24, "0");
  },
};

/** One id of a kind whose ids are text; undefined for all others, and where only a name makes one. */
export function sampleText(kind: TagKind, nowMs: number): string | undefined {
  // The settings are of the kind that the sample is looked up by.
  return (SAMPLES[kind.kind] as Sample<TagKind> | undefined)?.(kind, nowMs);
}

function uuidSample(kind: UuidKind, nowMs: number): string | undefined {
  const { version } = kind;
  const ticks = BigInt(nowMs) * 10_000n + GREGORIAN;
  // Of a random node, which has the bit of a group.
  const low = random(64) | (1n << 40n);
  switch (version) {
    case 1:
      return uuid(version, lowFirst(ticks), low);
    case 2: {
      const domain = BigInt(DOMAINS.indexOf(kind.domain));
      const named = (low & ~(0xffn << 48n)) | (domain << 48n);
      return uuid(version, (BigInt(kind.number) << 32n) | (lowFirst(ticks) & 0xffff_ffffn), named);
    }
    case 3:
    case 5:
      return undefined;
    case 4:
      return uuid(version, random(64), low);
    case 6:
      return uuid(version, ((ticks >> 12n) << 16n) | (ticks & 0x0fffn), low);
    case 7:
      return uuid(version, (BigInt(nowMs) << 16n) | random(16), low);
    default:
      return version satisfies never;
  }
}
