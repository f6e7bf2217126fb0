import type { EarlierRow, NodeRenewal } from "@idmint/core/server";
import { PRESENT_IDENTITY, proof } from "../identity.ts";
import {
  EarlierProof,
  type KnownRow,
  lossOf,
  MARKED,
  WENT_BACK,
} from "../../pins/own-row-state.ts";

const LOOK = `SELECT s.incarnation, s.identity, floor(extract(epoch FROM clock_timestamp()) * 1000)::text AS now_ms,
  (SELECT n.renewals::text FROM idmint.node AS n WHERE n.id = $1) AS renewals,
  (SELECT max(g.renewals)::text FROM idmint.node_gone AS g WHERE g.id = $1) AS forgotten
  FROM idmint.store AS s`;

/**
 * Marks the store: why, the history that it was found in, settings that are allowed, and what proves it, read again by the
 * statement that writes. `FROM` the row of the store alone is read in its newest version when the statement had to wait.
 */
function markText(proven: string): string {
  return `WITH ${proof("$4::text[]")}, commit_level AS MATERIALIZED (
  SELECT set_config('synchronous_commit', 'local', true) AS level
)
UPDATE idmint.store AS s SET identity = '${WENT_BACK}' || $1::text, written_by = pg_current_xact_id()::xid
FROM proof AS p, commit_level AS c
WHERE s.incarnation = $2 AND s.identity = $3 AND s.identity = ${PRESENT_IDENTITY} AND s.xmin = s.written_by
  AND p.fenced = '' AND p.unsafe = '' AND c.level <> '' AND ${proven}
RETURNING s.incarnation`;
}

const MARK_HISTORY = markText("true");
const MARK_ROW = markText(
  `NOT EXISTS (SELECT FROM idmint.node AS n WHERE n.id = $5::text AND n.renewals >= $6::bigint)
    AND NOT EXISTS (SELECT FROM idmint.node_gone AS g WHERE g.id = $5::text AND g.renewals >= $6::bigint)`,
);
const MARK_TAG = markText(
  `EXISTS (SELECT FROM unnest($5::text[], $6::bigint[]) AS w (name, version)
    LEFT JOIN idmint.tag AS t ON t.name = w.name
    WHERE t.name IS NULL
      OR t.xmin = t.written_by AND t.moved_to IS NULL AND NOT t.moving AND t.version < w.version)`,
);

interface LookRow {
  readonly incarnation: string;
  readonly identity: string;
  readonly now_ms: string;
  readonly renewals: string | null;
  readonly forgotten: string | null;
}

/** Statements that wait for no standby, and the settings that are allowed. */
export interface Local {
  readonly allowUnsafe: readonly string[];
  readonly ask: <Row extends object>(query: {
    readonly text: string;
    readonly values: readonly unknown[];
  }) => Promise<readonly Row[]>;
}

/** What a poll answered of the store and of this server's row. */
export interface Polled {
  readonly id: string;
  readonly incarnation: string;
  readonly identity: string;
  readonly nowMs: number;
  /** The number that the renewal left; undefined: the row was not renewed. */
  readonly renewals: bigint | undefined;
}

/**
 * Marks a database that went back (own-row-state.ts), so that servers refuse which cannot see it. A marked store is not
 * the accepted one: every statement compares its identity, so an accept alone ends it.
 *
 * A standby that was promoted may lack the last renewals, which do not wait for it. So a history is the incarnation and the
 * identity, which has the timeline; promotion.ts decides whether the present one is accepted.
 */
export class OwnRow {
  #known: KnownRow | undefined;
  /** Whether a row that is missing was forgotten, or was never there. */
  #mayMake = true;
  /** Incarnations that were left. */
  readonly #left = new Set<string>();
  readonly earlier: EarlierProof = new EarlierProof();

