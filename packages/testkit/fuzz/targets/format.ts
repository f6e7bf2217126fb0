// Templates of ids and texts that are read by them: a template is refused, or its texts are its ids and no others are.
import { IdmintError, type SnowflakeLayout } from "@idmint/core";
import { type FormatSubject, parseTemplate, TextFormat, zoneOffsets } from "@idmint/core/server";
import { Dice } from "../../sim/world/random.ts";
import { brokenText } from "../draw/bytes.ts";
import type { Target } from "../target.ts";
import { faultOfThrown } from "./refusal.ts";

interface Input {
  readonly template: string;
  readonly of: "number" | "daily" | "snowflake";
  readonly id: string;
  /** The seed by which the id's text is broken and read again; empty: it is not. */
  readonly brokenBy: string;
}

const LAYOUT: SnowflakeLayout = {
  timeUnitMs: 1,
  timeOriginMs: Date.UTC(2026, 0, 1),
  timeBits: 41,
  extensionBits: 2,
  dataCenterBits: 3,
  workerBits: 5,
  sequenceBits: 12,
};
const offsetAt = zoneOffsets();
const MOST = 2n ** 63n - 1n;
const SUBJECTS: Readonly<Record<Input["of"], FormatSubject>> = {
  number: { firstId: 1n, lastId: 10n ** 15n, offsetAt },
  daily: { firstId: 1n, lastId: 10n ** 9n, period: "DAY", offsetAt },
  snowflake: { firstId: 0n, lastId: MOST, snowflake: LAYOUT, offsetAt },
};

const NAMES = ["id", "seq", "machine", "data_center", "extension", "biz"];
const RADIXES = ["", "", ":radix16", ":radix32", ":radix36", ":radix58", ":radix62", ":radix11"];
const WIDTHS = ["", "", ":1", ":4", ":16", ":19", ":63", ":64", ":0"];
const DATES = [
  "yyyyMMdd",
  "yyyyMMddHHmmssSSS",
  "yyyy-MM-dd HH:mm:ss.SSSxx",
  "YYYYww",
  "yyMM",
  "MMdd",
];
const ZONES = [
  "",
  "@UTC",
  "@Z",
  "@+08:00",
  "@-18:01",
  "@Europe/Berlin",
  "@America/St_Johns",
  "@../x",
];
const CHECKS = ["{luhn}", "{mod11_10}", "{mod97_10}", "{mod37_36}"];
const LITERALS = ["", "-", "A", "x", "7", "00", "_", "é", "}", "{{", " "];
const LETTERS = ["{", "}", ":", "@", "0", "9", "z", "Z", "-", "+", "é", "\u0000", "yyyy", "id"];

function part(dice: Dice): string {
  switch (dice.int(0, 5)) {
    case 0:
      return dice.pick(LITERALS);
    case 1:
      return `{${dice.pick(DATES)}${dice.pick(ZONES)}}`;
    case 2:
      return `{period${dice.chance(0.5) ? `:${dice.pick(DATES)}` : ""}}`;
    default:
      return `{${dice.pick(NAMES)}${dice.pick(RADIXES)}${dice.pick(WIDTHS)}}`;
  }
}

function draw(dice: Dice): string {
  const parts = Array.from({ length: dice.int(1, 5) }, () => part(dice));
  if (dice.chance(0.6)) parts.push("{id}");
  if (dice.chance(0.4)) parts.push(dice.pick(CHECKS));
  const right = parts.join(dice.chance(0.5) ? "-" : "");
  const template = dice.chance(0.15) ? brokenText(dice, right, LETTERS) : right;
  const of = dice.pick(["number", "daily", "snowflake"] as const);
  const { firstId, lastId } = SUBJECTS[of];
  const id = [firstId, lastId, firstId + 1n, BigInt(dice.int(1, 1e9)) * BigInt(dice.int(1, 9e5))];
  const brokenBy = dice.chance(0.8) ? dice.token() : "";
  return JSON.stringify({ template, of, id: String(dice.pick(id)), brokenBy } satisfies Input);
}

/** What does not become of an id; INVALID_ARGUMENT and TAG_EXHAUSTED are as they should be. */
function readBack(format: TextFormat, text: string): { id: bigint; period: string } | undefined {
  try {
    return format.parse(text);
  } catch (thrown) {
    const fault = faultOfThrown(thrown);
    if (fault !== undefined) throw new Error(fault, { cause: thrown });
    return undefined;
  }
}

function faultOf(format: TextFormat, { of, id, brokenBy }: Input): string | undefined {
  const period = of === "daily" ? "2026-11-28" : "";
  let own: string;
  try {
    own = format.render(BigInt(id), period);
  } catch (thrown) {
    return thrown instanceof IdmintError && thrown.reason === "TAG_EXHAUSTED"
      ? undefined
      : String(thrown);
  }
  if (own.length < format.shortest || own.length > format.longest) return `${own.length} letters`;
  const read = readBack(format, own);
  if (read?.id !== BigInt(id) || read.period !== period) return `${own} is read as ${read?.id}`;
  if (brokenBy === "") return undefined;
  const other = brokenText(new Dice(brokenBy), own, LETTERS, 2);
  const found = readBack(format, other);
  if (found === undefined) return undefined;
  const again = format.render(found.id, found.period);
  return again === other ? undefined : `${other} is read as ${found.id}, whose text is ${again}`;
}

export function formatTarget(): Target {
  return {
    draw,
    run: (line) => {
      const input = JSON.parse(line) as Input;
      let format: TextFormat;
      try {
        format = new TextFormat(parseTemplate(input.template), SUBJECTS[input.of]);
      } catch (thrown) {
        return faultOfThrown(thrown);
      }
      return faultOf(format, input);
    },
    atOnce: 1,
    withinMs: 2_000,
  };
}
