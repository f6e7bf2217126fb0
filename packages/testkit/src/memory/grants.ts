// What a MemoryStore grants, and takes back.
import type {
  CallArgs,
  GiveBackRequest,
  Grant,
  GrantRequest,
  Raised,
  RaiseRequest,
  RedisMark,
  Refused,
  Tag,
} from "@idmint/core/server";
import type { MemoryDatabase } from "./database.ts";
import { writeLedger } from "./ledger.ts";
import { countsInRedis } from "./periods.ts";
import { endPeriod, fenced, put } from "./rows.ts";
import { inPeriodAt, refused } from "./rules.ts";

export function grant(
  database: MemoryDatabase,
  requests: readonly GrantRequest[],
): readonly Grant[] {
  return requests.map((request) => grantOne(database, request));
}

function grantOne(database: MemoryDatabase, request: GrantRequest): Grant {
  const { tag } = request;
  const old = fit(database, request);
  if ("outcome" in old) return old;
  if (old.kind.kind !== request.kind || countsInRedis(old.kind)) return refused(tag, "WRONG_KIND");
  if (old.state === "PAUSED") return refused(tag, "TAG_PAUSED");
  const { row, period, ended } = inPeriodAt(old, database.now());
  if (request.after > row.floor) return refused(tag, "AFTER_ABOVE_FLOOR");
  const left = row.ceiling - row.floor;
  const count = left < BigInt(request.count) ? Number(left) : request.count;
  if (count < request.minCount) return refused(tag, "TAG_EXHAUSTED");
  endPeriod(database, row, ended);
  const version = row.version + 1n;
  put(database, { ...row, floor: row.floor + BigInt(count), version });
  const { epoch } = row;
  return { outcome: "granted", tag, base: row.floor + 1n, count, version, epoch, period };
}

export function raise(database: MemoryDatabase, request: RaiseRequest): Raised | Refused {
  const { tag, by, atLeast, newGeneration, generationFrom = 0n } = request;
  const row = fit(database, request);
  if ("outcome" in row) return row;
  if (!countsInRedis(row.kind)) return refused(tag, "WRONG_KIND");
  if (row.state === "PAUSED") return refused(tag, "TAG_PAUSED");
  if (row.floor === row.ceiling) return refused(tag, "TAG_EXHAUSTED");
  const wanted = row.floor + by > atLeast ? row.floor + by : atLeast;
  const floor = wanted > row.ceiling ? row.ceiling : wanted;
  const next = row.generation + 1n > generationFrom ? row.generation + 1n : generationFrom;
  const generation = newGeneration ? next : row.generation;
  const version = row.version + 1n;
  put(database, { ...row, floor, generation, version });
  const { floor: before, epoch } = row;
  return { outcome: "raised", tag, before, floor, generation, version, epoch };
}

export function giveBack(
  database: MemoryDatabase,
  requests: readonly GiveBackRequest[],
): readonly number[] {
  return requests.map(({ tag, from, to, version, giver }) => {
    const row = database.rows.get(tag);
    if (fenced(database) !== "" || row?.kind.kind !== "segment") return 0;
    if (row.state === "DELETED") return 0;
    if (row.floor !== to || row.version !== version) return 0;
    put(database, { ...row, floor: from - 1n, version: row.version + 1n });
    if (giver !== undefined) {
      const range = { tag, firstId: from, lastId: to, version: version + 1n, epoch: row.epoch };
      const nobody = { sequence: 0n, instance: "", principal: "" };
      writeLedger(database, { entry: "give-back", ...range, ...giver, ...nobody });
    }
    return Number(to - from + 1n);
  });
}

export function exchangeMarks(
  database: MemoryDatabase,
  ...[risen, asked]: CallArgs["exchangeMarks"]
): readonly RedisMark[] {
  for (const mark of risen) database.keepMark(mark);
  return asked.flatMap(({ tag, generation }) =>
    (database.marks.get(tag) ?? []).filter((one) => one.generation >= generation),
  );
}

/** The row that a request is for, unless the store went back or it is not there. */
function fit(
  database: MemoryDatabase,
  { tag, seenVersion }: GrantRequest | RaiseRequest,
): Tag | Refused {
  const reason = fenced(database);
  if (reason !== "") return refused(tag, "STORE_EPOCH_CHANGED", reason);
  const row = database.rows.get(tag);
  if ((row?.version ?? 0n) < seenVersion) {
    const detail = "the row's version is lower than one that was seen";
    return refused(tag, "STORE_EPOCH_CHANGED", detail);
  }
  if (row === undefined || row.state === "DELETED") return refused(tag, "TAG_NOT_FOUND");
  return row;
}
