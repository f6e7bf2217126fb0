import { storeIsForeign } from "@idmint/core/server";
import type { ClientBase } from "pg";
import type { StorePin } from "../../pins/pin.ts";
import { type IdentityTable, proveId } from "../identity.ts";

const NO_SUCH_TABLE = "42P01";

/**
 * Which database some connections lead to.
 *
 * INVARIANT: a connection leads to one database for as long as it lasts, so what was proved when it was made holds for all
 * work on it. A pooler may lend another session for each statement, so those that grant, lease and poll compare the id too
 * (`proof` in identity.ts).
 *
 * A database is pinned once whoever opens it has found that it is the one that is configured: one of another schema, name
 * or fleet must not be pinned by a mistyped address. Until then all connections lead to the same.
 */
export class Belonging {
  readonly #text: string;
  readonly #pin: StorePin;
  readonly #refuse: (id: string) => void;
  #found: string | undefined;

  /** `refuse` throws for an id that alone tells a database of another configuration. */
  constructor(table: IdentityTable, pin: StorePin, refuse: (id: string) => void = () => undefined) {
    this.#text = proveId(table);
    this.#pin = pin;
    this.#refuse = refuse;
  }

  /** Rejects with STORE_UNAVAILABLE for a connection that leads to another database. */
  async prove(client: ClientBase): Promise<void> {
    try {
      const { rows } = await client.query<{ id: string }>(this.#text);
      const [row] = rows;
      // A database that has lost its record grants nothing, and says so by itself.
      if (row === undefined) return;
      if (this.#pin.id !== undefined) return await this.#pin.believe(row.id);
      this.#refuse(row.id);
      this.#found ??= row.id;
      if (row.id !== this.#found) throw storeIsForeign(row.id, this.#found);
    } catch (error) {
      // Whoever opens a database without a schema says so.
      const isBare = (error as { code?: string }).code === NO_SUCH_TABLE;
      if (!isBare || this.#pin.id !== undefined) throw error;
    }
  }

  /** Undefined before a connection was proved. */
  get id(): string | undefined {
    return this.#pin.id ?? this.#found;
  }

  /** The database is the one that is configured. */
  async settle(): Promise<void> {
    if (this.#found !== undefined) await this.#pin.believe(this.#found);
  }
}
