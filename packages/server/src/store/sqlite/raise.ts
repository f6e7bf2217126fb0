import { IdmintError } from "@idmint/core";
import type { Raised, RaiseRequest, Refused } from "@idmint/core/server";
import type { Transaction } from "./file/connection.ts";
import type { Database } from "./file/database.ts";
import { countChanges } from "./file/identity.ts";
import { refusalOf, refused } from "./grant.ts";

const READ =
  "SELECT redis, state, floor, ceiling, generation, version, epoch FROM tag WHERE name = ?";
const RAISE =
  "UPDATE tag SET floor = ?, generation = ?, version = ?, granted_at_ms = ? WHERE name = ?";

/**
 * Raises the bound of a tag that counts in Redis.
 *
 * INVARIANTS: bound and generation are read, checked and raised under one write lock, so no two callers are answered the
 * same ids or the same new generation; they are answered only when they are on disk; `ceiling − floor` cannot overflow,
 * `floor + by` could.
 */
export function raise(
  database: Database,
  deadlineMs: number,
  request: RaiseRequest,
): Raised | Refused {
  try {
    return database.write(deadlineMs, (transaction) =>
      raiseOne(transaction, request, database.now()),
    );
  } catch (error) {
    if (!(error instanceof IdmintError) || error.reason !== "STORE_EPOCH_CHANGED") throw error;
    return refused(request.tag, "STORE_EPOCH_CHANGED", error.metadata["detail"] ?? "");
  }
}

function raiseOne(
  transaction: Transaction,
  request: RaiseRequest,
  nowMs: number,
): Raised | Refused {
  const { tag, by, atLeast, newGeneration, generationFrom = 0n } = request;
  const row = transaction.get(READ, tag);
  const unfit = refusalOf(row, request);
  if (row === undefined || unfit !== undefined) return unfit ?? refused(tag, "TAG_NOT_FOUND");
  if (row["redis"] !== 1n) return refused(tag, "WRONG_KIND");
  if (row["state"] === "PAUSED") return refused(tag, "TAG_PAUSED");
  const before = row["floor"] as bigint;
  const ceiling = row["ceiling"] as bigint;
  const left = ceiling - before;
  if (left === 0n) return refused(tag, "TAG_EXHAUSTED");
  const raised = by < left ? before + by : ceiling;
  const wanted = atLeast < ceiling ? atLeast : ceiling;
  const floor = raised > wanted ? raised : wanted;
  const old = row["generation"] as bigint;
  const next = old + 1n > generationFrom ? old + 1n : generationFrom;
  const generation = newGeneration ? next : old;
  const version = (row["version"] as bigint) + 1n;
  transaction.run(RAISE, floor, generation, version, nowMs, tag);
  countChanges(transaction, 1, floor - before);
  const epoch = row["epoch"] as bigint;
  return { outcome: "raised", tag, before, floor, generation, version, epoch };
}
