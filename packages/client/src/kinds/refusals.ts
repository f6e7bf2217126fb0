// Refusals of calls that a tag's kind cannot answer, in the SDK and in its stand-in. Each says what to call instead.
import { IdmintError, invalidField } from "@idmint/core";

/** How long a synchronous caller of a cold tag should wait before it tries again, in milliseconds. */
export const COLD_RETRY_MS = 50;

/** For `nextSync` and its like, and for `warm`. */
export function notInMemory(tag: string, kind: string, cause?: unknown): IdmintError {
  const text = `tag "${tag}" is of kind ${kind}, and the SDK holds no ids of that kind in memory. Use \`await next()\` instead of nextSync() and warm()`;
  const details = { metadata: { tag, kind } };
  return new IdmintError("WRONG_KIND", text, cause === undefined ? details : { ...details, cause });
}

/** For `take` of a sequence. */
export function notTaken(tag: string, kind: string): IdmintError {
  const text = `tag "${tag}" is of kind ${kind}: ids that are taken now and used later would be out of order. Use \`await next()\` for each id instead of take()`;
  return new IdmintError("WRONG_KIND", text, { metadata: { tag, kind } });
}

/** For an id without its period, of a tag with periods. An id that was issued meanwhile is in the metadata: nobody else gets it. */
export function needsPeriod(tag: string, kind: string, issued?: PeriodMetadata): IdmintError {
  const text = `ids of tag "${tag}" start again every period, so they are unique only together with the period. Use nextPeriodId() instead of next(); its \`text\` is unique`;
  return new IdmintError("WRONG_KIND", text, { metadata: { tag, kind, ...issued } });
}

/** For `nextPeriodId` of a tag without periods. */
export function hasNoPeriods(tag: string, kind: string, issued?: { id: string }): IdmintError {
  const text = `tag "${tag}" has no periods. Use next() instead of nextPeriodId()`;
  return new IdmintError("WRONG_KIND", text, { metadata: { tag, kind, ...issued } });
}

/** An id that was issued before it was known that the call would be refused. */
interface PeriodMetadata {
  readonly period: string;
  readonly id: string;
}

/** For an id as a number, of a tag whose ids are text. */
export function idsAreText(tag: string, kind: string): IdmintError {
  const text = `ids of tag "${tag}" are text. Use nextString() instead`;
  return new IdmintError("WRONG_KIND", text, { metadata: { tag, kind } });
}

/** For a name, of a tag whose ids are not made from names. */
export function hasNoNames(tag: string): IdmintError {
  return invalidField("name", `must be left out: the ids of tag "${tag}" are not made from names`);
}
