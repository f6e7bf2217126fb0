// Runs in a thread of its own: SQLite's calls block, and so does the wait for another process's lock.
import { parentPort, workerData } from "node:worker_threads";
import { DEFAULT_MAX_OFFLINE_MS, storeUnavailable } from "@idmint/core";
import { accept } from "./accept.ts";
import { changes } from "./changes.ts";
import { type Database, monotonicMs } from "./database.ts";
import { giveBack } from "./give-back.ts";
import { grant } from "./grant.ts";
import { exchangeMarks } from "./marks.ts";
import { forgetNodes } from "./nodes.ts";
import { openDatabase } from "./open.ts";
import { listPeriods } from "./periods.ts";
import { type Answer, type Calls, type Request, toWire, type WorkerData } from "./protocol.ts";
import { raise } from "./raise.ts";
import {
  advanceTag,
  createTag,
  getTags,
  listTags,
  returnToPeriod,
  setTagState,
  updateTag,
} from "./tags.ts";
import { leaseWorker, listWorkers, releaseWorker, renewWorker } from "./workers.ts";

if (parentPort === null) throw new Error("this file is the SQLite store's worker thread");
const port = parentPort;

function answer(message: Answer): void {
  port.postMessage(message);
}

type Work = {
  readonly [Name in keyof Calls]: (
    deadlineMs: number,
    ...args: Parameters<Calls[Name]>
  ) => Awaited<ReturnType<Calls[Name]>>;
};

function workOn(database: Database): Work {
  return {
    accept: (deadlineMs, gap, maxOfflineMs = DEFAULT_MAX_OFFLINE_MS) =>
      accept(database, gap, maxOfflineMs, deadlineMs),
    advanceTag: (deadlineMs, name, floor, options) =>
      advanceTag(database, name, floor, options, deadlineMs),
    returnToPeriod: (deadlineMs, name, period, options) =>
      returnToPeriod(database, name, period, options, deadlineMs),
    changes: (deadlineMs, query) => changes(database, query, deadlineMs),
    createTag: (deadlineMs, settings, options) =>
      createTag(database, settings, options, deadlineMs),
    exchangeMarks: (deadlineMs, risen, asked) => exchangeMarks(database, risen, asked, deadlineMs),
    forgetNodes: (deadlineMs, keys) => forgetNodes(database, keys, deadlineMs),
    getTags: (deadlineMs, names) => getTags(database, names, deadlineMs),
    giveBack: (deadlineMs, requests) => giveBack(database, requests, deadlineMs),
    grant: (deadlineMs, requests) => grant(database, requests, deadlineMs),
    leaseWorker: (deadlineMs, request) => leaseWorker(database, request, deadlineMs),
    listPeriods: (deadlineMs, query) => listPeriods(database, query, deadlineMs),
    listTags: (deadlineMs, query) => listTags(database, query, deadlineMs),
    listWorkers: (deadlineMs, query) => listWorkers(database, query, deadlineMs),
    raise: (deadlineMs, request) => raise(database, request, deadlineMs),
    releaseWorker: (deadlineMs, key) => releaseWorker(database, key, deadlineMs),
    renewWorker: (deadlineMs, renewal) => renewWorker(database, renewal, deadlineMs),
    setTagState: (deadlineMs, name, state, revision, options) =>
      setTagState(database, name, state, revision, options, deadlineMs),
    updateTag: (deadlineMs, name, change, revision, options) =>
      updateTag(database, name, change, revision, options, deadlineMs),
  };
}

function serve(database: Database): void {
  const work = workOn(database);
  port.on("message", (request: Request) => {
    if ("close" in request) {
      database.close();
      port.close();
      return;
    }
    const { id, call, args, deadlineMs } = request;
    try {
      // Nobody waits any more: what would be granted now would only be burnt.
      if (monotonicMs() >= deadlineMs) throw storeUnavailable("the store was not asked in time");
      const run = work[call] as (deadlineMs: number, ...args: readonly unknown[]) => unknown;
      answer({ id, value: run(deadlineMs, ...args) });
    } catch (error) {
      answer({ id, error: toWire(error) });
    }
  });
}

function clockOf({ clockOffset }: WorkerData): () => number {
  if (clockOffset === undefined) return Date.now;
  const offset = new BigInt64Array(clockOffset);
  return () => Date.now() + Number(Atomics.load(offset, 0));
}

try {
  const data = workerData as WorkerData;
  const { database, schemaVersion } = openDatabase(data.config, clockOf(data));
  serve(database);
  answer({ opened: { schemaVersion } });
} catch (error) {
  answer({ refused: toWire(error) });
}
