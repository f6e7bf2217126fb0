import { IdmintError } from "@idmint/core";
import { comesFrom } from "@idmint/core/kinds";
import type { GiveBackRequest, Tag } from "@idmint/core/server";
import { type Etcd, type Kept, MAX_ROWS, type Session } from "./session/etcd.ts";
import { changeOf, noteChange, readRows } from "./session/kept-rows.ts";

/**
 * Lowers floors by the unused ends of grants.
 *
 * INVARIANT: the floor is lowered only while it still ends at the grant *and* the row still has the grant's version: an
 * equal floor alone may be that of a later grant, after another give-back. It is tried once, over the row that was read: one
 * whose outcome is not known is a gap. Only segments go back: ids of a sequence were passed on in their order, and those of
 * a tag that counts in Redis are Redis' until it has a new start.
 */
export async function giveBack(
  etcd: Etcd,
  requests: readonly GiveBackRequest[],
): Promise<readonly number[]> {
  etcd.lowered++;
  const counts: number[] = [];
  for (let from = 0; from < requests.length; from += MAX_ROWS) {
    counts.push(...(await giveBackSome(etcd, requests.slice(from, from + MAX_ROWS))));
  }
  return counts;
}

async function giveBackSome(
  etcd: Etcd,
  requests: readonly GiveBackRequest[],
): Promise<readonly number[]> {
  const names = requests.map(({ tag }) => tag);
  try {
    return await etcd.run((session) =>
      etcd.alone(names, session.deadlineMs, () => lower(session, requests)),
    );
  } catch (error) {
    // In a store that went back the grant may be somebody else's by now: it stays a gap.
    if (!(error instanceof IdmintError) || error.reason !== "STORE_EPOCH_CHANGED") throw error;
    return requests.map(() => 0);
  }
}

async function lower(
  session: Session,
  requests: readonly GiveBackRequest[],
): Promise<readonly number[]> {
  const names = requests.map(({ tag }) => tag);
  const rows = await readRows(session, names);
  const changes = requests.flatMap((request, at) => {
    const from = rows[at] as Kept;
    const tag = lowered(from.tag, request);
    return tag === undefined ? [] : [{ name: request.tag, from, tag, at }];
  });
  const counts = requests.map(() => 0);
  if (changes.length === 0) return counts;
  for (const { name } of changes) session.etcd.kept.delete(name);
  const { answers, revision } = await session.write(
    changes.map((change) => changeOf(session, change)),
  );
  changes.forEach((change, index) => {
    const { from, to } = requests[change.at] as GiveBackRequest;
    const isDone = noteChange(session, change, answers[index], revision);
    if (isDone) counts[change.at] = Number(to - from + 1n);
  });
  return counts;
}

function lowered(row: Tag | undefined, { from, to, version }: GiveBackRequest): Tag | undefined {
  if (row === undefined || !comesFrom(row.kind, "segments") || row.state === "DELETED")
    return undefined;
  if (row.floor !== to || row.version !== version) return undefined;
  return { ...row, floor: from - 1n, version: version + 1n };
}
