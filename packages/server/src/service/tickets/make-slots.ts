import { type IdmintError, invalidField } from "@idmint/core";
import type { TicketKind } from "@idmint/core/kinds";
import {
  type DatabaseHealth,
  firstIdOf,
  initialSlots,
  nameOfId,
  planTag,
} from "@idmint/core/server";
import type { TicketFleet } from "./fleet.ts";

/** Names of slots of one answer. */
const PAGE = 1_000;

/**
 * Makes the slots of a new tag, evenly in all databases of this server; all of them have to answer.
 *
 * INVARIANTS
 * 1. Slots have an owner from one decision only. They are made under a name of their own (`tag.random`) that nobody else knows
 *    yet, and count only once the store holds a tag that names them, which it does in one transaction. Of two servers that make
 *    a tag at once, one has its slots named and the other's are never used. After that nobody makes slots under that name again,
 *    so a database without them has lost them, and issues nothing.
 * 2. No id of an earlier tag of this name comes again. Where the store has a row of it, that names its slots. Where it has lost
 *    the row, the databases still have the slots: the new tag takes those. So a server that did not hear yet that the row is lost
 *    has its ids of the same slots. If they are not whole, the new ones begin above them.
 */
export async function makeSlots(
  tag: string,
  kind: Omit<TicketKind, "slotsId">,
  fleet: TicketFleet,
  randomToken: () => string,
): Promise<TicketKind> {
  const { slots } = kind;
  const databases = fleet.all();
  if (databases.length === 0) throw fleet.unavailable();
  const earlier = await earlierSlots(tag, slots, fleet);
  if (earlier.slotsId !== undefined) return { ...kind, slotsId: earlier.slotsId };
  const made: TicketKind = { ...kind, slotsId: `${tag}.${randomToken()}` };
  const { slotsId } = made;
  const first = firstIdOf(made) - 1n;
  const above = earlier.highest > first ? earlier.highest : first;
  const own = initialSlots(slots, databases.length);
  await Promise.all(
    databases.map((health, at) =>
      fleet.ask(health, (database) => database.make({ slotsId, slots, own: own[at] ?? [], above })),
    ),
  );
  return made;
}

interface Earlier {
  /** Of slots that are all there; undefined: there are none, or not all of them. */
  readonly slotsId: string | undefined;
  /** Highest id that may have been issued under this name. */
  readonly highest: bigint;
}

/** The slots of a tag of this name that the store has lost, or that were made and never named. */
async function earlierSlots(tag: string, slots: number, fleet: TicketFleet): Promise<Earlier> {
  let earlier: Earlier = { slotsId: undefined, highest: 0n };
  const databases = fleet.all().map((health) => ({
    name: health.name,
    list: (slotsId: string) => fleet.ask(health, (database) => database.list(slotsId)),
  }));
  const names = databases.map(({ name }) => name);
  for (const slotsId of await slotsIdsOf(tag, fleet)) {
    // One after the other: there is seldom more than one.
    const plan = await planTag(databases, slotsId, names);
    if (plan.slots !== slots && !plan.isUnused) throw otherSlots(plan.slots);
    if (plan.highest < earlier.highest) continue;
    const isWhole = plan.slots === slots && plan.lost === 0;
    earlier = { slotsId: isWhole ? slotsId : undefined, highest: plan.highest };
  }
  return earlier;
}

/** The names of slots, `tag.random`, that some database has. */
async function slotsIdsOf(tag: string, fleet: TicketFleet): Promise<readonly string[]> {
  const found = new Set<string>();
  const ask = async (health: DatabaseHealth): Promise<void> => {
    for (let afterSlotsId = `${tag}.`; ;) {
      const query = { afterSlotsId, limit: PAGE };
      const page = await fleet.ask(health, (database) => database.listSlotsIds(query));
      for (const id of page) if (nameOfId(id) === tag) found.add(id);
      const last = page.at(-1);
      if (page.length < PAGE || last?.startsWith(`${tag}.`) !== true) return;
      afterSlotsId = last;
    }
  };
  await Promise.all(fleet.all().map(ask));
  return [...found].toSorted();
}

function otherSlots(were: number): IdmintError {
  const why = "the ticket databases have ids of a tag of this name that the store has lost";
  return invalidField(
    "tag.ticket.slots",
    `must be ${were}: ${why}, and they would be repeated; take another name`,
  );
}
