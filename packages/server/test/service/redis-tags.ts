import type { Tag, TagSettings } from "@idmint/core";

/** A sequence that counts in the Redis shard `a`. */
export function sequenceSettings(
  name: string,
  { step, ceiling, shard = "a" }: { step: number; ceiling: bigint; shard?: string },
): TagSettings {
  return {
    name,
    description: "",
    order: "STRICT",
    ceiling,
    kind: { kind: "sequence", start: 1n, periods: undefined, redis: { shard, step } },
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
