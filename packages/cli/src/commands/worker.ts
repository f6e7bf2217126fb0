import { IdmintError, invalidField } from "@idmint/core";
import type { Worker } from "@idmint/proto";
import { type Command, Option } from "commander";
import { type Send, withServer } from "../connection.ts";
import type { Io } from "../io.ts";
import { timeText } from "../kind-text.ts";
import { addConnectionOptions } from "../options.ts";
import { examplesText, printAnswer } from "../output.ts";
import { addPageOptions, listPages, type PageFlags, tellOfMore } from "../paging.ts";
import { smallNumber } from "../parse.ts";
import { columns, plain } from "../table.ts";

const MAX_LISTED = 100_000;
/** Most worker ids that are looked through for one. */
const MAX_SEARCHED = 1_000_000;
const MAX_WORKER_ID = 2 ** 20 - 1;
const MAX_DATA_CENTER = 65_535;

/** `idmint worker …`: the worker ids of snowflake tags. */
export function addWorkerCommands(program: Command, io: Io): void {
  const group = program
    .command("worker")
    .description("look after the worker ids of tags of kind snowflake")
    .helpCommand(false);
  addList(group, io);
  addRelease(group, io);
  addConnectionOptions(group);
}

function addList(group: Command, io: Io): void {
  const command = group
    .command("list")
    .description("list the worker ids of a tag that were ever leased, and who has them")
    .argument("<tag>", "name of the tag")
    .addHelpText(
      "after",
      examplesText([
        "idmint worker list trace",
        "idmint worker list trace --json | jq '.workers[] | select(.leased)'",
      ]),
    );
  addPageOptions(command, "workers", { max: MAX_LISTED });
  command.action(async (tag: string, flags: PageFlags) => {
    await withServer(command, io, async (send) => {
      const { items: workers, nextPageToken } = await listWorkers(send, tag, flags);
      await printAnswer(command, io, {
        json: () => ({ workers: workers.map(workerJson), nextPageToken }),
        text: () => workerTable(workers),
      });
      tellOfMore(io, "workers", nextPageToken);
    });
  });
}

function listWorkers(
  send: Send,
  tag: string,
  flags: PageFlags,
): ReturnType<typeof listPages<Worker>> {
  return listPages(flags, async (page) => {
    const request = { tag, ...page };
    const answer = await send(({ workers }) => workers.listWorkers.bind(workers), request);
    return { items: answer.workers, nextPageToken: answer.nextPageToken };
  });
}

function workerTable(workers: readonly Worker[]): string {
  const rows = workers.map((worker) => [
    String(worker.dataCenter),
    String(worker.workerId),
    worker.leased ? "leased" : "ended",
    String(worker.extension),
    timeText(worker.reservedUntilTime),
    timeText(worker.expireTime),
    plain(worker.instance),
  ]);
  const head = ["DATA CENTER", "WORKER", "LEASE", "EXTENSION", "RESERVED UNTIL", "EXPIRES"];
  return columns([[...head, "INSTANCE"], ...rows]);
}

function workerJson({ reservedUntilTime, expireTime, ...worker }: Worker): unknown {
  return {
    ...worker,
    reservedUntilTime: reservedUntilTime?.toISOString() ?? null,
    expireTime: expireTime?.toISOString() ?? null,
  };
}

interface ReleaseFlags {
  readonly dataCenter?: number;
  readonly yes?: boolean;
}

function addRelease(group: Command, io: Io): void {
  const command = group
    .command("release")
    .description("end the lease of a worker id whose holder is gone, before it ends by itself")
    .argument("<tag>", "name of the tag")
    .argument("<worker>", "the worker id", smallNumber("WORKER", { min: 0, max: MAX_WORKER_ID }))
    .addOption(
      new Option(
        "--data-center <number>",
        "data centre, where several have this worker id",
      ).argParser(smallNumber("--data-center", { min: 0, max: MAX_DATA_CENTER })),
    )
    .addOption(new Option("--yes", "mean it: a holder that still runs has to lease anew"))
    .addHelpText(
      "after",
      `
Leases end 30 s after their last renewal; this is for those who cannot wait. No id is repeated by it: the time that is
reserved stays reserved, and whoever leases the worker id next begins above it.
${examplesText(["idmint worker release trace 3 --yes"])}`,
    );
  command.action(async (tag: string, workerId: number, flags: ReleaseFlags) => {
    if (flags.yes !== true) {
      const why = "is required: a holder that still runs makes no ids until it has leased anew";
      throw invalidField("--yes", why);
    }
    await withServer(command, io, async (send) => {
      const { items: workers, nextPageToken } = await listWorkers(send, tag, {
        limit: MAX_SEARCHED,
      });
      if (nextPageToken !== "")
        throw invalidField("TAG", `has more than ${MAX_SEARCHED} worker ids`);
      const worker = chosen(tag, workers, workerId, flags.dataCenter);
      const released = worker.leased && (await release(send, tag, worker));
      await printAnswer(command, io, {
        json: () => ({ tag, dataCenter: worker.dataCenter, workerId, released }),
        text: () =>
          columns([
            ["instance", plain(worker.instance)],
            ["data center", String(worker.dataCenter)],
            ["worker", String(workerId)],
            ["released", released ? "yes" : "no, its lease had ended"],
          ]),
      });
    });
  });
}

/** The one worker that is meant. */
function chosen(
  tag: string,
  workers: readonly Worker[],
  workerId: number,
  dataCenter: number | undefined,
): Worker {
  const found = workers.filter(
    (worker) =>
      worker.workerId === workerId &&
      (dataCenter === undefined || worker.dataCenter === dataCenter),
  );
  const [first, ...others] = found;
  if (first === undefined) {
    const where = dataCenter === undefined ? "" : ` in data centre ${dataCenter}`;
    throw invalidField(
      "WORKER",
      `must be one that was leased${where}; idmint worker list ${tag} shows them, got ${workerId}`,
    );
  }
  if (others.length === 0) return first;
  const places = found.map((worker) => worker.dataCenter).join(", ");
  throw invalidField("--data-center", `is required: worker ${workerId} is there in ${places}`);
}

/**
 * Ends a lease without its token, which only its holder has: leases the worker id for the same instance, which answers a
 * token and makes the holder's useless, and ends that lease. The shortest reservation that there is.
 */
async function release(send: Send, tag: string, worker: Worker): Promise<boolean> {
  const { instance, dataCenter, workerId } = worker;
  const reserveAhead = { seconds: 1n, nanos: 0 };
  const lease = await send(({ workers }) => workers.leaseWorker.bind(workers), {
    tag,
    instance,
    dataCenter,
    reserveAhead,
  });
  const { token } = lease;
  const key = { tag, dataCenter: lease.dataCenter, workerId: lease.workerId, token };
  await send(({ workers }) => workers.releaseWorkerLease.bind(workers), key);
  if (lease.workerId === workerId && lease.dataCenter === dataCenter) return true;
  // Between the list and the lease somebody else leased it; what this leased instead is released again.
  const metadata = { tag, data_center: String(dataCenter), worker_id: String(workerId) };
  const text = `worker id ${workerId} was leased by somebody else meanwhile, and was left alone`;
  throw new IdmintError("WORKER_LEASE_LOST", text, { metadata });
}
