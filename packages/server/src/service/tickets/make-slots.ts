import type { TicketKind } from "@idmint/core/kinds";
import { firstIdOf, initialSlots } from "@idmint/core/server";
import type { TicketFleet } from "./fleet.ts";

/**
 * Makes the slots of a new tag, evenly in all databases of this server; all of them have to answer.
 *
 * INVARIANT: slots have an owner from one decision only. They are made under a name of their own (`tag.random`) that
 * nobody else knows yet, and count only once the store holds a tag that names them, which it does in one transaction. Of
 * two servers that make a tag at once, one has its slots named and the other's are never used. After that nobody makes
 * slots under that name again, so a database without them has lost them, and issues nothing.
 */
export async function makeSlots(
  tag: string,
  kind: Omit<TicketKind, "slotsId">,
  fleet: TicketFleet,
  randomToken: () => string,
): Promise<TicketKind> {
  const { slots } = kind;
  const made: TicketKind = { ...kind, slotsId: `${tag}.${randomToken()}` };
  const { slotsId } = made;
  const above = firstIdOf(made) - 1n;
  const databases = fleet.all();
  const own = initialSlots(slots, databases.length);
  if (databases.length === 0) throw fleet.unavailable();
  await Promise.all(
    databases.map((health, at) =>
      fleet.ask(health, (database) => database.make({ slotsId, slots, own: own[at] ?? [], above })),
    ),
  );
  return made;
}
