import { lossText } from "../pins/own-row-state.ts";
import { CallFailure } from "./cluster/failure.ts";
import type { KeyValue } from "./cluster/protocol.ts";
import type { OwnRow, Session } from "./session/etcd.ts";
import { nodeFrom } from "./session/rows.ts";

/** This server's row as a renewal found it. */
export interface FoundRow {
  readonly incarnation: string;
  /** Undefined: there is none. */
  readonly row: KeyValue | undefined;
}

/**
 * Why the store went back, by this server's own row; empty: the row does not show it.
 *
 * A revision and a term are soon passed again by others. The number in a server's row is moved by that server alone.
 *
 * INVARIANT: no false alarm. Within one history no key goes back to an earlier revision, and what was read at a revision is
 * read there for as long as etcd keeps it. So a row that is gone, or was made anew by a poll that had been given up, is
 * explained by its earlier revision: it was forgotten, or its lease ended. `known` is what was known when `found` was asked
 * for, since polls may overlap.
 */
export async function judgeRow(
  session: Session,
  known: OwnRow,
  { incarnation, row }: FoundRow,
): Promise<RowVerdict> {
  if (incarnation !== known.incarnation) return { loss: "", isThere: false };
  const number = row === undefined ? undefined : nodeFrom(row.value).renewals;
  if (number !== undefined && number >= known.renewals) return { loss: "", isThere: true };
  const isEarlier = row !== undefined && BigInt(row.modRevision) < BigInt(known.revision);
  const wasThere = isEarlier ? false : await isInHistory(session, known);
  if (wasThere !== false) return { loss: "", isThere: wasThere === true };
  return { loss: lossText(known, number), isThere: false };
}

export interface RowVerdict {
  /** Empty: the row does not show that the store went back. */
  readonly loss: string;
  /** Whether the history has the row as it was acknowledged, so that nothing of before that is missing. */
  readonly isThere: boolean;
}

/** Whether the history has the row as it was acknowledged; undefined: it does not tell any more. */
async function isInHistory(
  session: Session,
  { id, renewals, revision }: OwnRow,
): Promise<boolean | undefined> {
  const key = session.keys.node(id);
  try {
    const [[row] = []] = await session.read([{ key, revision }]);
    return row?.modRevision === revision && nodeFrom(row.value).renewals === renewals;
  } catch (error) {
    if (error instanceof CallFailure && error.kind === "compacted") return undefined;
    throw error;
  }
}
