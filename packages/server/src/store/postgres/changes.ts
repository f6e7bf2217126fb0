import {
  type ChangeStore,
  type OwnRow,
  type StoreChanges,
  storeWentBack,
} from "@idmint/core/server";
import { issuingFromRow, type IssuingRow } from "../shared/issuing.ts";
import { TAG_COLUMNS, type TagRow, tagsFromRows } from "../shared/tag-row.ts";
import type { Connections } from "./connections.ts";
import { refuseUnsafeSettings } from "./grant.ts";
import { STANDING_ASK } from "./records/claims.ts";
import { nodeFromRow, type NodeTableRow, valuesOfRenewal } from "../shared/node-row.ts";
import { trafficFromRow, type TrafficRow } from "../shared/traffic-row.ts";
import { proof, STORE_COLUMNS, TAG_IS_OURS } from "./identity.ts";
import { historyOf, type Local, markBehind } from "./hosts/own-row.ts";
import { NODE_TYPES, NODES_AS_JSON, renewalOf, TRAFFIC_AS_JSON } from "./nodes.ts";
import { hasTag } from "./tags.ts";

/** Place of the first column of a server's row among the parameters. */
const FIRST = 7;
const EXPECTED = ["renewals", "history", "may make"];

/**
 * The revision already known, watched names and versions, the page's size plus one, allowed unsafe settings, whether the rows
 * of servers are wanted, the renewal of this one's, and what its row must be for that.
 */
const CHANGES = {
  name: "idmint-changes-4",
  text: `WITH ${proof("$5::text[]")}, ${renewalOf(
    NODE_TYPES.map((type, at) => `$${at + FIRST}::${type}`),
    EXPECTED.map((_, at) => `$${at + FIRST + NODE_TYPES.length}`),
  )}, changed AS (
  SELECT * FROM idmint.tag WHERE revision > $1 AND (moved_to IS NULL OR moving)
  ORDER BY revision LIMIT $4
)
SELECT ${STORE_COLUMNS}, p.fenced, p.unsafe, s.standbys, current_setting('synchronous_standby_names') AS standby_names, ARRAY (
    SELECT w.name || CASE WHEN NOT ${TAG_IS_OURS} THEN '~' ELSE '' END FROM unnest($2::text[], $3::bigint[]) AS w (name, version)
    LEFT JOIN idmint.tag AS t ON t.name = w.name
    WHERE t.name IS NULL OR NOT ${TAG_IS_OURS} OR t.moved_to IS NULL AND t.version < w.version
  ) AS behind,
  (SELECT r.renewals::text FROM renewal AS r) AS renewed,
  CASE WHEN $6::boolean THEN ${NODES_AS_JSON} END AS nodes,
  ${TRAFFIC_AS_JSON} AS traffic,
  ${STANDING_ASK} AS ask,
  ARRAY (SELECT d.name || '~' || CASE WHEN d.moving THEN '' ELSE d.moved_to END FROM idmint.tag AS d
    WHERE d.revision > $1 AND d.moved_to IS NOT NULL ORDER BY d.revision LIMIT $4) AS departed,
  c.revision AS tag_revision, ${TAG_COLUMNS.filter((column) => column !== "revision")
    .map((column) => `c.${column}`)
    .join(", ")}
FROM idmint.store AS s CROSS JOIN proof AS p LEFT JOIN changed AS c ON true ORDER BY c.revision`,
};

type ChangeRow = IssuingRow & { readonly [Column in keyof TagRow]: TagRow[Column] | null } & {
  readonly incarnation: string;
  readonly identity: string;
  readonly revision: string;
  readonly fenced: string;
  readonly unsafe: string;
  readonly standbys: string;
  readonly standby_names: string;
  readonly now_ms: string;
  readonly behind: readonly string[];
  /** The number that the renewal left in this server's row; null: it was not renewed. */
  readonly renewed: string | null;
  readonly nodes: readonly NodeTableRow[] | null;
  readonly traffic: readonly TrafficRow[];
  readonly ask: string | null;
  readonly departed: readonly string[];
  readonly tag_revision: string | null;
};

/** How long a poll waits for the standbys, which need a moment as a rule; it has much to tell without them. */
const CONFIRM_MS = 250;

/** A poll of one database, and which tags left it since the revision, or are leaving; more than `limit` are not told whole. */
export interface DatabaseChanges extends StoreChanges {
  readonly departed: readonly Departed[];
  /** Standbys that the store names, as its row has them. */
  readonly standbys: string;
  /** synchronous_standby_names. */
  readonly standbyNames: string;
}

interface Departed {
  readonly tag: string;
  /** Where it went; undefined while it is leaving, since the other database may not have it yet. */
  readonly to: string | undefined;
}

