import { IdmintError } from "@idmint/core";
import { CallFailure } from "./cluster/failure.ts";
import type { Compare } from "./cluster/protocol.ts";
import type { Session } from "./session/etcd.ts";
import type { Standing } from "./session/proof.ts";
import { valueOfRecord } from "./session/rows.ts";

/** Marks a store of which a look showed that it went back, over the last write of any server as that look found it. */
export async function markWentBack(session: Session, standing: Standing): Promise<void> {
  const { lost, written } = standing;
  if (lost === "") return;
  await mark(session, standing, lost, { key: session.keys.one("room"), modRevision: written });
}

/**
 * Marks a store that went back, so that servers refuse that cannot see it themselves. More writes would hide it from them. An
 * accept clears the mark.
 *
 * INVARIANT: the mark is written only over what the loss was seen in: the record, with its incarnation, and the key that
 * showed it. So a server that slept meanwhile marks no history that was accepted after that, and another copy of the history,
 * to which the address leads by now, is not marked for this one.
 */
export async function mark(
  session: Session,
  { record, value }: Standing,
  lost: string,
  shownBy: Compare,
): Promise<void> {
  if (record.wentBack !== undefined || record.accepting !== undefined) return;
  const { etcd, keys } = session;
  const key = keys.one("store");
  const put = { put: { key, value: valueOfRecord({ ...record, wentBack: lost }) } };
  const op = { txn: { compare: [{ key, value }, shownBy], success: [put], failure: [] } };
  try {
    // Without Session.write: that writes as servers do, which would hide what they would see.
    await etcd.transact(session.deadlineMs, [op], { effect: "any", fenced: "allow" });
  } catch (error) {
    // The next poll looks again.
    if (!(error instanceof CallFailure || error instanceof IdmintError)) throw error;
  }
}
