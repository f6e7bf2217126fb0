import { ListFiguresResponse } from "@idmint/proto";
import { type Command, Option } from "commander";
import { withServer } from "../calls/connection.ts";
import { addConnectionOptions } from "../flags/options.ts";
import { smallNumber } from "../flags/parse.ts";
import type { Io } from "../process/io.ts";
import { figuresText, tagFiguresText } from "../text/figures-text.ts";
import { examplesText, printAnswer } from "../text/output.ts";
import { protoJson } from "../text/proto-json.ts";

const MAX_SECONDS = 900;
const SECONDS = 10;

interface FiguresFlags {
  readonly seconds?: number;
}

/** `idmint figures`: what all servers counted in the last seconds. */
export function addFiguresCommand(program: Command, io: Io): void {
  const command = program
    .command("figures")
    .description("show what all servers counted lately: rates, refusals, latencies, clocks, alarms")
    .argument("[tag]", "a tag, to see what each server issues of it and has in memory")
    .addOption(
      new Option(
        "--seconds <count>",
        `how many seconds back, at most ${MAX_SECONDS} (default: ${SECONDS})`,
      ).argParser(smallNumber("--seconds", { min: 1, max: MAX_SECONDS })),
    )
    .addHelpText(
      "after",
      `
The server that is called asks all others, for a second at most, with the token that it was shown. Those that tell nothing are
listed with the reason. Rates are averages over the seconds that a server counted. P50 and P99 are of calls for ids that were
answered with ids, as well as buckets of a histogram tell. CLOCK is how far a server's clock is ahead of the store's. With
--json each second stands by itself. A tag is counted from when it is first asked for.
${examplesText([
  "idmint figures",
  "idmint figures orders --seconds 60",
  "idmint figures --json | jq '.silentNodes[].instance'",
])}`,
    );
  addConnectionOptions(command);
  command.action(async (tag: string = "", { seconds = SECONDS }: FiguresFlags) => {
    await withServer(command, io, async (send) => {
      const request = { tag, seconds, thisServer: false };
      const answer = await send(({ nodes }) => nodes.listFigures.bind(nodes), request);
      await printAnswer(command, io, {
        json: () => protoJson(ListFiguresResponse, answer),
        text: () => (tag === "" ? figuresText(answer) : tagFiguresText(answer)),
      });
    });
  });
}
