// What the port promises of an answer: times to within what a test takes, names of histories as names, and none of what a store may
// say as it likes.
import { decode, timeOf } from "@idmint/core";
import type {
  CallAnswers,
  EndedPeriod,
  Grant,
  Hearing,
  NodeRow,
  Raised,
  StoreCall,
  StoreChanges,
  Tag,
} from "@idmint/core/server";

import type { Call } from "./call.ts";

/** How far times of two stores may be apart that were asked one after the other, on a busy machine. */
const SLACK_MS = 15_000;
/** Moments, where all other numbers are alike to the last digit. */
const TIMES: ReadonlySet<string> = new Set([
  ..."createdAtMs updatedAtMs endedAtMs atMs nowMs expiresAtMs stoppedAtMs".split(" "),
  ..."forMs notBeforeMs reservedUntilMs floorMs".split(" "),
]);
/** Random texts, each of which stands for the same thing wherever it comes again. */
const NAMES: ReadonlySet<string> = new Set(["incarnation", "listVersion"]);

/** Which name of the model each name of a real store is. */
export type Names = ReadonlyMap<string, string>;

/** The names with what these answers show of them; undefined: the answers differ. */
export function alike(real: unknown, model: unknown, names: Names): Names | undefined {
  const found = new Map(names);
  return isAlike("", real, model, found) ? found : undefined;
}

function isAlike(key: string, real: unknown, model: unknown, names: Map<string, string>): boolean {
  if (TIMES.has(key) && typeof real === "number" && typeof model === "number") {
    return Math.abs(real - model) <= SLACK_MS;
  }
  if (NAMES.has(key) && typeof real === "string" && typeof model === "string") {
    if (real === "" || model === "") return real === model;
    const known = names.get(real);
    if (known === undefined && ![...names.values()].includes(model)) names.set(real, model);
    return names.get(real) === model;
  }
  if (typeof real !== "object" || typeof model !== "object" || real === null || model === null) {
    return real === model;
  }
  if (Array.isArray(real) !== Array.isArray(model)) return false;
  const [one, other] = [real as Record<string, unknown>, model as Record<string, unknown>];
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...keys].every((name) => isAlike(name, one[name], other[name], names));
}

type Told = { readonly [Name in StoreCall]?: (answer: CallAnswers[Name]) => unknown };

const TOLD: Told = {
  accept: ({ tags, claims }) => ({
    tags,
    ...(claims === undefined
      ? {}
      : { ...claims, most: claims.most?.by, claimants: claims.claimants.toSorted(byId) }),
  }),
  advanceTag: ({ tag, raised }) => ({ tag: tagTold(tag), raised }),
  askForClaims: (asked) =>
    asked.outcome === "busy" ? asked : { ...asked, hearing: hearingTold(asked.hearing) },
  createTag: tagTold,
  // What is risen by this call may be in the answer or not.
  exchangeMarks: (marks) => marks.toSorted((a, b) => Number(b.generation - a.generation)),
  getTags: tagsTold,
  grant: (grants) => grants.map(withoutWords),
  hearClaims: hearingTold,
  listAudit: (events) =>
    // Of changes the store says the time.
    (events[0]?.kind === "change" ? events.toSorted(byId) : events).map(
      ({ id, kind, atMs, principal, resource, outcome, omitted }) => {
        return { id, kind, atMs, principal, resource, outcome, omitted };
      },
    ),
  listLedger: ({ rows }) => rows.map((row) => ({ ...row, position: 0n })),
  listTags: ({ tags, unreadable }) => ({ tags: tags.map(tagTold), unreadable }),
  raise: withoutWords,
  readTokens: ({ version: listVersion, tokens }) => ({ listVersion, tokens }),
  // Rows that one transaction wrote are in no order.
  recentTags: (names) => names.toSorted(),
  returnToPeriod: ({ tag, returned }) => ({ tag: tagTold(tag), returned }),
  setTagState: tagTold,
  updateTag: tagTold,
};

/** `forgotten`: a period that ended before may be forgotten already, though the clock has gone back since. Nobody promises when. */
export function toldOf(call: Call, answer: unknown, forgotten: number): unknown {
  if (call.name === "listPeriods") {
    return (answer as readonly EndedPeriod[]).filter(({ endedAtMs }) => endedAtMs >= forgotten);
  }
  if (call.name === "changes")
    return changesTold(answer as StoreChanges, call.args[0].renewal?.node.id);
  const told = TOLD[call.name] as ((answer: unknown) => unknown) | undefined;
  return told === undefined ? answer : told(answer);
}

/** A row. The floor of a snowflake tag is a time once the store was accepted. */
function tagTold(tag: Tag): object {
  const { kind, floor } = tag;
  const floorMs =
    kind.kind === "snowflake" ? timeOf(kind.layout, decode(kind.layout, floor).tick) : 0;
  return { ...tag, floor: floorMs === 0 ? floor : 0n, floorMs };
}

function tagsTold(tags: readonly Tag[]): readonly object[] {
  return tags.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(tagTold);
}

function withoutWords(answer: Grant | Raised): object {
  if (answer.outcome !== "refused") return answer;
  const { tag, outcome, reason } = answer;
  return { tag, outcome, reason };
}

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1;
}

function hearingTold({ isStanding, isEarlier, nodes, claimants }: Hearing): object {
  const rows = nodes.map(({ id, instance, address }) => ({ id, instance, address }));
  return { isStanding, isEarlier, nodes: namedRows(rows), claimants: claimants.toSorted(byId) };
}

function keyOf(row: object): string {
  const fields = Object.entries(row).map(([name, value]) => `${name}: ${value}`);
  return fields.toSorted((a, b) => (a < b ? -1 : 1)).join();
}

/** In order. The rows of servers of lost histories are named after those. */
function namedRows(rows: readonly { readonly id: string }[]): readonly object[] {
  const named = rows.map(({ id, ...row }) => ({
    ...row,
    id: id.startsWith("before-") ? "before" : id,
  }));
  return named.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function nodeTold({ renewals, ...row }: NodeRow): Omit<NodeRow, "renewals"> {
  void renewals;
  return row;
}

/** `own`: whose renewal came along, whose row may be among the others or not. */
function changesTold(found: StoreChanges, own: string | undefined): object {
  const { incarnation, revision, changed, behind, fenced, nowMs } = found;
  const parts = found.parts.map(({ isRenewed, nodes, traffic, issuing, ask, ...part }) => ({
    name: part.name,
    incarnation: part.incarnation,
    revision: part.revision,
    isRenewed,
    nodes: namedRows((nodes ?? []).filter(({ id }) => id !== own).map(nodeTold)),
    traffic: traffic.toSorted((a, b) => (a.server < b.server ? -1 : 1)),
    issuing,
    ask,
  }));
  const isFenced = fenced !== "";
  const told = { changed: tagsTold(changed), behind: behind.toSorted(), parts };
  return { incarnation, revision, ...told, isFenced, nowMs };
}
