import { composeId, COUNTERS_PER_MS } from "@idmint/core/kinds";
import { DEFAULT_TIME_ORIGIN_MS } from "../../../core/src/snowflake/layout.ts";
import type { RedisSnapshot } from "../../src/index.ts";
import { isAbove, type RedisCount, type RedisLoss } from "../check/redis-log.ts";

const LAYOUT = { shard: 0, timeOriginMs: DEFAULT_TIME_ORIGIN_MS };

/** How far each tag had counted at most. A key that is gone since had counted all the same: whoever restores it sets it back. */
export type Counted = ReadonlyMap<string, RedisCount>;

interface Moments {
  readonly now: Counted;
  readonly restored: RedisSnapshot;
  /** At the last moment of which all servers were told. */
  readonly told: Counted | undefined;
  /** The process into which it is restored: what another one had is given a new start. */
  readonly process: { readonly runId: string; readonly replId: string };
}

/** What a Redis forgets of each tag that it goes on with. */
export function lossesOf({ now, restored, told, process }: Moments): readonly RedisLoss[] {
  return [...restored.hashes].flatMap(([tag, { fields }]) => {
    const [has, had] = [countIn(fields), now.get(tag)];
    const isOfProcess =
      fields.get("run_id") === process.runId && fields.get("replid") === process.replId;
    // What it has nothing of is given a new start.
    if (has === undefined || had === undefined || !isOfProcess) return [];
    return [{ tag, now: had, restored: has, told: told?.get(tag) }];
  });
}

/** How far it had counted, after another look at what it has. */
export function countedIn({ hashes }: RedisSnapshot, before: Counted): Counted {
  const counted = new Map(before);
  for (const [tag, { fields }] of hashes) {
    const [has, had] = [countIn(fields), counted.get(tag)];
    if (has !== undefined && (had === undefined || isAbove(has, had))) counted.set(tag, has);
  }
  return counted;
}

function countIn(fields: ReadonlyMap<string, string>): RedisCount | undefined {
  const generation = fields.get("generation");
  if (generation === undefined) return undefined;
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
