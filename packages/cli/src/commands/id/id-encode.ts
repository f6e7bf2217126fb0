import { plain } from "../../process/plain.ts";
import {
  encode,
  IdmintError,
  invalidField,
  MAX_ID,
  MAX_WORKER_BITS,
  type SnowflakeParts,
  tickAt,
} from "@idmint/core";
import { type PeriodUnit, specOf, type TagKind } from "@idmint/core/kinds";
import { periodsOf, type TextFormat, textFormatOf, zoneOffsets } from "@idmint/core/server";
import type { Tag } from "@idmint/proto";
import { settingsOfProto } from "@idmint/server/kind-values";
import { type Command, Option } from "commander";
import { withServer } from "../../calls/connection.ts";
import type { Io } from "../../process/io.ts";
import { kindWord } from "../../flags/kind-words.ts";
import { printAnswer } from "../../text/output.ts";
import { smallNumber, time, wholeNumber } from "../../flags/parse.ts";
import { layoutOf } from "../../flags/snowflake-layout.ts";
import { assertInLife } from "./id-range.ts";
import { readTag } from "../tag/tag-parts.ts";

/** The fields of a snowflake, as typed. */
interface FieldFlags {
  readonly time?: Date;
  readonly worker?: number;
  readonly dataCenter?: number;
  readonly extension?: number;
  readonly sequence?: number;
}

interface EncodeFlags extends FieldFlags {
  readonly number?: bigint;
  readonly period?: string;
}

/** An id, composed. */
interface Encoded {
  readonly id: bigint;
  /** Empty for tags whose ids are numbers. */
  readonly text: string;
}

/** `idmint id encode`: composes an id, as `idmint id decode` takes it apart. */
export function addEncode(group: Command, io: Io): void {
  const command = group
    .command("encode")
    .description("compose an id from its parts; issues nothing")
    .argument("<tag>", "name of the tag")
    .addOption(
      new Option("--time <time>", "snowflakes: time in UTC (required)").argParser(time("--time")),
    )
    .addOption(
      field(
        "--worker",
        "snowflakes: worker id, or shard (default: the tag's)",
        2 ** MAX_WORKER_BITS - 1,
      ),
    )
    .addOption(field("--data-center", "snowflakes: data center (default: the tag's)", 65_535))
    .addOption(field("--extension", "snowflakes: extension (default 0)", 255))
    .addOption(
      field("--sequence", "snowflakes: place within the unit of time (default 0)", 2 ** 30 - 1),
    )
    .addOption(
      new Option("--number <number>", "tags with a format: the number to write").argParser(
        wholeNumber("--number", { min: 0n, max: MAX_ID }),
      ),
    )
    .addOption(
      new Option("--period <day>", "formats with a period: its first day, such as 2026-11-21"),
    )
    .addHelpText(
      "after",
      `
For tests and for looking things up. An id that is composed may be issued any time, or have been issued before.

Examples:
  $ idmint id encode trace --time 2026-11-21T15:30:45.123Z --worker 42 --sequence 7
  $ idmint id encode invoices --number 42
  $ idmint id encode receipts --number 42 --period 2026-11-21
`,
    );
  command.action(async (name: string, flags: EncodeFlags) => {
    await withServer(command, io, async (send) => {
      const tag = await readTag(send, name);
      const { id, text } = await encoded(tag, flags);
      await printAnswer(command, io, {
        json: () => ({ tag: name, id: String(id), text }),
        text: () => `${text === "" ? id : plain(text)}\n`,
      });
    });
  });
}

function field(flag: string, what: string, max: number): Option {
  return new Option(`${flag} <number>`, what).argParser(smallNumber(flag, { min: 0, max }));
}

async function encoded(tag: Tag, flags: EncodeFlags): Promise<Encoded> {
  const settings = tag.kind === undefined ? undefined : settingsOfProto(tag.kind);
  const isComposed = settings !== undefined && specOf(settings).composed !== undefined;
  const isOfParts = isComposed && flags.number === undefined;
  if (!isOfParts) refuseFields(tag, flags);
  const format = formatOf(tag, settings);
  if (isOfParts) {
    const id = composed(tag, flags);
    return { id, text: format?.render(id) ?? "" };
  }
  if (format === undefined) throw plainNumbers(tag);
  if (flags.number === undefined)
    throw invalidField("--number", "is required: the number to write as text");
  return {
    id: flags.number,
    text: format.render(flags.number, periodStart(settings, flags.period)),
  };
}