  /** What a renewal must find: the number and its history, or nothing of it; and whether it may make the row. */
  expected(
    renewal: Pick<NodeRenewal, "earlier" | "node"> | undefined,
  ): readonly [renewals: string | null, history: string, mayMake: boolean] {
    const id = renewal?.node.id;
    const [earlier] = renewal?.earlier ?? [];
    if (id !== undefined && earlier !== undefined) this.#resume(id, earlier);
    const known = this.#known?.id === id ? this.#known : undefined;
    if (known === undefined) return [null, "", true];
    return [String(known.renewals), known.history, this.#mayMake];
  }

  #resume(id: string, earlier: EarlierRow): void {
    if (this.#known !== undefined) return;
    this.#known = this.earlier.resume(id, earlier, performance.now());
    this.#mayMake = false;
  }

  /** A poll found the store to be the accepted one. Answers why it is not, in words, or an empty text. */
  async polled(local: Local, polled: Polled): Promise<string> {
    const { id, incarnation, identity, renewals, nowMs } = polled;
    const known = this.#known?.id === id ? this.#known : undefined;
    const earlier = this.#leftBehind(known, polled);
    if (earlier !== "") return mark(local, MARK_HISTORY, earlier, [incarnation, identity]);
    if (renewals !== undefined) {
      const history = historyOf(polled);
      const now = { renewals, history, storeMs: nowMs, atMs: performance.now() };
      // It was renewed, so it was as high as it was to be.
      this.earlier.compared({ ...now, forgotten: undefined });
      this.#known = { id, ...now };
      this.#mayMake = false;
      return "";
    }
    if (known === undefined) return "";
    const row = await look(local, id);
    if (row === undefined) return "";
    const found = {
      history: historyOf(row),
      renewals: numberFrom(row.renewals),
      forgotten: numberFrom(row.forgotten),
      storeMs: Number(row.now_ms),
      atMs: performance.now(),
    };
    const loss = lossOf(known, found);
    if (loss === "") {
      this.earlier.compared(found);
      this.#mayMake = row.renewals === null;
      return "";
    }
    const values = [row.incarnation, row.identity, id, String(known.renewals)];
    return mark(local, MARK_ROW, loss, values);
  }

  /** Why this history cannot come after the one that was known. */
  #leftBehind(known: KnownRow | undefined, { incarnation, identity }: Polled): string {
    if (this.#left.has(incarnation)) return "it is as it was before it was accepted";
    if (known === undefined) return "";
    const [before = "", beforeIdentity = ""] = known.history.split(" ");
    if (before !== incarnation) {
      this.#left.add(before);
      return "";
    }
    return isEarlierTimeline(identity, beforeIdentity)
      ? "it is a primary from before a standby was promoted"
      : "";
  }
}

/** Tags of which a row of ours is missing or has a lower version than was seen. */
export async function markBehind(
  local: Local,
  { incarnation, identity }: Pick<Polled, "identity" | "incarnation">,
  seen: readonly { readonly tag: string; readonly version: bigint }[],
): Promise<string> {
  const [first] = seen;
  if (first === undefined) return "";
  const why = `the row of tag ${first.tag} is missing or older than version ${first.version}`;
  const values = [seen.map(({ tag }) => tag), seen.map(({ version }) => String(version))];
  return mark(local, MARK_TAG, why, [incarnation, identity, ...values]);
}

async function look({ ask }: Local, id: string): Promise<LookRow | undefined> {
  const [row] = await ask<LookRow>({ text: LOOK, values: [id] });
  return row;
}

/** Empty where the proof does not hold any more, which the next poll looks at again. */
async function mark(
  { allowUnsafe, ask }: Local,
  text: string,
  why: string,
  [incarnation, identity, ...more]: readonly unknown[],
): Promise<string> {
  const values = [why, incarnation, identity, allowUnsafe, ...more];
  const rows = await ask({ text, values });
  return rows.length === 0 ? "" : MARKED + why;
}

/** Name of a history: a standby that is promoted begins another one. */
export function historyOf({
  incarnation,
  identity,
}: Pick<Polled, "identity" | "incarnation">): string {
  return `${incarnation} ${identity}`;
}

function numberFrom(text: string | null): bigint | undefined {
  return text === null ? undefined : BigInt(text);
}

/** See PRESENT_IDENTITY; eight hexadecimal digits each. */
function isEarlierTimeline(present: string, before: string): boolean {
  const [system, timeline = "", database] = before.split("/");
  const [nowSystem, nowTimeline = "", nowDatabase] = present.split("/");
  return system === nowSystem && database === nowDatabase && nowTimeline < timeline;
}
