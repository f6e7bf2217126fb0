import { createHash } from "node:crypto";
import { assertNoViolations, type FieldViolation } from "@idmint/core";
import type { AuditEvent, AuditKind, AuditPlace, AuditStore } from "@idmint/core/server";
import type { AdminGate } from "../admin-gate.ts";
import { decodePageToken, encodePageToken, pageLimitOf, pageSizeViolation } from "../page-token.ts";

/** Which events are listed; what is empty or undefined is no condition. */
export interface AuditQuery {
  readonly pageSize: number;
  readonly pageToken: string;
  readonly kind: AuditKind | undefined;
  readonly principal: string;
  readonly resource: string;
  readonly outcome: string;
  /** At or after; before. Milliseconds since 1970. */
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
}

/** Rows of one reading, and most readings of a page: the rest of a long search is the next page's. */
const ROWS = 1_000;
const MAX_READINGS = 10;
const PLACE = /^(\d{1,15})\.([A-Za-z0-9_.:-]{1,128})$/;
const KINDS = ["change", "refusal"] as const;
/** What a google.protobuf.Timestamp may say: years 1 to 9999. */
const TIMES = [Date.parse("0001-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")] as const;

/** Lists the audit trail, newest first. */
export class AuditList {
  readonly #store: AuditStore;
  readonly #gate: AdminGate;

  constructor({ store, gate }: { readonly store: AuditStore; readonly gate: AdminGate }) {
    this.#store = store;
    this.#gate = gate;
  }

  /** A page may hold fewer than were asked for, and even none, and still have a next one. */
  async list(query: AuditQuery): Promise<{
    readonly events: readonly AuditEvent[];
    readonly nextPageToken: string;
  }> {
    const { kind, principal, resource, outcome, sinceMs = 0, untilMs } = query;
    assertNoViolations(timeViolation("start_time", sinceMs), timeViolation("end_time", untilMs));
    const conditions = JSON.stringify([kind, principal, resource, outcome, sinceMs, untilMs]);
    // Short, however long the conditions are.
    const list = [
      "audit",
      createHash("sha256").update(conditions).digest("base64url").slice(0, 22),
    ];
    const after = decodePageToken(query.pageToken, list);
    const place = after === undefined ? undefined : placeOf(after);
    assertNoViolations(
      pageSizeViolation(query.pageSize),
      after === undefined || (after !== "" && place === undefined)
        ? {
            field: "page_token",
            description: "belongs to another list: send it with the same conditions",
            reason: "INVALID_PAGE_TOKEN",
          }
        : undefined,
      untilMs !== undefined && untilMs < sinceMs
        ? {
            field: "end_time",
            description: "must not be before start_time",
            reason: "VALUE_OUT_OF_RANGE",
          }
        : undefined,
    );
    const limit = pageLimitOf(query.pageSize);
    const kinds = kind === undefined ? KINDS : [kind];
    const events: AuditEvent[] = [];
    let before = place ?? (untilMs === undefined ? undefined : { atMs: untilMs, id: "" });
    for (let readings = 0; readings < MAX_READINGS; readings++) {
      // Each page goes on where the one before ended.
      const rows = await this.#read(kinds, before, sinceMs);
      for (const event of rows) {
        before = event;
        if (!isMeant(event, query)) continue;
        events.push(event);
        if (events.length === limit) return { events, nextPageToken: tokenOf(event, list) };
      }
      if (rows.length < ROWS) return { events, nextPageToken: "" };
    }
    return { events, nextPageToken: before === undefined ? "" : tokenOf(before, list) };
  }

  /** The next rows of these kinds as one list. */
  async #read(
    kinds: readonly AuditKind[],
    before: AuditPlace | undefined,
    sinceMs: number,
  ): Promise<readonly AuditEvent[]> {
    const read = (kind: AuditKind): Promise<readonly AuditEvent[]> =>
      this.#gate.run(() => this.#store.listAudit({ kind, before, sinceMs, limit: ROWS }));
    const lists = await Promise.all(kinds.map(read));
    return lists.flat().toSorted(newestFirst).slice(0, ROWS);
  }
}

function timeViolation(field: string, ms: number | undefined): FieldViolation | undefined {
  // A time that no Date has is NaN.
  if (ms === undefined || (ms >= TIMES[0] && ms <= TIMES[1])) return undefined;
  return { field, description: "must be in the years 1 to 9999", reason: "VALUE_OUT_OF_RANGE" };
}

function isMeant(event: AuditEvent, query: AuditQuery): boolean {
  return (["principal", "resource", "outcome"] as const).every(
    (name) => query[name] === "" || event[name] === query[name],
  );
}

function newestFirst(a: AuditPlace, b: AuditPlace): number {
  if (a.atMs !== b.atMs) return b.atMs - a.atMs;
  return a.id === b.id ? 0 : a.id < b.id ? 1 : -1;
}

function tokenOf({ atMs, id }: AuditPlace, list: readonly string[]): string {
  return encodePageToken(`${atMs}.${id}`, list);
}

function placeOf(text: string): AuditPlace | undefined {
  const [, atMs, id] = PLACE.exec(text) ?? [];
  return atMs === undefined || id === undefined ? undefined : { atMs: Number(atMs), id };
}
