import {
  NOBODY,
  type Slot,
  type SlotState,
  type SlotsView,
  type TicketDatabase,
} from "@idmint/core/server";
import type { Connections, Session } from "../postgres/connections.ts";
import { proof } from "../postgres/identity.ts";
import { refuseUnsafeSettings } from "../postgres/grant.ts";
import { ticketWentBack } from "./config.ts";

type Request<K extends keyof TicketDatabase> = TicketDatabase[K] extends (
  request: infer R,
) => unknown
  ? R
  : never;

/** The largest number ≡ slot (mod slots) up to a bound from 0 on, in SQL. */
export function lastIdUpTo(bound: string, slot: string, slots: string): string {
  return `${bound} - ((${bound} - ${slot}) % ${slots} + ${slots}) % ${slots}`;
}

export const NOW_RUNNING = "pg_postmaster_start_time()";
export const THIS_TRANSACTION = "pg_current_xact_id()::xid";

const PROVE = `WITH ${proof("$1::text[]", "idmint_ticket.database")}
SELECT d.database_id, p.fenced, p.unsafe
FROM idmint_ticket.database AS d CROSS JOIN proof AS p`;
/** Keeps an operator's acceptance out until this transaction ends. */
const PROVE_AND_LOCK = `${PROVE} FOR SHARE OF d`;

const LIST = `SELECT d.database_id, d.incarnation, t.slot, t.slots, t.owner, t.epoch, t.last_id,
  t.state, t.xmin = t.written_by AS is_ours
FROM idmint_ticket.database AS d LEFT JOIN idmint_ticket.slot AS t ON t.slots_id = $1
ORDER BY t.slot`;

const LIST_IDS = `SELECT DISTINCT slots_id FROM idmint_ticket.slot
WHERE slots_id > $1 ORDER BY slots_id LIMIT $2`;

const MAKE = `INSERT INTO idmint_ticket.slot
  (slots_id, slot, slots, owner, epoch, last_id, state, raised_under, written_by)
SELECT $1, own.slot, $2::int, d.database_id, 1,
  ${lastIdUpTo("$4::bigint", "own.slot", "$2::int")}, 'active', ${NOW_RUNNING}, ${THIS_TRANSACTION}
FROM unnest($3::int[]) AS own (slot) CROSS JOIN idmint_ticket.database AS d
ORDER BY own.slot ON CONFLICT (slots_id, slot) DO NOTHING`;

/** In the order of the slots, as grants lock them: no deadlock. */
const RAISE = `UPDATE idmint_ticket.slot AS t SET
  last_id = greatest(t.last_id, ${lastIdUpTo("$2::bigint", "t.slot", "t.slots")}),
  raised_under = ${NOW_RUNNING}, written_by = ${THIS_TRANSACTION}
FROM (
  SELECT slot FROM idmint_ticket.slot WHERE slots_id = $1 AND state = 'active'
  ORDER BY slot FOR UPDATE
) AS l
WHERE t.slots_id = $1 AND t.slot = l.slot AND t.state = 'active' AND t.xmin = t.written_by
  AND (t.raised_under <> ${NOW_RUNNING}
    OR t.last_id < ${lastIdUpTo("$2::bigint", "t.slot", "t.slots")})`;

const FREEZE = `UPDATE idmint_ticket.slot AS t SET
  owner = $4, epoch = t.epoch + 1, state = 'frozen', written_by = ${THIS_TRANSACTION}
FROM idmint_ticket.database AS d
WHERE t.slots_id = $1 AND t.slot = $2 AND t.epoch = $3 AND t.state = 'active'
  AND t.owner = d.database_id AND t.xmin = t.written_by AND $4 <> d.database_id`;

const ADOPT = `INSERT INTO idmint_ticket.slot AS t
  (slots_id, slot, slots, owner, epoch, last_id, state, raised_under, written_by)
VALUES ($1, $2, $3, $4, $5, ${lastIdUpTo("$6::bigint", "$2::int", "$3::int")},
  'active', ${NOW_RUNNING}, ${THIS_TRANSACTION})
ON CONFLICT (slots_id, slot) DO UPDATE SET
  owner = excluded.owner, epoch = excluded.epoch, state = 'active',
  last_id = greatest(t.last_id, excluded.last_id),
  raised_under = excluded.raised_under, written_by = excluded.written_by
WHERE t.epoch < excluded.epoch AND t.state <> 'active' AND t.xmin = t.written_by`;

/** The epoch is above any that a lost history had, as in accept.ts. */
const FORGET = `INSERT INTO idmint_ticket.slot AS t
  (slots_id, slot, slots, owner, epoch, last_id, state, raised_under, written_by)
SELECT $1, l.slot, $2::int, '${NOBODY}',
  greatest($4::bigint + 1, floor(extract(epoch FROM clock_timestamp()))::bigint),
  ${lastIdUpTo("0::bigint", "l.slot", "$2::int")}, 'moved', ${NOW_RUNNING}, ${THIS_TRANSACTION}
FROM unnest($3::int[]) AS l (slot) ORDER BY l.slot
ON CONFLICT (slots_id, slot) DO UPDATE SET
  owner = excluded.owner, epoch = excluded.epoch, state = 'moved', written_by = excluded.written_by
WHERE t.state <> 'active' AND t.epoch < excluded.epoch AND t.xmin = t.written_by`;

const CONFIRM = `UPDATE idmint_ticket.slot AS t SET state = 'moved', written_by = ${THIS_TRANSACTION}
WHERE t.slots_id = $1 AND t.slot = $2 AND t.epoch = $3 AND t.state = 'frozen'
  AND t.xmin = t.written_by`;

