import {
  IdmintError,
  invalidField,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
  type SnowflakeParts,
} from "@idmint/core";
import { KIND_NAMES, KINDS, specOf, type Values, wordOf } from "@idmint/core/kinds";
import type { Tag } from "@idmint/proto";
import { settingsOfProto } from "@idmint/server/kind-values";
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

/** How ids of a tag are composed that hold the time, and what they have unless told; WRONG_KIND for all others. */
export function layoutOf({ name, kind }: Tag): {
  readonly layout: SnowflakeLayout;
  readonly own: Partial<SnowflakeParts>;
} {
  const settings = kind === undefined ? undefined : settingsOfProto(kind);
  const composed = settings === undefined ? undefined : specOf(settings).composed;
  if (settings !== undefined && composed !== undefined)
    return { layout: composed.layout(settings), own: composed.own(settings) };
  const word = kindWord(kind?.$case);
  const names = KIND_NAMES.filter((each) => KINDS[each].composed !== undefined);
  throw new IdmintError(
    "WRONG_KIND",
    `tag "${name}" is of kind ${word}; only ids of kinds ${names.toReversed().map(wordOf).join(" and ")} contain the time`,
    { metadata: { tag: name, kind: word } },
  );
}
