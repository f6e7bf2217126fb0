import { IdmintError, invalidField, MAX_WORKER_BITS } from "@idmint/core";
import { Worker } from "@idmint/proto";
import { type Command, Option } from "commander";
import { confirm, serverPlace } from "./confirm.ts";
import { type Send, withServer } from "../calls/connection.ts";
import type { Io } from "../process/io.ts";
import { timeText } from "../text/kind-text.ts";
import { addConnectionOptions } from "../flags/options.ts";
import { examplesText, printAnswer } from "../text/output.ts";
import { addPageOptions, listPages, type PageFlags, tellOfMore } from "../calls/paging.ts";
import { smallNumber } from "../flags/parse.ts";
import { protoJson } from "../text/proto-json.ts";
import { plain } from "../process/plain.ts";
import { columns } from "../text/table.ts";

const MAX_LISTED = 100_000;
const MAX_WORKER_ID = 2 ** MAX_WORKER_BITS - 1;
const MAX_DATA_CENTERS = 65_536;

/** `idmint worker …`: manages the worker ids of snowflake tags. */
export function addWorkerCommands(program: Command, io: Io): void {
  const group = program
    .command("worker")
    .description("manage the worker ids of tags of kind snowflake")
    .helpCommand(false);
  addList(group, io);
  addRelease(group, io);
  addConnectionOptions(group);
}

function addList(group: Command, io: Io): void {
  const command = group
    .command("list")
    .description("list all worker ids of a tag that were ever leased, and their holders")
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
        json: () => ({
          workers: workers.map((worker) => protoJson(Worker, worker)),
          nextPageToken,
        }),
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
  workerId?: number,
): ReturnType<typeof listPages<Worker>> {
  return listPages(flags, async (page) => {
    const request = { tag, workerId, ...page };
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

interface ReleaseFlags {
  readonly dataCenter?: number;
}

function addRelease(group: Command, io: Io): void {
  const command = group
    .command("release")
    .description("end the lease of a worker id whose holder is gone, before it expires")
    .argument("<tag>", "name of the tag")
    .argument("<worker>", "the worker id", smallNumber("WORKER", { min: 0, max: MAX_WORKER_ID }))
    .addOption(
      new Option(
        "--data-center <number>",
        "data center, where several have this worker id",
      ).argParser(smallNumber("--data-center", { min: 0, max: MAX_DATA_CENTERS - 1 })),
    )
    .addHelpText(
      "after",
      `
A lease ends on its own 30 s after its last renewal. Use this command if you cannot wait. It repeats no id: reserved time
stays reserved, and whoever leases the worker id next begins above it.
${examplesText(["idmint worker release trace 3 --yes"])}`,
    );
  command.action(async (tag: string, workerId: number, flags: ReleaseFlags) => {
    const effect = `ends the lease of worker ${workerId} of tag "${tag}", so that a holder that still runs makes no ids until it has leased anew`;
    await confirm(command, io, { place: serverPlace(command, io), effect });
    await withServer(command, io, async (send) => {
      const { items: workers } = await listWorkers(
        send,
        tag,
        { limit: MAX_DATA_CENTERS },
        workerId,
      );
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

/** The one worker that the command line means. */
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
    const where = dataCenter === undefined ? "" : ` in data center ${dataCenter}`;
    throw invalidField(
      "WORKER",
      `must be a worker id that was leased${where}, got ${workerId}; idmint worker list ${tag} shows them`,
    );
  }
  if (others.length === 0) return first;
  const places = found.map((worker) => worker.dataCenter).join(", ");
  throw invalidField(
    "--data-center",
    `is required: worker ${workerId} exists in data centers ${places}`,
  );
}

/**
 * Ends a lease without its token, which only the holder has. It leases the worker id again for the same instance, which
 * makes the holder's token useless, and then releases that new lease. It reserves the shortest possible time.
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
  // Somebody else leased it between the list and the lease. What was leased here instead is released again.
  const metadata = { tag, data_center: String(dataCenter), worker_id: String(workerId) };
  const text = `somebody else leased worker id ${workerId} in the meantime, so it was not released`;
  throw new IdmintError("WORKER_LEASE_LOST", text, { metadata });
}
