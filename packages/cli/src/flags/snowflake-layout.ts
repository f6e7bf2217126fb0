import {
  IdmintError,
  invalidField,
  millisecondsOf,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
} from "@idmint/core";
import { COUNTERS_PER_MS, MAX_SNOWFLAKE_SHARD } from "@idmint/core/kinds";
import { KINDS, type Values } from "@idmint/core/kinds";
import type { SnowflakeKind, Tag } from "@idmint/proto";
import { Option } from "commander";
import { kindWord } from "./kind-words.ts";
import type { Parser } from "./parse.ts";

const STANDARD = SNOWFLAKE_PRESETS["41-10-12"];

const NAMED = Object.keys(SNOWFLAKE_PRESETS).filter((name) => !/^\d/.test(name));

/** A layout as the table of kind snowflake has it. */
function layoutValues(layout: SnowflakeLayout): Values {
  const rest = { dataCenter: 0, clockPolicy: "REFUSE", clockWaitMs: 0, registry: "STORE" } as const;
  return { ...KINDS.snowflake.draftOf({ kind: "snowflake", layout, ...rest }).layout };
}

/** The layout of tags that name none. */
export const DEFAULT_LAYOUT: Values = layoutValues(STANDARD);

/** Widths in bits: time-worker-sequence, or time-datacenter-worker-sequence; or the name of a preset. */
function layoutFrom(field: string): Parser<Values> {
  return (text) => {
    const named = Object.entries(SNOWFLAKE_PRESETS).find(([name]) => name === text)?.[1];
    if (named !== undefined) return layoutValues(named);
    const widths = /^\d{1,2}(?:-\d{1,2}){2,3}$/.test(text) ? text.split("-").map(Number) : [];
    const [timeBits, ...rest] = widths;
    const [sequenceBits, workerBits, dataCenterBits = 0] = rest.toReversed();
    if (timeBits === undefined || workerBits === undefined || sequenceBits === undefined) {
      const forms = `time-worker-sequence such as 41-10-12, time-datacenter-worker-sequence such as 41-5-5-12, ${NAMED.join(" or ")}`;
      throw invalidField(field, `must be widths in bits, ${forms}, got "${text}"`);
    }
    const widened = { timeBits, dataCenterBits, workerBits, sequenceBits };
    return layoutValues({ ...STANDARD, ...widened });
  };
}

/** --layout. */
export function layoutOption(): Option {
  return new Option(
    "--layout <widths>",
    `snowflake: bits of time-worker-sequence (default 41-10-12), time-datacenter-worker-sequence, or ${NAMED.join(", ")}`,
  ).argParser(layoutFrom("--layout"));
}

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
