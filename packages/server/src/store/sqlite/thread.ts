// Runs in a thread of its own: SQLite's calls block, and so does the wait for another process's lock.
import { parentPort, workerData } from "node:worker_threads";
import {
  type CallAnswers,
  type CallArgs,
  type StoreCall,
  storeUnavailable,
} from "@idmint/core/server";
import * as accept from "./accept.ts";
import * as audit from "./records/audit.ts";
import * as changes from "./changes.ts";
import * as claims from "./records/claims.ts";
import { monotonicMs } from "./file/connection.ts";
import type { Database } from "./file/database.ts";
import * as giveBack from "./give-back.ts";
import * as grant from "./grant.ts";
import * as ledger from "./records/ledger.ts";
import * as marks from "./marks.ts";
import * as nodes from "./nodes.ts";
import { openDatabase } from "./open.ts";
import * as periods from "./periods.ts";
import { type Answer, type Request, type ThreadData, toWire } from "./protocol.ts";
import * as raise from "./raise.ts";
import * as tags from "./tags.ts";
import * as tokens from "./records/tokens.ts";
import * as workerLeases from "./worker-leases.ts";

if (parentPort === null) throw new Error("this file is the SQLite store's thread");
const port = parentPort;

function answer(message: Answer): void {
  // failpoint: sqlite-committed
  port.postMessage(message);
}

/** What each call does with the file, by its deadline: the function of its name out of the files beside this one. */
const CALLS: {
  readonly [Name in StoreCall]: (
    database: Database,
    deadlineMs: number,
    ...args: CallArgs[Name]
  ) => CallAnswers[Name];
} = {
  ...accept,
  ...audit,
  ...changes,
  askForClaims: claims.askForClaims,
  claim: claims.claim,
  hearClaims: claims.hearClaims,
  withdrawAsk: claims.withdrawAsk,
  ...giveBack,
  ...grant,
  findInLedger: ledger.findInLedger,
  listLedger: ledger.listLedger,
  recordLedger: ledger.recordLedger,
  ...marks,
  ...nodes,
  ...periods,
  ...raise,
  ...tags,
  ...tokens,
  ...workerLeases,
};

function serve(database: Database): void {
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
      const run = CALLS[call] as (
        database: Database,
        deadlineMs: number,
        ...args: readonly unknown[]
      ) => unknown;
      answer({ id, value: run(database, deadlineMs, ...args) });
    } catch (error) {
      answer({ id, error: toWire(error) });
    }
  });
}

function clockOf({ clockOffset }: ThreadData): () => number {
  if (clockOffset === undefined) return Date.now;
  const offset = new BigInt64Array(clockOffset);
  return () => Date.now() + Number(Atomics.load(offset, 0));
}

try {
  const data = workerData as ThreadData;
  const { storeId } = data;
  const { database, ...opened } = openDatabase(data.config, { now: clockOf(data), storeId });
  serve(database);
  answer({ opened });
} catch (error) {
  answer({ refused: toWire(error) });
}
