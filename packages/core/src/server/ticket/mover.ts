import { IdmintError } from "../../errors.ts";
import { holdingsOf, type Holdings, type Pending } from "./holdings.ts";
import type { Move } from "./plan.ts";
import { nameOfId, type SlotsView, type TicketDatabase } from "./ports.ts";

/** A tag's slots, and how many there are over all databases. */
export interface TagSlotsId {
  readonly slotsId: string;
  readonly slots: number;
}

/** What the databases say of one tag's slots, and which of them could not be asked. */
export interface Survey {
  readonly views: ReadonlyMap<string, SlotsView>;
  readonly holdings: Holdings;
  /** By name. */
  readonly failed: ReadonlyMap<string, IdmintError>;
}

/** What a survey needs of a database. */
export type Surveyed = Pick<TicketDatabase, "name" | "list">;

/**
 * Asks all databases for the slots of a tag.
 *
 * INVARIANT: a database is found behind only by what the others had answered before it was asked (holdings.ts has why). So
 * the suspects are asked again one by one, and each is judged at once. What one of them shows may throw suspicion on the
 * next; the rounds are bounded, and whom they do not convict is innocent.
 */
export async function survey(databases: readonly Surveyed[], slotsId: string): Promise<Survey> {
  const views = new Map<string, SlotsView>();
  const failed = new Map<string, IdmintError>();
  const ask = async (database: Surveyed): Promise<void> => {
    try {
      views.set(database.name, await database.list(slotsId));
    } catch (thrown) {
      views.delete(database.name);
      failed.set(database.name, IdmintError.from(thrown));
    }
  };
  await Promise.all(databases.map(ask));
  const behind = new Map<string, string>();
  for (let round = 0; round < databases.length; round++) {
    const suspects = holdingsOf(views).behind;
    const asked = databases.filter(({ name }) => suspects.has(name) && !behind.has(name));
    if (asked.length === 0) break;
    for (const database of asked) {
      // One after the other is the point.
      await ask(database);
      const proof = holdingsOf(views).behind.get(database.name);
      if (proof !== undefined) behind.set(database.name, proof);
    }
  }
  return { views, holdings: { ...holdingsOf(views), behind }, failed };
}

/** What became of a move. */
export type MoveOutcome =
  | "moved"
  /** The slot is not where the plan had it: somebody else moved it. */
  | "overtaken";

/**
 * Moves one slot, in three durable steps: its owner freezes it and writes down for whom, the new owner takes it over above
 * everything issued, the old one takes note.
 *
 * INVARIANT: each step rests on the row that the step before made durable, and on nothing that this process remembers. So
 * it may end anywhere, and two may run at once: whoever comes next finds a frozen row and goes on from it (`finish`), a
 * freeze that comes second finds no active row, and an adoption that comes late finds the epoch there already.
 */
export async function moveSlot(
  databases: readonly TicketDatabase[],
  slots: TagSlotsId,
  move: Move,
): Promise<MoveOutcome> {
  const { views, holdings } = await survey(databases, slots.slotsId);
  assertNoneBehind(holdings);
  const from = databaseNamed(databases, move.from);
  const to = idOf(views, move.to);
  const row = views.get(move.from)?.slots.find(({ slot }) => slot === move.slot);
  if (row?.state !== "active") return "overtaken";
  const { slotsId } = slots;
  const frozen = await from.freeze({ slotsId, slot: move.slot, epoch: row.epoch, to });
  if (frozen?.state !== "frozen" || frozen.owner !== to) return "overtaken";
  await finish(databases, slots, { ...frozen, from: move.from, to }, holdings.highest);
  return "moved";
}

/** Ends a move that was begun: the second and the third step. */
export async function finish(
  databases: readonly TicketDatabase[],
  { slotsId, slots }: TagSlotsId,
  { slot, from, to, epoch, lastId }: Pending,
  highest: bigint,
): Promise<void> {
  const newOwner = databaseNamed(databases, nameOfId(to));
  const above = lastId > highest ? lastId : highest;
  await newOwner.adopt({ slotsId, slot, slots, owner: to, epoch, above });
  await databaseNamed(databases, from).confirm({ slotsId, slot, epoch });
}

/** Refuses to move anything of a tag of which some database knows less than it did. */
export function assertNoneBehind({ behind }: Holdings): void {
  const [first] = behind;
  if (first === undefined) return;
  const [name, detail] = first;
  throw new IdmintError(
    "STORE_EPOCH_CHANGED",
    `ticket database ${name} went back: ${detail}; see idmint ticket accept`,
    { metadata: { database: name, detail } },
  );
}

function databaseNamed(databases: readonly TicketDatabase[], name: string): TicketDatabase {
  const database = databases.find((each) => each.name === name);
  if (database === undefined) throw unknownDatabase(name);
  return database;
}

function idOf(views: ReadonlyMap<string, SlotsView>, name: string): string {
  const view = views.get(name);
  if (view !== undefined) return view.databaseId;
  throw new IdmintError("STORE_UNAVAILABLE", `ticket database ${name} did not answer`, {
    metadata: { database: name },
    retryAfterMs: 1_000,
  });
}

function unknownDatabase(name: string): IdmintError {
  return new IdmintError("STORE_UNAVAILABLE", `ticket database ${name} is not one of ticket.urls`, {
    metadata: { database: name },
  });
}
