/**
 * Where a residue class of a tag stands in one database: that database may issue from it (active), has given it away and
 * nobody is known to have it yet (frozen), or knows that its new owner has it (moved).
 */
export type SlotState = "active" | "frozen" | "moved";

/** A residue class of a tag, as one database has it. Its ids are ≡ slot modulo the tag's number of slots. */
export interface Slot {
  /** 0 … slots − 1. */
  readonly slot: number;
  /** Id of the database that may issue from it under this epoch; the one that has the row, exactly while it is active. */
  readonly owner: string;
  /** Rises by one each time that the slot is given to another database. */
  readonly epoch: bigint;
  /** Highest id that may have been issued from it; below the first id while none was. */
  readonly lastId: bigint;
  readonly state: SlotState;
}

/** The owner of slots that an operator gave up, since no database has them any more. No database has this id. */
export const NOBODY = "nobody";

/** What one database knows of one tag's slots, at one moment. */
export interface SlotsView {
  /** The database's id: its name in the configuration, and something that no other database ever had. */
  readonly databaseId: string;
  /** How many slots the tag has over all databases; 0 when none is here. */
  readonly slotCount: number;
  /** Another one each time that an operator accepts the database after it went back. */
  readonly incarnation: string;
  readonly slots: readonly Slot[];
}

/**
 * The name in an id of the form `name.random`: a database's when its schema was made, or a tag's. The random end tells it
 * from any other that had, or will have, the same name.
 */
export function nameOfId(id: string): string {
  return id.slice(0, id.lastIndexOf("."));
}

/** Ids wanted of one slot. */
export interface SlotRequest {
  readonly slot: number;
  /** The epoch under which the database is taken to own it. */
  readonly epoch: bigint;
  /** Highest last id of the slot that the caller has seen; a lower row means that the database went back. */
  readonly seenLastId: bigint;
  readonly count: number;
}

export interface TicketRequest {
  /** Names the slots of the tag, `tag.random`: TicketKind.slotsId. */
  readonly slotsId: string;
  /** Nothing above is issued. */
  readonly ceiling: bigint;
  /** One entry a slot. */
  readonly requests: readonly SlotRequest[];
}

/**
 * Ids first, first + slots, …, `count` of them, durable before the answer and nobody else's; or why none came:
 * - MOVED: the slot is not active here, or not under that epoch.
 * - NOT_RAISED: the database was started since its slots were raised.
 * - EXHAUSTED: no id is left below the ceiling.
 */
export type SlotGrant =
  | {
      readonly slot: number;
      readonly outcome: "granted";
      readonly first: bigint;
      /** At most what was asked for; fewer only at the ceiling. */
      readonly count: number;
      readonly lastId: bigint;
    }
  | {
      readonly slot: number;
      readonly outcome: "refused";
      readonly reason: "MOVED" | "NOT_RAISED" | "EXHAUSTED";
    };

/**
 * One of several databases that count the ids of ticket tags. Each method is one transaction, durable before it is
 * answered; it rejects with STORE_UNAVAILABLE when the outcome is unknown, and with STORE_EPOCH_CHANGED when the database
 * is not the one that was accepted, or is behind what the caller saw.
 */
export interface TicketDatabase {
  /** The name in the configuration. */
  readonly name: string;

  list(slotsId: string): Promise<SlotsView>;

  /** The `slotsId`s there are here, in order, after `afterSlotsId` (empty: from the beginning). */
  listSlotsIds(query: { afterSlotsId: string; limit: number }): Promise<readonly string[]>;

  /**
   * Makes these slots, active, with nothing issued and nothing to be issued up to `above`; those that are there stay.
   * Only before the tag that names `slotsId` is made.
   */
  make(request: {
    readonly slotsId: string;
    readonly slots: number;
    readonly own: readonly number[];
    readonly above: bigint;
  }): Promise<void>;

  /** Raises the active slots, so that nothing up to `above` is issued, and answers all slots as they are then. */
  raise(request: { readonly slotsId: string; readonly above: bigint }): Promise<SlotsView>;

  /** In the order of the requests. */
  grant(request: TicketRequest): Promise<readonly SlotGrant[]>;

  /**
   * Gives an active slot of this epoch to another database: nothing is issued from it here any more, and its epoch is one
   * higher. Answers the slot as it is then, whoever changed it; undefined when there is none.
   */
  freeze(request: {
    readonly slotsId: string;
    readonly slot: number;
    readonly epoch: bigint;
    /** Id of the database that gets it. */
    readonly to: string;
  }): Promise<Slot | undefined>;

  /**
   * Takes over a slot that was frozen for this database under this epoch, with nothing up to `above` to be issued; a slot
   * that is here under this epoch or a later one stays as it is. Answers the slot as it is then.
   */
  adopt(request: {
    readonly slotsId: string;
    readonly slot: number;
    readonly slots: number;
    /** Id of the database that it was frozen for; another one refuses. */
    readonly owner: string;
    readonly epoch: bigint;
    readonly above: bigint;
  }): Promise<Slot>;

  /**
   * Takes note that slots are nobody's, under an epoch above `epoch` and above any that their owner can have had, so that it
   * is behind should it come back. Those that are active here stay.
   */
  forget(request: {
    readonly slotsId: string;
    readonly slots: number;
    readonly lost: readonly number[];
    readonly epoch: bigint;
  }): Promise<void>;

  /** Takes note that the new owner has a slot that was frozen under this epoch. */
  confirm(request: {
    readonly slotsId: string;
    readonly slot: number;
    readonly epoch: bigint;
  }): Promise<void>;
}
