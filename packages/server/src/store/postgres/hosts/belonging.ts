import type { ClientBase } from "pg";
import type { StorePin } from "../../pins/pin.ts";

const NO_SUCH_TABLE = "42P01";

/** Which database connections are to lead to. */
export interface Belonging {
  /** Reads its id, as `id`. */
  readonly text: string;
  readonly pin: StorePin;
}

/**
 * Rejects with STORE_UNAVAILABLE for a connection that leads to another database than the pinned one.
 *
 * INVARIANT: a connection leads to one database for as long as it lasts, so what was proved when it was made holds for all
 * work on it. A pooler that lends sessions is found by `proof`, since they do not remember the id (identity.ts).
 */
export async function believe(client: ClientBase, belonging: Belonging | undefined): Promise<void> {
  if (belonging === undefined) return;
  const { text, pin } = belonging;
  try {
    const { rows } = await client.query<{ id: string }>(text);
    const [row] = rows;
    // A database that has lost its record grants nothing, and says so by itself.
    if (row !== undefined) await pin.believe(row.id);
  } catch (error) {
    // Whoever opens a database without a schema says so.
    const isBare = (error as { code?: string }).code === NO_SUCH_TABLE;
    if (!isBare || pin.id !== undefined) throw error;
  }
}
