import { invalidField } from "../errors.ts";
import { DCE_TICK_MS, GREGORIAN_OFFSET_MS } from "./dce-state.ts";

/** Namespaces of RFC 9562 for names of versions 3 and 5. */
const UUID_NAMESPACES: Readonly<Record<"DNS" | "URL" | "OID" | "X500", string>> = {
  DNS: "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
  URL: "6ba7b811-9dad-11d1-80b4-00c04fd430c8",
  OID: "6ba7b812-9dad-11d1-80b4-00c04fd430c8",
  X500: "6ba7b814-9dad-11d1-80b4-00c04fd430c8",
};

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const OBJECT_ID = /^[0-9a-f]{24}$/;

const NIL_OR_MAX = /^(?:0{8}(?:-0{4}){3}-0{12}|f{8}(?:-f{4}){3}-f{12})$/;

/** The UUID that a namespace is written as: DNS, URL, OID, X500 or a UUID in any case. Undefined for anything else. */
export function namespaceOf(text: string): string | undefined {
  if (Object.hasOwn(UUID_NAMESPACES, text)) {
    return UUID_NAMESPACES[text as keyof typeof UUID_NAMESPACES];
  }
  const uuid = text.toLowerCase();
  return UUID.test(uuid) || NIL_OR_MAX.test(uuid) ? uuid : undefined;
}

/** Version and time of a UUID; the time (milliseconds since 1970) is there for versions 1, 2, 6 and 7. */
export interface DecodedUuid {
  readonly version: number;
  /** Of version 2 the beginning of the seven minutes it was made in. */
  readonly timeMs: number | undefined;
}

/**
 * What a UUID says, in letters of either case; undefined when the text is no UUID of RFC 9562 with its dashes. Throws
 * INVALID_ARGUMENT for what is no text.
 */
export function decodeUuid(text: string): DecodedUuid | undefined {
  assertText(text, "a UUID");
  const uuid = text.toLowerCase();
  if (!UUID.test(uuid)) return undefined;
  const [low = "", middle = "", high = ""] = uuid.split("-");
  const version = Number(high.charAt(0));
  const time = (): number | undefined => {
    if (version === 1) return gregorianMs(high.slice(1) + middle + low);
    if (version === 6) return gregorianMs(low + middle + high.slice(1));
    if (version === 7) return Number.parseInt(low + middle, 16);
    if (version !== 2) return undefined;
    const tick = Number.parseInt(high.slice(1) + middle, 16);
    return Math.ceil(tick * DCE_TICK_MS) - GREGORIAN_OFFSET_MS;
  };
  return { version, timeMs: time() };
}

/** Sixty bits of 100-nanosecond steps since 1582, in whole milliseconds since 1970. */
function gregorianMs(hex: string): number {
  return Number(BigInt(`0x${hex}`) / 10_000n) - GREGORIAN_OFFSET_MS;
}

/**
 * The second in which an ObjectId was made, milliseconds since 1970; undefined when the text is no ObjectId. Throws
 * INVALID_ARGUMENT for what is no text.
 */
export function decodeObjectId(text: string): number | undefined {
  assertText(text, "an ObjectId");
  return OBJECT_ID.test(text.toLowerCase())
    ? Number.parseInt(text.slice(0, 8), 16) * 1_000
    : undefined;
}

/** Callers without types may give anything, and a text that is no id is an answer, not an error. */
function assertText(text: unknown, what: string): void {
  if (typeof text === "string") return;
  const got = text === null ? "null" : typeof text;
  throw invalidField("text", `must be text: ${what} as it is written, got ${got}`);
}
