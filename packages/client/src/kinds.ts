// Refusals of calls that a tag's kind has no answer to, in the SDK and in its stand-in; each says what to call instead.
import { IdmintError } from "@idmint/core";

/** For `nextSync` and its like, and for `warm`. */
export function notInMemory(tag: string, kind: string, cause?: unknown): IdmintError {
  const text = `tag "${tag}" is of kind ${kind}, whose ids are never held in memory: use \`await next()\` instead of nextSync() and warm()`;
  const details = { metadata: { tag, kind } };
  return new IdmintError("WRONG_KIND", text, cause === undefined ? details : { ...details, cause });
}

/** For `take` of a sequence. */
export function notTaken(tag: string, kind: string): IdmintError {
  const text = `tag "${tag}" is of kind ${kind}, and an id that is used later than it was taken is out of order: use \`await next()\` for each id instead of take()`;
  return new IdmintError("WRONG_KIND", text, { metadata: { tag, kind } });
}

/** For an id alone, of a tag with periods. An id that was issued meanwhile is in the metadata: nobody else gets it. */
export function needsPeriod(tag: string, kind: string, issued?: PeriodMetadata): IdmintError {
  const text = `ids of tag "${tag}" start again every period and are unique with their period only: use nextPeriodId(), whose \`text\` is unique by itself, instead of next()`;
  return new IdmintError("WRONG_KIND", text, { metadata: { tag, kind, ...issued } });
}

/** For `nextPeriodId` of a tag without periods. */
export function hasNoPeriods(tag: string, kind: string, issued?: { id: string }): IdmintError {
  const text = `tag "${tag}" has no periods: use next() instead of nextPeriodId()`;
  return new IdmintError("WRONG_KIND", text, { metadata: { tag, kind, ...issued } });
}

/** An id that was issued before it was known that the call has no answer. */
interface PeriodMetadata {
  readonly period: string;
  readonly id: string;
}