interface Proof {
  readonly database_id: string;
  readonly fenced: string;
  readonly unsafe: string;
}

interface SlotRow {
  readonly database_id: string;
  readonly incarnation: string;
  readonly slot: number | null;
  readonly slots: number;
  readonly owner: string;
  readonly epoch: string;
  readonly last_id: string;
  readonly state: SlotState;
  readonly is_ours: boolean;
}

/** The statements about slots besides grants; each method of TicketDatabase is one transaction. */
export class Slots {
  readonly #connections: Connections;
  readonly #name: string;

  constructor(connections: Connections, name: string) {
    this.#connections = connections;
    this.#name = name;
  }

  async list(slotsId: string): Promise<SlotsView> {
    return this.#read((session) => viewOf(session, this.#name, slotsId, { trusted: false }));
  }

  async listSlotsIds({ afterSlotsId, limit }: Request<"listSlotsIds">): Promise<readonly string[]> {
    return this.#read(async (session) => {
      const values = [afterSlotsId, limit];
      const rows = await session.query<{ slots_id: string }>({ text: LIST_IDS, values });
      return rows.map(({ slots_id }) => slots_id);
    });
  }

  async make({ slotsId, slots, own, above }: Request<"make">): Promise<void> {
    await this.#change(async (session) => {
      await session.query({ text: MAKE, values: [slotsId, slots, own, String(above)] });
    });
  }

  async raise({ slotsId, above }: Request<"raise">): Promise<SlotsView> {
    return this.#change(async (session) => {
      await session.query({ text: RAISE, values: [slotsId, String(above)] });
      return viewOf(session, this.#name, slotsId, { trusted: false });
    });
  }

  async freeze({ slotsId, slot, epoch, to }: Request<"freeze">): Promise<Slot | undefined> {
    return this.#change(async (session) => {
      await session.query({ text: FREEZE, values: [slotsId, slot, String(epoch), to] });
      return this.#slot(session, slotsId, slot);
    });
  }

  async adopt(request: Request<"adopt">): Promise<Slot> {
    const { slotsId, slot, slots, owner, epoch, above } = request;
    return this.#change(async (session, databaseId) => {
      if (databaseId !== owner) {
        throw ticketWentBack(this.#name, `it is ${databaseId}, and slot ${slot} is for ${owner}`);
      }
      const values = [slotsId, slot, slots, owner, String(epoch), String(above)];
      await session.query({ text: ADOPT, values });
      const taken = await this.#slot(session, slotsId, slot);
      if (taken !== undefined && taken.epoch >= epoch) return taken;
      throw ticketWentBack(this.#name, `it would not take slot ${slot} at epoch ${epoch}`);
    });
  }

  async forget({ slotsId, slots, lost, epoch }: Request<"forget">): Promise<void> {
    const values = [slotsId, slots, lost, String(epoch)];
    await this.#change((session) => session.query({ text: FORGET, values }));
  }

  async confirm({ slotsId, slot, epoch }: Request<"confirm">): Promise<void> {
    await this.#change((session) =>
      session.query({ text: CONFIRM, values: [slotsId, slot, String(epoch)] }),
    );
  }

  async #read<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#connections.run(async (session) => {
      await this.#prove(session, PROVE);
      return work(session);
    });
  }

  async #change<T>(work: (session: Session, databaseId: string) => Promise<T>): Promise<T> {
    return this.#connections.run((session) =>
      session.transaction(async () => {
        const databaseId = await this.#prove(session, PROVE_AND_LOCK);
        return work(session, databaseId);
      }),
    );
  }

  /** The database's id, when it is the one that was accepted. */
  async #prove(session: Session, text: string): Promise<string> {
    const [row] = await session.query<Proof>({ text, values: [this.#connections.allowUnsafe] });
    if (row === undefined) throw ticketWentBack(this.#name, "it has lost its identity");
    if (row.unsafe !== "") refuseUnsafeSettings(row.unsafe);
    if (row.fenced !== "") throw ticketWentBack(this.#name, row.fenced);
    return row.database_id;
  }

  async #slot(session: Session, slotsId: string, slot: number): Promise<Slot | undefined> {
    const { slots } = await viewOf(session, this.#name, slotsId, { trusted: false });
    return slots.find((each) => each.slot === slot);
  }
}

/**
 * A tag's slots as they are now. Rows that were not written by us are refused, unless an operator takes them as they are
 * (`trusted`).
 */
export async function viewOf(
  session: Session,
  name: string,
  slotsId: string,
  { trusted }: { readonly trusted: boolean },
): Promise<SlotsView> {
  const rows = await session.query<SlotRow>({ text: LIST, values: [slotsId] });
  const [first] = rows;
  if (first === undefined) throw ticketWentBack(name, "it has lost its identity");
  const slots: Slot[] = [];
  for (const { slot, owner, epoch, last_id, state, is_ours } of rows) {
    if (slot === null) continue;
    if (!is_ours && !trusted) {
      const detail = `slot ${slot} of ${slotsId} was loaded from a dump or changed by hand`;
      throw ticketWentBack(name, detail);
    }
    slots.push({ slot, owner, epoch: BigInt(epoch), lastId: BigInt(last_id), state });
  }
  const { database_id: databaseId, incarnation } = first;
  return { databaseId, incarnation, slotCount: slots.length === 0 ? 0 : first.slots, slots };
}