/** What changed since a revision, in one statement and so from one snapshot. */
export async function changes(
  connections: Connections,
  query: Parameters<ChangeStore["changes"]>[0],
): Promise<DatabaseChanges> {
  const { since, watched, limit, renewal, nodes = false } = query;
  const values = [
    String(since),
    watched.map(({ tag }) => tag),
    watched.map(({ version }) => String(version)),
    limit + 1,
    connections.allowUnsafe,
    nodes,
    ...(renewal === undefined ? NODE_TYPES.map(() => null) : valuesOfRenewal(renewal).map(textOf)),
    ...connections.ownRow.expected(renewal),
  ];
  if (connections.confirmation !== undefined)
    connections.confirmation.nodeId = renewal?.node.id ?? "";
  const { answer: rows, missing } = await connections.runUnconfirmed(
    (session) => session.query<ChangeRow>({ ...CHANGES, values }),
    CONFIRM_MS,
  );
  const [store] = rows;
  if (typeof store?.renewed === "string") connections.hasServed();
  if (store === undefined) throw storeWentBack("the store has lost its identity");
  if (store.unsafe !== "") refuseUnsafeSettings(store.unsafe);
  const found = rows.map((row) => ({ ...row, revision: row.tag_revision ?? "0" })).filter(hasTag);
  const page = found.slice(0, limit);
  const { tags: changed, unreadable } = tagsFromRows(page);
  const { incarnation } = store;
  const behind = behindOf(store.behind);
  const revision = BigInt(store.revision);
  const fenced = await fenceOf(connections, query, store, behind);
  const isWell = fenced === "" && behind.behind.length === 0;
  const part = {
    name: "",
    incarnation,
    revision,
    // A row that a standby lacks may be lost with the primary, and then nobody waits for this server.
    isRenewed: store.renewed !== null && missing.length === 0,
    nodes: store.nodes?.map(nodeFromRow),
    traffic: store.traffic.map(trafficFromRow),
    issuing: issuingFromRow(store),
    ask: store.ask ?? undefined,
    own: isWell ? ownOf(store) : undefined,
    hasEarlier: isWell && connections.ownRow.earlier.isThere,
  };
  return {
    incarnation,
    revision,
    changed,
    unreadable,
    more: found.length > limit,
    next: found.length > limit ? BigInt(page.at(-1)?.revision ?? "0") : revision,
    ...behind,
    fenced,
    nowMs: Number(store.now_ms),
    parts: [part],
    standbys: store.standbys,
    standbyNames: store.standby_names,
    departed: store.departed.map((text) => {
      const [tag = "", to = ""] = text.split("~");
      return { tag, to: to === "" ? undefined : to };
    }),
  };
}

function ownOf(store: ChangeRow): OwnRow | undefined {
  if (store.renewed === null) return undefined;
  const renewals = BigInt(store.renewed);
  return { history: historyOf(store), renewals, revision: "", storeMs: Number(store.now_ms) };
}

/** A name with a `~` behind it is of a row that another hand wrote. */
function behindOf(marked: readonly string[]): Pick<StoreChanges, "behind" | "changedByHand"> {
  return {
    behind: marked.map((text) => text.replace("~", "")),
    changedByHand: marked.filter((text) => text.endsWith("~")).map((text) => text.slice(0, -1)),
  };
}

/** Why nothing may be granted. What this poll shows to be lost is marked in the store. */
async function fenceOf(
  connections: Connections,
  { renewal, watched }: Parameters<ChangeStore["changes"]>[0],
  store: ChangeRow,
  { behind, changedByHand = [] }: Pick<StoreChanges, "behind" | "changedByHand">,
): Promise<string> {
  if (store.fenced !== "") return store.fenced;
  const { allowUnsafe, ownRow } = connections;
  const ask: Local["ask"] = async (query) => {
    const done = await connections.runUnconfirmed((session) => session.query(query), 0);
    return done.answer as never;
  };
  const local = { allowUnsafe, ask };
  const { incarnation, identity, renewed, now_ms: nowMs } = store;
  const history = { incarnation, identity };
  if (renewal !== undefined) {
    const renewals = renewed === null ? undefined : BigInt(renewed);
    const polled = { ...history, id: renewal.node.id, nowMs: Number(nowMs), renewals };
    const loss = await ownRow.polled(local, polled);
    if (loss !== "") return loss;
  }
  // What was seen before an accept shows nothing of what was accepted.
  if (renewal?.incarnation !== incarnation) return "";
  const lost = watched.filter(({ tag }) => behind.includes(tag) && !changedByHand.includes(tag));
  return markBehind(local, history, lost);
}

function textOf(value: string | bigint | null): string | null {
  return value === null ? null : String(value);
}