/** The id of a time and the other fields. INVALID_ARGUMENT for what the layout has no room for. */
function composed(tag: Tag, flags: EncodeFlags): bigint {
  if (flags.period !== undefined)
    throw invalidField("--period", "is for tags with periods; leave it out");
  if (flags.time === undefined) throw invalidField("--time", "is required: the time in the id");
  const { layout, own } = layoutOf(tag);
  assertInLife("--time", flags.time, layout);
  const { worker = workerOf(own, layout.workerBits), extension = 0, sequence = 0 } = flags;
  const { dataCenter = own.dataCenter ?? 0 } = flags;
  const tick = tickAt(layout, flags.time.getTime());
  return encode(layout, { tick, extension, dataCenter, worker, sequence });
}

function workerOf({ worker }: Partial<SnowflakeParts>, workerBits: number): number {
  if (worker !== undefined || workerBits === 0) return worker ?? 0;
  throw invalidField("--worker", `is required: 0 to ${2 ** workerBits - 1}`);
}

/** Throws when fields of a snowflake are typed for an id that has none. */
function refuseFields(tag: Tag, flags: FieldFlags): void {
  const { time: at, worker, dataCenter, extension, sequence } = flags;
  const given = Object.entries({ time: at, worker, dataCenter, extension, sequence }).find(
    ([, value]) => value !== undefined,
  );
  if (given === undefined) return;
  const flag = `--${given[0].replace("C", "-c")}`;
  const why = "is a field of a snowflake, and goes neither with --number nor with tags of kind";
  throw invalidField(flag, `${why} ${kindWord(tag.kind?.$case)}; leave it out`);
}

/** How the texts of a tag are written; undefined for tags whose ids are numbers. */
function formatOf(tag: Tag, kind: TagKind | undefined): TextFormat | undefined {
  const { name, ceiling, format, unguessable } = tag;
  if (unguessable !== undefined) {
    const text = `ids of tag "${name}" are made with key ${unguessable.keyId}, which only servers have, and SDKs that are given it`;
    throw wrongKind(tag, text);
  }
  if (format === undefined || kind === undefined) return undefined;
  return textFormatOf({ kind, ceiling, format }, zoneOffsets());
}

/** The days on which periods begin, in words and as a test. */
const FIRST_DAYS: Readonly<Record<PeriodUnit, readonly [string, (day: Date) => boolean]>> = {
  DAY: ["a day", () => true],
  WEEK: ["a Monday", (day) => day.getUTCDay() === 1],
  MONTH: ["the first day of a month", (day) => day.getUTCDate() === 1],
  YEAR: ["the first of January", (day) => day.getUTCDate() === 1 && day.getUTCMonth() === 0],
};

/** The first day of a period, YYYY-MM-DD; empty for tags without periods. */
function periodStart(kind: TagKind | undefined, text: string | undefined): string {
  const unit = kind === undefined ? undefined : periodsOf(kind)?.unit;
  if (unit === undefined) {
    if (text === undefined) return "";
    throw invalidField("--period", "is for tags with periods; leave it out");
  }
  const [what, isFirst] = FIRST_DAYS[unit];
  const example = `such as ${unit === "YEAR" ? "2026-01-01" : "2026-06-01"}`;
  if (text === undefined) throw invalidField("--period", `is required: ${what}, ${example}`);
  if (text.length === 10 && isFirst(time("--period")(text))) return text;
  throw invalidField("--period", `must be ${what}, ${example}, got "${text}"`);
}

function plainNumbers(tag: Tag): IdmintError {
  return wrongKind(tag, `ids of tag "${tag.name}" are not composed of anything`);
}

function wrongKind({ name, kind }: Tag, text: string): IdmintError {
  return new IdmintError("WRONG_KIND", text, {
    metadata: { tag: name, kind: kindWord(kind?.$case) },
  });
}
