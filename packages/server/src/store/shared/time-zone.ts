import { invalidField } from "@idmint/core";
import type { TagKind } from "@idmint/core/kinds";
import { periodsOf } from "@idmint/core/server";

const FIELD = "tag.sequence.time_zone";

/** The time zone of a tag's periods, or undefined. Throws for a zone that this runtime does not know. */
export function knownTimeZone(kind: TagKind): string | undefined {
  const periods = periodsOf(kind);
  if (periods === undefined) return undefined;
  const { timeZone } = periods;
  if (!isPlace(timeZone) || !isKnown(timeZone)) throw timeZoneUnknown(timeZone, "this server");
  return timeZone;
}

/** The refusal of a time zone that `who` does not know. */
export function timeZoneUnknown(timeZone: string, who: string): Error {
  return invalidField(
    FIELD,
    `must be UTC or an area and place of the IANA database, such as Asia/Shanghai, that ${who} knows, got ${timeZone}`,
  );
}

/**
 * Whether a name means the same everywhere. A name without an area may not: PostgreSQL takes CET for an abbreviation
 * without summer time, and +08:00 for a zone west of Greenwich.
 */
function isPlace(timeZone: string): boolean {
  return timeZone === "UTC" || /^[A-Za-z_]+(?:\/[A-Za-z0-9_+-]+)+$/u.test(timeZone);
}

function isKnown(timeZone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
