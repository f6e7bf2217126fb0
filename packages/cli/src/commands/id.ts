import { countOf, idsOf, invalidField } from "@idmint/core";
import { type Command, Option } from "commander";
import { type Send, withServer } from "../connection.ts";
import type { Io } from "../io.ts";
import { addConnectionOptions, isJson } from "../options.ts";
import { oneOf, smallNumber } from "../parse.ts";

/** Ids in memory at once; also the most that a lost answer turns into a gap. */
const PIECE = 10_000;
const MAX_COUNT = 10_000_000;

type Format = "text" | "json";

interface NextFlags {
  readonly count?: number;
  readonly format?: Format;
}

/** `idmint id …`: ids for a shell. */
export function addIdCommands(program: Command, io: Io): void {
  const group = program.command("id").description("mint ids").helpCommand(false);
  const command = group
    .command("next")
    .description("mint ids of a tag and print them, one a line")
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
    .addHelpText(
      "after",
      `
More than ${PIECE} ids are fetched and printed in pieces. Ids that were printed before a failure are issued, and
yours; JSON that was cut short by a failure does not parse.

Examples:
  $ idmint id next orders
  $ idmint id next orders --count 1000000 > ids.txt
  $ idmint id next orders -n 3 --json
  {"tag":"orders","ids":["1","2","3"]}
`,
    );
  addConnectionOptions(group);
  command.action(async (tag: string, flags: NextFlags) => {
    const format = formatOf(flags.format, isJson(command));
    await withServer(command, io, async (send) => {
      await printIds(io, format, tag, pieces(send, tag, flags.count ?? 1));
    });
  });
}

function formatOf(format: Format | undefined, json: boolean): Format {
  if (json && format === "text") throw invalidField("--format", "text contradicts --json");
  return format ?? (json ? "json" : "text");
}

/** The ids in the order they were issued, at most PIECE at a time; each piece is fetched when it is asked for. */
async function* pieces(send: Send, tag: string, count: number): AsyncGenerator<readonly bigint[]> {
  if (count === 1) {
    yield [(await send(({ ids }) => ids.generateId.bind(ids), { tag })).id];
    return;
  }
  for (let left = count; left > 0;) {
    // As segments: a piece is a few bytes on the wire then, however many ids it has.
    const request = { tag, count: Math.min(left, PIECE), asList: false };
    // One after the other, so that ids are printed in the order in which they were issued.
    const { segments } = await send(({ ids }) => ids.generateIds.bind(ids), request);
    if (countOf(segments) !== request.count) {
      throw new Error(`asked for ${request.count} ids and was answered ${countOf(segments)}`);
    }
    yield [...idsOf(segments)];
    left -= request.count;
  }
}

/** Prints pieces as they come. Nothing is printed before the first one is there, so an early failure prints no data. */
async function printIds(
  io: Io,
  format: Format,
  tag: string,
  batches: AsyncIterable<readonly bigint[]>,
): Promise<void> {
  let isFirst = true;
  for await (const ids of batches) {
    if (format === "text") {
      await io.out(`${ids.join("\n")}\n`);
    } else {
      const opening = isFirst ? `{"tag":${JSON.stringify(tag)},"ids":[` : ",";
      await io.out(`${opening}${ids.map((id) => `"${id}"`).join(",")}`);
    }
    isFirst = false;
  }
  if (format === "json") await io.out("]}\n");
}
