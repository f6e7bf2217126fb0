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
export async function lossOf(
  session: Session,
  known: OwnRow,
  { incarnation, row }: FoundRow,
): Promise<string> {
  if (incarnation !== known.incarnation) return "";
  const number = row === undefined ? undefined : nodeFrom(row.value).renewals;
  if (number !== undefined && number >= known.renewals) return "";
  const isEarlier = row !== undefined && BigInt(row.modRevision) < BigInt(known.revision);
  if (!isEarlier && (await isExplained(session, known))) return "";
  return lossText(known, number);
}

/** Whether the history has the row as it was acknowledged, or does not tell any more. */
async function isExplained(session: Session, { id, renewals, revision }: OwnRow): Promise<boolean> {
  const key = session.keys.node(id);
  try {
    const [[row] = []] = await session.read([{ key, revision }]);
    return row?.modRevision === revision && nodeFrom(row.value).renewals === renewals;
  } catch (error) {
    if (error instanceof CallFailure && error.kind === "compacted") return true;
    throw error;
  }
}
