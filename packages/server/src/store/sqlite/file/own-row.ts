import type { EarlierRow } from "@idmint/core/server";
import { EarlierProof, type KnownRow, lossOf } from "../../pins/own-row-state.ts";
import { monotonicMs, type Transaction } from "./connection.ts";

const READ = `SELECT (SELECT renewals FROM node WHERE id = ?1) AS renewals,
  (SELECT max(renewals) FROM node_gone WHERE id = ?1) AS forgotten`;

/** In which history, and when, a row was looked at. */
export type Look = Pick<KnownRow, "history" | "id" | "storeMs">;

/**
 * What this process knows of its server's row (own-row-state.ts). A history is the store's incarnation; that an earlier one
 * came back is told by the store's generation (Fence).
 */
export class OwnRow {
  #known: KnownRow | undefined;
  readonly earlier: EarlierProof = new EarlierProof();

  resume(id: string, earlier: EarlierRow): void {
    this.#known ??= this.earlier.resume(id, earlier, monotonicMs());
  }

  /**
   * Why the store went back, in words; empty: the row does not show it. To be asked by the transaction that renews the row,
   * which would wipe out the proof, or marks the store.
   */
  lossIn(transaction: Transaction, look: Look): string {
    const known = this.#known;
    if (known === undefined || known.id !== look.id) return "";
    const { renewals = null, forgotten = null } = transaction.get(READ, look.id) ?? {};
    const found = {
      ...look,
      renewals: (renewals as bigint | null) ?? undefined,
      forgotten: (forgotten as bigint | null) ?? undefined,
      atMs: monotonicMs(),
    };
    const loss = lossOf(known, found);
    if (loss === "") this.earlier.compared(found);
    return loss;
  }

  /** A renewal that left this number is committed. */
  renewed(look: Look, renewals: bigint): void {
    this.#known = { ...look, renewals, atMs: monotonicMs() };
  }
}
