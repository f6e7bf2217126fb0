import type { Tag, TagSettings } from "@idmint/core/server";

/** A sequence that counts in the Redis server `a`. */
export function sequenceSettings(
  name: string,
  {
    ceiling,
    server = "a",
    ...bounds
  }: { step: number; maxSkip?: number; ceiling: bigint; server?: string },
): TagSettings {
  return {
    name,
    description: "",
    order: "STRICT",
    ceiling,
    kind: { kind: "sequence", start: 1n, periods: undefined, redis: { server, ...bounds } },
  };
}

/** A tag as its row is when it was just made. */
export function tagOf(settings: TagSettings): Tag {
  return {
    ...settings,
    state: "ACTIVE",
    floor: 0n,
    periodStart: "",
    generation: 0n,
    version: 0n,
    epoch: 1n,
    revision: 1n,
    createdAtMs: 0,
    updatedAtMs: 0,
  };
}
