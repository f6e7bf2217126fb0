import {
  COUNTERS_PER_MS,
  IdmintError,
  MAX_SNOWFLAKE_SHARD,
  millisecondsOf,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
} from "@idmint/core";
import type { SnowflakeKind, Tag } from "@idmint/proto";
import { kindWord } from "./kind-flags.ts";

const STANDARD = SNOWFLAKE_PRESETS["41-10-12"];

/** A layout of the API, with the servers' defaults for what it leaves out. */
export function domainLayout(wire: SnowflakeKind["layout"]): SnowflakeLayout {
  if (wire === undefined) return STANDARD;
  const { timeUnit, timeOrigin, ...bits } = wire;
  return {
    ...bits,
    timeUnitMs: timeUnit === undefined ? STANDARD.timeUnitMs : millisecondsOf(timeUnit),
    timeOriginMs: timeOrigin?.getTime() ?? STANDARD.timeOriginMs,
  };
}

/** The layout of a tag whose ids hold the time; WRONG_KIND for all others. */
export function layoutOf({ name, kind }: Tag): SnowflakeLayout {
  if (kind?.$case === "snowflake") return domainLayout(kind.value.layout);
  if (kind?.$case === "redisSnowflake") {
    return {
      timeUnitMs: 1,
      timeOriginMs: kind.value.timeOrigin?.getTime() ?? STANDARD.timeOriginMs,
      timeBits: 41,
      extensionBits: 0,
      dataCenterBits: 0,
      workerBits: Math.log2(MAX_SNOWFLAKE_SHARD + 1),
      sequenceBits: Math.log2(COUNTERS_PER_MS),
    };
  }
  const word = kindWord(kind?.$case);
  throw new IdmintError(
    "WRONG_KIND",
    `tag "${name}" is of kind ${word}; only ids of kinds snowflake and redis-snowflake contain the time`,
    { metadata: { tag: name, kind: word } },
  );
}
