import { invalidField } from "@idmint/core";
import type { LedgerRow } from "@idmint/core/server";
import { type Command, Option } from "commander";
import { withServer } from "../../calls/connection.ts";
import { CommandFailure, failureOf } from "../../calls/failure.ts";
import { addConfigFlags, loadServerConfig } from "../../flags/config-flags.ts";
import { addRootOptions, namesServer } from "../../flags/options.ts";
import { EXIT } from "../../process/exit-code.ts";
import type { Io } from "../../process/io.ts";
import { examplesText, printAnswer } from "../../text/output.ts";
import { plain } from "../../process/plain.ts";
import { columns } from "../../text/table.ts";
import { floorsOf } from "./floors.ts";
import { type LedgerVerdict, verifyLedger } from "./ledger.ts";
import { type Fault, type FloorOf, judge, type Verdict } from "./judge.ts";

/** `idmint verify`: whether any id was given twice. */
export function addVerifyCommand(program: Command, io: Io): void {
  const command = program
    .command("verify")
    .description("prove that no id was given twice, or show who has it; exit code 5 when one was")
    .argument("[file...]", "histories of callers: a JSON object on each line")
    .addOption(new Option("--tag <name>", "only this tag"))
    .addOption(
      new Option("--ledger", "judge the ledger of the store too; needs --tag or histories"),
    )
    .addHelpText(
      "after",
      `
Each line names a tag and ids, as the API answers them:
  {"tag":"orders","id":"7","who":"shop-1","time":"2026-11-21T08:30:00Z"}
  {"tag":"orders","ids":["8","9"]}
  {"tag":"invoices","period":"2026-11-21","segments":[{"base":"1","count":1000,"increment":"1"}]}
With --address it also compares them with the floors of the server's store: an id above its floor would be given again.
With --ledger it reads the ledger of each tag out of the store that --store-url or --config names.
docs/tools.md describes what is proved.
${examplesText([
  "idmint verify shop-1.ndjson shop-2.ndjson",
  "idmint verify --tag orders --address 127.0.0.1:7600 --json history/*.ndjson",
  "idmint verify --ledger --tag orders --store-url sqlite:/var/lib/idmint/idmint.db",
])}`,
    );
  addRootOptions(command);
  program.hook("preSubcommand", async (_program, called) => {
    if (called.name() === "verify") await addConfigFlags(called, "store");
  });
  command.action(async (files: readonly string[], { tag, ledger = false }: VerifyFlags) => {
    if (files.length === 0 && !(ledger && tag !== undefined)) {
      throw invalidField("FILE", "is required, or --ledger and --tag");
    }
    const { signal } = io;
    const run = async (floorOf: FloorOf | undefined): Promise<void> => {
      const verdict = await judge({ files, tag, signal, floorOf });
      const tags = tag === undefined ? verdict.spaces.map((space) => space.tag) : [tag];
      const ledgers = ledger ? await ledgersOf(command, io, new Set(tags)) : undefined;
      await tell(command, io, { ...verdict, ledgers, isCompared: floorOf !== undefined });
    };
    if (namesServer(command, io.env)) {
      await withServer(command, io, (send) => run(floorsOf(send)));
    } else await run(undefined);
  });
}

interface VerifyFlags {
  readonly tag?: string;
  readonly ledger?: boolean;
}

/** All that was judged. */
interface Judged extends Verdict {
  /** Undefined: they were not asked for. */
  readonly ledgers: readonly LedgerVerdict[] | undefined;
  readonly isCompared: boolean;
}

async function ledgersOf(
  command: Command,
  io: Io,
  tags: ReadonlySet<string>,
): Promise<readonly LedgerVerdict[]> {
  const { openStore, storeConfigOf } = await import("@idmint/server");
  const store = await openStore(storeConfigOf(await loadServerConfig(command, io)));
  try {
    const verdicts: LedgerVerdict[] = [];
    for (const tag of tags) verdicts.push(await verifyLedger(store, tag, io.signal));
    return verdicts;
  } finally {
    await store.close();
  }
}

async function tell(command: Command, io: Io, judged: Judged): Promise<void> {
  const { ledgers = [] } = judged;
  await printAnswer(command, io, {
    json: () => verdictJson(judged),
    text: () => `${verdictText(judged)}${ledgers.map(ledgerText).join("")}`,
  });
  const faultCount = ledgers.reduce((sum, its) => sum + its.faultCount, judged.faultCount);
  if (faultCount === 0) return;
  const what = `${faultCount} ranges of ids are held twice, or lie above their floor`;
  const more = { exitCode: EXIT.unhealthy };
  throw new CommandFailure(failureOf("FAILED_PRECONDITION", "UNHEALTHY", what, more));
}

function verdictText({
  rows,
  ids,
  spaces,
  faults,
  faultCount,
  isCompared,
  ledgers,
}: Judged): string {
  // Only the ledger was asked for.
  if (rows === 0 && ledgers !== undefined) return "";
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

function ledgerText({ tag, rows, faults, faultCount }: LedgerVerdict): string {
  if (faultCount === 0)
    return `${plain(tag)}: no id had two holders in ${rows} rows of the ledger\n`;
  return faults
    .map(({ kind, first, last, rows: both }) => {
      const shown = columns(both.map((row) => [`  ${plain(row.server)}`, ...holderOf(row)]));
      return `${plain(tag)}: ids ${first} to ${last} ${kind}\n${shown}`;
    })
    .join("");
}

function holderOf({ firstId, lastId, instance, principal, atMs, version }: LedgerRow): string[] {
  const who = [instance, principal].filter(Boolean).map(plain).join(" of principal ");
  return [`${firstId} to ${lastId}`, `version ${version}`, new Date(atMs).toISOString(), who];
}

function ledgerJson({ faults, ...verdict }: LedgerVerdict): unknown {
  return {
    ...verdict,
    faults: faults.map(({ kind, first, last, rows }) => ({
      kind,
      first: String(first),
      last: String(last),
      rows: rows.map((row) => ({
        server: row.server,
        nodeId: row.nodeId,
        instance: row.instance,
        principal: row.principal,
        first: String(row.firstId),
        last: String(row.lastId),
        version: String(row.version),
        time: new Date(row.atMs).toISOString(),
      })),
    })),
  };
}

function verdictJson(verdict: Judged): unknown {
  const { rows, ids, spaces, faults, faultCount, isCompared, ledgers } = verdict;
  return {
    ok: faultCount === 0 && (ledgers ?? []).every((its) => its.faultCount === 0),
    ledgers: ledgers?.map(ledgerJson) ?? null,
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
