import { randomUUID } from "node:crypto";
import { MAX_ID } from "@idmint/core";
import { acceptNeedsAll, assertGap, reconcile, type Reconciliation } from "@idmint/core/server";
import { Connections, type Session } from "../postgres/connections.ts";
import { assertLogged } from "../postgres/faults/unlogged.ts";
import { PRESENT_IDENTITY } from "../postgres/identity.ts";
import { ticketWentBack, type TicketConfig } from "./config.ts";
import { PostgresTicketDatabase } from "./database.ts";
import { lastIdUpTo, NOW_RUNNING, viewOf, THIS_TRANSACTION } from "./slots.ts";

/** An accept writes every slot, so it may take longer than what a server waits for. */
const TIMEOUT_MS = 60_000;
const PAGE = 1_000;

const LOCK = "SELECT database_id FROM idmint_ticket.database FOR UPDATE";
const LIST_IDS = "SELECT DISTINCT slots_id FROM idmint_ticket.slot ORDER BY slots_id";
/**
 * Slots that others own by now. What this database had of them is replaced, as if it had never forgotten.
 */
const GONE = `UPDATE idmint_ticket.slot AS t SET
  owner = g.owner, epoch = g.epoch, state = 'moved', written_by = ${THIS_TRANSACTION}
FROM unnest($2::int[], $3::text[], $4::bigint[]) AS g (slot, owner, epoch)
WHERE t.slots_id = $1 AND t.slot = g.slot`;
/** Slots that others gave it, and that it has forgotten; they are raised with the rest. */
const GIVEN = `INSERT INTO idmint_ticket.slot
  (slots_id, slot, slots, owner, epoch, last_id, state, raised_under, written_by)
SELECT $1, g.slot, $2::int, d.database_id, g.epoch,
  ${lastIdUpTo("0::bigint", "g.slot", "$2::int")}, 'active', ${NOW_RUNNING}, ${THIS_TRANSACTION}
FROM unnest($3::int[], $4::bigint[]) AS g (slot, epoch) CROSS JOIN idmint_ticket.database AS d
ON CONFLICT (slots_id, slot) DO UPDATE SET
  owner = excluded.owner, epoch = excluded.epoch, state = 'active', written_by = excluded.written_by`;
/**
 * INVARIANT: epochs go above any that the lost history had, as with the store: by one or to the present time in seconds.
 * So what the lost history may still do under its epochs is seen to be older.
 */
const RAISE = `UPDATE idmint_ticket.slot AS t SET
  last_id = greatest(t.last_id, ${lastIdUpTo("$2::bigint", "t.slot", "t.slots")}),
  epoch = CASE WHEN t.state = 'active'
    THEN greatest(t.epoch + 1, floor(extract(epoch FROM clock_timestamp()))::bigint)
    ELSE t.epoch END,
  raised_under = ${NOW_RUNNING}, written_by = ${THIS_TRANSACTION}
WHERE t.slots_id = $1`;
const RECORD = `UPDATE idmint_ticket.database SET
  identity = ${PRESENT_IDENTITY}, incarnation = $1, written_by = ${THIS_TRANSACTION}`;

/**
 * Accepts a database that went back as it is now: it goes on `gap` ids above everything that any database knows of, in the
 * slots that are its own by what all of them know. All others have to answer for that.
 */
export async function accept(
  config: TicketConfig,
  others: readonly TicketConfig[],
  gap: bigint,
): Promise<{ slots: number }> {
  assertGap(gap);
  const connections = new Connections({ ...config, timeoutMs: TIMEOUT_MS });
  const databases = others.map((other) => new PostgresTicketDatabase(other));
  try {
    return await connections.run((session) =>
      session.transaction(() => acceptLocked(session, config.name, databases, gap)),
    );
  } finally {
    await Promise.all([connections, ...databases].map((each) => each.close()));
  }
}

async function acceptLocked(
  session: Session,
  name: string,
  others: readonly PostgresTicketDatabase[],
  gap: bigint,
): Promise<{ slots: number }> {
  const [row] = await session.query<{ database_id: string }>({ text: LOCK });
  if (row === undefined) throw ticketWentBack(name, "it has lost its identity");
  await assertLogged(session, "idmint_ticket");
  const own = await session.query<{ slots_id: string }>({ text: LIST_IDS });
  const ids = new Set(own.map(({ slots_id }) => slots_id));
  for (const other of others) for (const id of await slotsIdsOf(other)) ids.add(id);
  let slots = 0;
  for (const slotsId of [...ids].toSorted()) {
    const views = [await viewOf(session, name, slotsId, { trusted: true })];
    for (const other of others) views.push(await asked(other, () => other.list(slotsId)));
    slots += await settle(session, name, reconcile(slotsId, row.database_id, views), gap);
  }
  await session.query({ text: RECORD, values: [randomUUID()] });
  return { slots };
}

async function slotsIdsOf(database: PostgresTicketDatabase): Promise<readonly string[]> {
  const all: string[] = [];
  for (;;) {
    const query = { afterSlotsId: all.at(-1) ?? "", limit: PAGE };
    const page = await asked(database, () => database.listSlotsIds(query));
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}

async function asked<T>({ name }: PostgresTicketDatabase, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw acceptNeedsAll(name, thrown);
  }
}

/** Answers how many slots it owns afterwards. */
async function settle(
  session: Session,
  name: string,
  { slotsId, slotCount, highest, gone, given }: Reconciliation,
  gap: bigint,
): Promise<number> {
  const goneValues = [
    slotsId,
    gone.map(({ slot }) => slot),
    gone.map(({ owner }) => owner),
    gone.map(({ epoch }) => String(epoch)),
  ];
  await session.query({ text: GONE, values: goneValues });
  const givenValues = [
    slotsId,
    slotCount,
    given.map(({ slot }) => slot),
    given.map(({ epoch }) => String(epoch)),
  ];
  await session.query({ text: GIVEN, values: givenValues });
  const above = MAX_ID - highest < gap ? MAX_ID : highest + gap;
  await session.query({ text: RAISE, values: [slotsId, String(above)] });
  const { slots } = await viewOf(session, name, slotsId, { trusted: true });
  return slots.filter(({ state }) => state === "active").length;
}
