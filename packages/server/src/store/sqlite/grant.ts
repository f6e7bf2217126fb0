import { type Grant, type GrantRequest, IdmintError, type Refused } from "@idmint/core";
import type { Database, Transaction } from "./database.ts";

const READ = "SELECT kind, state, floor, ceiling, version, epoch FROM tag WHERE name = ?";
const GRANT = "UPDATE tag SET floor = ?, version = ? WHERE name = ?";
const PROGRESS = "UPDATE store SET progress = progress + ?";

/**
 * Grants ids of several tags in one transaction.
 *
 * INVARIANTS: a floor is read, checked and raised under one write lock, so no two grants overlap; ids are answered only
 * when the raised floor is on disk; `ceiling − floor` cannot overflow, `floor + count` could; a refused tag leaves the
 * others alone.
 */
export function grant(
  database: Database,
  requests: readonly GrantRequest[],
  deadlineMs: number,
): readonly Grant[] {
  try {
    return database.write(deadlineMs, (transaction) => {
      const grants = requests.map((request) => grantOne(transaction, request));
      const count = grants.filter(({ outcome }) => outcome === "granted").length;
      if (count > 0) transaction.run(PROGRESS, count);
      return grants;
    });
  } catch (error) {
    if (!(error instanceof IdmintError) || error.reason !== "STORE_EPOCH_CHANGED") throw error;
    const detail = error.metadata["detail"] ?? "";
    return requests.map(({ tag }) => refused(tag, "STORE_EPOCH_CHANGED", detail));
  }
}

function grantOne(transaction: Transaction, request: GrantRequest): Grant {
  const { tag, after, seenVersion } = request;
  const row = transaction.get(READ, tag);
  if (row === undefined) {
    if (seenVersion === 0n) return refused(tag, "TAG_NOT_FOUND");
    return refused(tag, "STORE_EPOCH_CHANGED", `tag "${tag}" was there and is gone`);
  }
  const floor = row["floor"] as bigint;
  const left = (row["ceiling"] as bigint) - floor;
  const version = row["version"] as bigint;
  if (version < seenVersion) {
    const detail = `tag "${tag}" is at version ${version}, after ${seenVersion} was seen`;
    return refused(tag, "STORE_EPOCH_CHANGED", detail);
  }
  if (row["state"] === "DELETED") return refused(tag, "TAG_NOT_FOUND");
  if (row["kind"] !== "segment") return refused(tag, "WRONG_KIND");
  if (row["state"] === "PAUSED") return refused(tag, "TAG_PAUSED");
  if (after > floor) return refused(tag, "AFTER_ABOVE_FLOOR");
  if (left < BigInt(request.minCount)) return refused(tag, "TAG_EXHAUSTED");
  const wanted = BigInt(request.count);
  const count = wanted < left ? wanted : left;
  transaction.run(GRANT, floor + count, version + 1n, tag);
  return {
    outcome: "granted",
    tag,
    base: floor + 1n,
    count: Number(count),
    version: version + 1n,
    epoch: row["epoch"] as bigint,
  };
}

function refused(tag: string, reason: Refused["reason"], detail?: string): Refused {
  return { outcome: "refused", tag, reason, ...(detail === undefined ? {} : { detail }) };
}
