import { type KindDraft, specOf, type TagKind, valuesOf, withValues } from "./table.ts";

/** The Redis server that such a tag counts on; undefined: it does not count in Redis. */
export function redisServerOf(settings: TagKind): string | undefined {
  return specOf(settings).redisServer?.(settings);
}

/** The same settings on another Redis server; unchanged when they do not count in Redis. */
export function placedIn(settings: TagKind, redisServer: string): TagKind {
  return specOf(settings).placedIn?.(settings, redisServer) ?? settings;
}

/** Whether the ids or the worker ids of such a tag are kept in Redis, below a bound that the store keeps. */
export function countsInRedis(settings: TagKind): boolean {
  return specOf(settings).countedIn(settings) === "redis";
}

/** Whether a draft may ask for what servers decide: a place elsewhere than in the store, or slots. */
export function hasPlace(draft: KindDraft): boolean {
  return placeFields(draft).length > 0;
}

/** A draft that stays where a tag of these settings is, where that is of the same kind. */
export function inPlaceOf(draft: KindDraft, old: TagKind): KindDraft {
  if (draft.kind !== old.kind) return draft;
  const values = valuesOf(old);
  const decided = placeFields(draft).map((name) => [name, values[name]] as const);
  return withValues(draft, Object.fromEntries(decided));
}

function placeFields(draft: KindDraft): readonly string[] {
  return Object.entries(specOf(draft).fields)
    .filter(([, { role }]) => role === "placed" || role === "row-only")
    .map(([name]) => name);
}
