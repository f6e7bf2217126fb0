import { idsOf, invalidField, periodText } from "@idmint/core";
import type { GetTagResponse } from "@idmint/proto";
import { type Command, Option } from "commander";
import { type Send, withServer } from "../../calls/connection.ts";
import type { Io } from "../../process/io.ts";
import { addConnectionOptions, isJson } from "../../flags/options.ts";
import { oneOf, smallNumber } from "../../flags/parse.ts";
import { plain } from "../../process/plain.ts";
import { addDecode, answersText } from "./id-decode.ts";
import { addEncode } from "./id-encode.ts";
import { addRange } from "./id-range.ts";
import { addWho } from "./id-who.ts";

/** Ids in memory at once. A lost answer turns at most so many into a gap. */
const PIECE = 10_000;
/** Servers make at most this many for one call. */
const UNGUESSABLE_PIECE = 1_000;
const MAX_COUNT = 10_000_000;

type Format = "text" | "json";

interface NextFlags {
  readonly count?: number;
  readonly format?: Format;
  readonly name?: string;
}

/** `idmint id …`: ids for a shell. */
export function addIdCommands(program: Command, io: Io): void {
  const group = program
    .command("id")
    .description("mint, decode and compose ids")
    .helpCommand(false);
  addDecode(group, io);
  addEncode(group, io);
  addRange(group, io);
  addWho(group, io);
  const command = group
    .command("next")
    .description(
      "mint ids of a tag and print one per line; with its period, if the tag has periods",
    )
    .argument("<tag>", "name of the tag")
    .addOption(
      new Option("-n, --count <count>", "how many, 1 to 10000000 (default 1)").argParser(
        smallNumber("--count", { min: 1, max: MAX_COUNT }),
      ),
    )
    .addOption(
      new Option("--format <format>", "text (default) or json, like --json").argParser(
        oneOf<Format>("--format", { text: "text", json: "json" }),
      ),
    )
    .addOption(new Option("--name <name>", "the name that a UUID of version 3 or 5 is made from"))
    .addHelpText(
      "after",
      `
More than ${PIECE} ids are fetched and printed in pieces. Ids that were printed before a failure are issued and
yours. JSON that a failure cut short does not parse. An id of a tag with periods is printed as 20261121-1, and in
JSON as {"period":"2026-11-21","id":"1","text":"20261121-1"} in "periodIds" instead of "ids". Ids that are text (formats,
UUIDs, ObjectIds) are printed as they are, in JSON in "texts".

Examples:
  $ idmint id next orders
  $ idmint id next orders --count 1000000 > ids.txt
  $ idmint id next orders -n 3 --json
  {"tag":"orders","ids":["1","2","3"]}
  $ idmint id next invoice
  20261121-1
`,
    );
  addConnectionOptions(group);
  command.action(async (tag: string, flags: NextFlags) => {
    const format = formatOf(flags.format, isJson(command));
    const { count = 1, name = "" } = flags;
    if (name !== "" && count !== 1) throw invalidField("--count", "must be 1 with --name");
    await withServer(command, io, async (send) => {
      await printIds(io, format, tag, pieces(send, tag, count, name));
    });
  });
}

function formatOf(format: Format | undefined, json: boolean): Format {
  if (json && format === "text") throw invalidField("--format", "text contradicts --json");
  return format ?? (json ? "json" : "text");
}

/** Ids that were issued together: of one period, which is empty for tags without periods. */
interface Piece {
  readonly ids: readonly bigint[];
  /** Instead of ids, for tags whose ids are text. */
  readonly texts: readonly string[];
  readonly period: string;
}

/** The ids in the order they were issued, at most PIECE at a time; each piece is fetched when it is asked for. */
async function* pieces(
  send: Send,
  tag: string,
  count: number,
  name: string,
): AsyncGenerator<Piece> {
  if (count === 1) {
    const { id, text, period } = await send(({ ids }) => ids.generateId.bind(ids), { tag, name });
    // Ids that are text have the number 0, which is no id.
    yield id === 0n ? { ids: [], texts: [text], period } : { ids: [id], texts: [], period };
    return;
  }
  const how = howOf(await send(({ tags }) => tags.getTag.bind(tags), { name: tag }));
  for (let left = count; left > 0;) {
    const request = { tag, count: Math.min(left, how.most), asList: how.asList };
    // One after the other, so that ids are printed in the order in which they were issued.
    const answer = await send(({ ids }) => ids.generateIds.bind(ids), request);
    const { texts, period } = answer;
    const ids = how.asList ? answer.ids : [...idsOf(answer.segments)];
    const answered = ids.length + texts.length;
    if (answered !== request.count)
      throw new Error(`asked for ${request.count} ids and was answered ${answered}`);
    yield { ids, texts, period };
    left -= request.count;
  }
}

/** How to ask for ids of a tag: texts one by one; numbers as segments, which take a few bytes on the wire each. */
function howOf({ tag }: GetTagResponse): { readonly asList: boolean; readonly most: number } {
  return {
    asList: tag !== undefined && answersText(tag),
    most: tag?.unguessable === undefined ? PIECE : UNGUESSABLE_PIECE,
  };
}

/** Prints pieces as they come. Nothing is printed before the first one is there, so an early failure prints no data. */
async function printIds(
  io: Io,
  format: Format,
  tag: string,
  batches: AsyncIterable<Piece>,
): Promise<void> {
  let isFirst = true;
  for await (const piece of batches) {
    if (format === "text") {
      await io.out(textOf(piece));
    } else {
      const list = listOf(piece);
      const opening = isFirst ? `{"tag":${JSON.stringify(tag)},"${list}":[` : ",";
      await io.out(`${opening}${jsonOf(piece)}`);
    }
    isFirst = false;
  }
  if (format === "json") await io.out("]}\n");
}

/** The name of the list of ids in JSON. */
function listOf({ texts, period }: Piece): string {
  if (texts.length > 0) return "texts";
  return period === "" ? "ids" : "periodIds";
}

function textOf({ ids, texts, period }: Piece): string {
  if (texts.length > 0) return `${texts.map(plain).join("\n")}\n`;
  const lines = period === "" ? ids : ids.map((id) => plain(periodText(period, id)));
  return `${lines.join("\n")}\n`;
}

function jsonOf({ ids, texts, period }: Piece): string {
  if (texts.length > 0) return texts.map((text) => JSON.stringify(text)).join(",");
  if (period === "") return ids.map((id) => `"${id}"`).join(",");
  return ids
    .map((id) => JSON.stringify({ period, id: String(id), text: periodText(period, id) }))
    .join(",");
}
