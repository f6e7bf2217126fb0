import {
  type AuditEvent,
  type AuditKind,
  type AuditNote,
  type AuditPlace,
  MAX_AUDIT_TEXT,
  type Tag,
  type Token,
  type Traffic,
} from "@idmint/core/server";
import { TAG_COLUMNS, valuesOfTag } from "../tag-row.ts";

/** A row of the table `audit`; the same columns in every backend. 64-bit integers as text or bigint. */
export interface AuditRow {
  readonly kind: string;
  readonly at_ms: bigint | string;
  readonly id: string;
  readonly principal: string;
  readonly proof: string;
  readonly peer: string;
  readonly method: string;
  readonly server: string;
  readonly resource: string;
  readonly outcome: string;
  readonly before_json: string;
  readonly after_json: string;
  readonly omitted: bigint | string;
}

export const AUDIT_COLUMNS: readonly (keyof AuditRow)[] = [
  "kind",
  "at_ms",
  "id",
  "principal",
  "proof",
  "peer",
  "method",
  "server",
  "resource",
  "outcome",
  "before_json",
  "after_json",
  "omitted",
];

/** The values of AUDIT_COLUMNS, in their order. */
export function valuesOfAudit(event: AuditEvent): (string | bigint)[] {
  return [
    event.kind,
    BigInt(event.atMs),
    event.id,
    event.principal,
    event.proof,
    event.peer,
    event.method,
    event.server,
    event.resource,
    event.outcome,
    event.before,
    event.after,
    BigInt(event.omitted),
  ];
}

export function auditFromRow(row: AuditRow): AuditEvent {
  const { at_ms, before_json: before, after_json: after, omitted, kind, ...same } = row;
  return {
    ...same,
    kind: kind as AuditKind,
    atMs: Number(at_ms),
    before,
    after,
    omitted: Number(omitted),
  };
}

/** What differed, by names; 64-bit integers as decimal text. */
type Fields = Readonly<Record<string, unknown>>;

/** The event of a change. `before` and `after`: what there was of it; only what differs is kept. */
export function changeOf(
  by: AuditNote,
  atMs: number,
  resource: string,
  before: Fields | undefined,
  after: Fields | undefined,
): AuditEvent {
  const isOther = ([name, value]: readonly [string, unknown]): boolean =>
    JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]) && value !== null;
  const textOf = (fields: Fields | undefined): string =>
    fields === undefined
      ? ""
      : JSON.stringify(Object.fromEntries(Object.entries(fields).filter(isOther)));
  const more = { before: bounded(textOf(before)), after: bounded(textOf(after)), omitted: 0 };
  return { ...by, kind: "change", atMs, resource, outcome: "OK", ...more };
}

function bounded(text: string): string {
  return text.length <= MAX_AUDIT_TEXT
    ? text
    : JSON.stringify({ too_long: `${text.length} characters` });
}

/** They change with everything, and tell nothing. */
const UNTOLD: readonly string[] = ["name", "revision", "created_at_ms", "updated_at_ms"];

/** The change of a tag's row: its columns, and its settings one by one. */
export function tagChanged(by: AuditNote, old: Tag | undefined, tag: Tag): AuditEvent {
  const before = old === undefined ? undefined : fieldsOfTag(old);
  return changeOf(by, tag.updatedAtMs, `tag/${tag.name}`, before, fieldsOfTag(tag));
}

function fieldsOfTag(tag: Tag): Fields {
  const values = valuesOfTag(tag).map((value) => (value === null ? null : String(value)));
  const columns = TAG_COLUMNS.map((name, at) => [name, values[at]] as const);
  const { settings = "{}", ...fields } = Object.fromEntries(
    columns.filter(([name]) => !UNTOLD.includes(name)),
  );
  const each = Object.entries(JSON.parse(settings ?? "{}") as object);
  return {
    ...fields,
    ...Object.fromEntries(each.map(([name, value]) => [`settings.${name}`, value])),
  };
}

/** `old`: undefined where nobody had said anything of the server. */
export function trafficChanged(
  by: AuditNote,
  atMs: number,
  old: Traffic | undefined,
  row: Traffic,
): AuditEvent {
  const before = old === undefined ? undefined : fieldsOfTraffic(old);
  return changeOf(by, atMs, `server/${row.server}`, before, fieldsOfTraffic(row));
}

function fieldsOfTraffic({ weight, isDraining }: Traffic): Fields {
  return { weight, draining: isDraining };
}

/** A token that comes (`true`) or goes. Of its secret there is nothing in here, nor is there of the hash. */
export function tokenChanged(
  by: AuditNote,
  atMs: number,
  { id, principal, rights, expiresAtMs }: Token,
  isAdded: boolean,
): AuditEvent {
  const fields = { principal, rights, expires_time: new Date(expiresAtMs).toISOString() };
  const [before, after] = isAdded ? [undefined, fields] : [fields, undefined];
  return changeOf(by, atMs, `token/${id}`, before, after);
}

export function issuingChanged(by: AuditNote, atMs: number, isStopped: boolean): AuditEvent {
  return changeOf(by, atMs, "issuing", { stopped: !isStopped }, { stopped: isStopped });
}

export function nodeForgotten(by: AuditNote, atMs: number, id: string): AuditEvent {
  return changeOf(by, atMs, `node/${id}`, { listed: true }, { listed: false });
}

/** The accept of a store; `old` and `incarnation` are the histories before and after it. */
export function storeAccepted(
  by: AuditNote,
  atMs: number,
  { old, incarnation, gap, tags }: { old: string; incarnation: string; gap: bigint; tags: number },
): AuditEvent {
  const after = { incarnation, gap: String(gap), tags };
  return changeOf(by, atMs, "store", { incarnation: old }, after);
}

export function storeMigrated(by: AuditNote, atMs: number, from: number, to: number): AuditEvent {
  return changeOf(by, atMs, "store", { schema: from }, { schema: to });
}

/** Events of several sources, each newest first, as one list. */
export function mergedAudit(
  lists: readonly (readonly AuditEvent[])[],
  limit: number,
): AuditEvent[] {
  return lists.flat().toSorted(newestFirst).slice(0, limit);
}

function newestFirst(a: AuditPlace, b: AuditPlace): number {
  if (a.atMs !== b.atMs) return b.atMs - a.atMs;
  return a.id === b.id ? 0 : a.id < b.id ? 1 : -1;
}
