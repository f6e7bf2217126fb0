import { composeId, COUNTERS_PER_MS } from "@idmint/core/kinds";
import { DEFAULT_TIME_ORIGIN_MS } from "../../../core/src/snowflake/layout.ts";
import type { RedisSnapshot } from "../../src/index.ts";
import type { RedisCount, RedisLoss } from "../check/redis-log.ts";

const LAYOUT = { shard: 0, timeOriginMs: DEFAULT_TIME_ORIGIN_MS };

interface Moments {
  readonly now: RedisSnapshot;
  readonly restored: RedisSnapshot;
  readonly told: RedisSnapshot | undefined;
}

/** What a Redis forgets of each tag that it goes on with. */
export function lossesOf({ now, restored, told }: Moments): readonly RedisLoss[] {
  return [...restored.hashes.keys()].flatMap((tag) => {
    const [has, had] = [countIn(restored, tag), countIn(now, tag)];
    // What it has nothing of is given a new start.
    if (has === undefined || had === undefined) return [];
    return [{ tag, now: had, restored: has, told: told && countIn(told, tag) }];
  });
}

function countIn({ hashes }: RedisSnapshot, tag: string): RedisCount | undefined {
  const fields = hashes.get(tag)?.fields;
  const generation = fields?.get("generation");
  if (fields === undefined || generation === undefined) return undefined;
  const of = (name: string): string => fields.get(name) ?? "0";
  const common = { generation: BigInt(generation) };
  if (fields.has("cur")) return { ...common, count: BigInt(of("cur")), bound: BigInt(of("max")) };
  if (fields.has("last_ms")) {
    const count = composeId(LAYOUT, Number(of("last_ms")), Number(of("seq"))) - 1n;
    const bound = composeId(LAYOUT, Number(of("limit_ms")), COUNTERS_PER_MS - 1);
    return { ...common, count, bound };
  }
  return { ...common, count: BigInt(of("changes")), bound: 0n };
}
