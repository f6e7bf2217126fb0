/** Who asks for a change, and how. The store writes it down in the transaction of the change. */
export interface AuditNote {
  /** Random name of the event. A change of all databases of a store has a row of this name in each. */
  readonly id: string;
  /** Name of who asked; empty: anonymous. */
  readonly principal: string;
  /** What proved the name, such as `token`; `claim`: nothing did. Empty for anonymous callers. */
  readonly proof: string;
  /** Where the call came from. */
  readonly peer: string;
  /** The method's path, or the command that worked on the store itself. */
  readonly method: string;
  /** Instance of the server that was called; empty: none was. */
  readonly server: string;
}

/** `change`: something was changed. `refusal`: somebody was not allowed to do something. */
export type AuditKind = "change" | "refusal";

/** A row of the audit trail. */
export interface AuditEvent extends AuditNote {
  readonly kind: AuditKind;
  /** Of changes by the store's clock, of refusals by the server's; milliseconds since 1970. */
  readonly atMs: number;
  /** What was changed or asked for, such as `tag/orders`. */
  readonly resource: string;
  /** `OK`, or the reason of the refusal. */
  readonly outcome: string;
  /** What differed before and afterwards, as JSON objects; empty where there was nothing. Never a secret. */
  readonly before: string;
  readonly after: string;
  /**
   * 0: the row tells of one event. Otherwise it stands for so many refusals of this caller, which got no rows of their own,
   * and tells of the last.
   */
  readonly omitted: number;
}

/** The place of an event among those of its kind: by time, then by name. */
export interface AuditPlace {
  readonly atMs: number;
  readonly id: string;
}

/**
 * Keeps the audit trail.
 *
 * INVARIANT: a change that was made with a note has its row, and a row tells of a change that was made: one transaction
 * writes both. Changes of tags, traffic, issuing and tokens, removed rows of servers, accepts and migrations take a note.
 */
export interface AuditStore {
  /** Up to `limit` events of a kind since `sinceMs` that are older than `before`, newest first. */
  listAudit(query: {
    readonly kind: AuditKind;
    readonly before: AuditPlace | undefined;
    readonly sinceMs: number;
    readonly limit: number;
  }): Promise<readonly AuditEvent[]>;
  /** Adds events that belong to no other call. One that is there already stays as it is. At most MAX_AUDIT_BATCH. */
  recordAudit(events: readonly AuditEvent[]): Promise<void>;
  /**
   * Removes events from before `beforeMs`, and where there are more than `keep`, the oldest of those who have more than their
   * share (auditShare); `limit` of them at most. Answers how many.
   */
  trimAudit(query: {
    readonly kind: AuditKind;
    readonly beforeMs: number;
    readonly keep: number;
    readonly limit: number;
  }): Promise<number>;
}

/** Most events of one `recordAudit`. */
export const MAX_AUDIT_BATCH = 100;
/** Longest text of what differed before or after a change, in characters. A longer one says so instead. */
export const MAX_AUDIT_TEXT = 32_768;
