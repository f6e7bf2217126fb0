import { type Command, Option } from "commander";
import { withServer } from "../../calls/connection.ts";
import { CommandFailure, failureOf } from "../../calls/failure.ts";
import { addRootOptions, namesServer } from "../../flags/options.ts";
import { EXIT } from "../../process/exit-code.ts";
import type { Io } from "../../process/io.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { columns, plain } from "../../text/table.ts";
import { floorsOf } from "./floors.ts";
import { type Fault, type FloorOf, judge, type Verdict } from "./judge.ts";

/** `idmint verify`: whether any id was given twice. */
export function addVerifyCommand(program: Command, io: Io): void {
  const command = program
    .command("verify")
    .description("prove from histories that no id was given twice, or show who has it; exit code 5")
    .argument("<file...>", "histories of callers: a JSON object on each line")
    .addOption(new Option("--tag <name>", "only this tag"))
    .addHelpText(
      "after",
      `
Each line names a tag and ids, as the API answers them:
  {"tag":"orders","id":"7","who":"shop-1","time":"2026-11-21T08:30:00Z"}
  {"tag":"orders","ids":["8","9"]}
  {"tag":"invoices","period":"2026-11-21","segments":[{"base":"1","count":1000,"increment":"1"}]}
With --address it also compares them with the floors of the server's store: an id above its floor would be given again.
docs/tools.md describes what is proved.
${examplesText([
  "idmint verify shop-1.ndjson shop-2.ndjson",
  "idmint verify --tag orders --address 127.0.0.1:7600 --json history/*.ndjson",
])}`,
    );
  addRootOptions(command);
  command.action(async (files: readonly string[], { tag }: { readonly tag?: string }) => {
    const { signal } = io;
    const run = async (floorOf: FloorOf | undefined): Promise<void> => {
      const verdict = await judge({ files, tag, signal, floorOf });
      await tell(command, io, verdict, floorOf !== undefined);
    };
    if (namesServer(command, io.env)) {
      await withServer(command, io, (send) => run(floorsOf(send)));
    } else await run(undefined);
  });
}

async function tell(
  command: Command,
  io: Io,
  verdict: Verdict,
  isCompared: boolean,
): Promise<void> {
  await printAnswer(command, io, {
    json: () => verdictJson(verdict, isCompared),
    text: () => verdictText(verdict, isCompared),
  });
  const { faultCount } = verdict;
  if (faultCount === 0) return;
  const what = `${faultCount} ranges of ids are held twice, or lie above their floor`;
  const more = { exitCode: EXIT.unhealthy };
  throw new CommandFailure(failureOf("FAILED_PRECONDITION", "UNHEALTHY", what, more));
}

function verdictText(
  { rows, ids, spaces, faults, faultCount }: Verdict,
  isCompared: boolean,
): string {
  const tags = new Set(spaces.map(({ tag }) => tag)).size;
  const checked = `${rows} rows with ${ids} ids of ${tags} tags`;
  if (faultCount === 0) {
    const floors = isCompared ? ", and none is above its tag's floor" : "";
    return `no id is there twice in ${checked}${floors}\n`;
  }
  const blocks = faults.map((fault) => `${headline(fault)}\n${holdersText(fault)}`);
  return `${checked}\n${blocks.join("")}`;
}

function headline({ tag, period, kind, first, last, floor }: Fault): string {
  const name = plain(period === "" ? tag : `${tag}, period ${period}`);
  const ids = first === last ? `id ${first}` : `ids ${first} to ${last}`;
  return kind === "overlap"
    ? `${name}: ${ids} held more than once`
    : `${name}: ${ids} above the store's floor ${floor}, so it would be given again`;
}

function holdersText({ holders }: Fault): string {
  return columns(
    holders.map(({ file, line, first, last, who, time }) => [
      `  ${plain(file)}:${line}`,
      first === last ? String(first) : `${first} to ${last}`,
      plain(who),
      plain(time),
    ]),
  );
}

function verdictJson(verdict: Verdict, isCompared: boolean): unknown {
  const { rows, ids, spaces, faults, faultCount } = verdict;
  return {
    ok: faultCount === 0,
    rows,
    ids: String(ids),
    comparedWithFloors: isCompared,
    spaces: spaces.map(({ tag, period, summary }) => ({
      tag,
      period,
      ids: String(summary.ids),
      lowest: String(summary.lowest),
      highest: String(summary.highest),
    })),
    faultCount,
    faults: faults.map(({ first, last, floor, holders, ...fault }) => ({
      ...fault,
      first: String(first),
      last: String(last),
      floor: floor === undefined ? null : String(floor),
      holders: holders.map((holder) => ({
        ...holder,
        first: String(holder.first),
        last: String(holder.last),
      })),
    })),
  };
}
