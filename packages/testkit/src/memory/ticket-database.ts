import { IdmintError } from "@idmint/core";
import {
  lastIdUpTo,
  NOBODY,
  type Slot,
  type SlotGrant,
  type SlotsView,
  type TicketDatabase,
  type TicketRequest,
} from "@idmint/core/server";

interface SlotRow extends Slot {
  readonly slots: number;
  readonly raisedUnder: number;
}

type Request<K extends keyof TicketDatabase> = TicketDatabase[K] extends (
  request: infer R,
) => unknown
  ? R
  : never;

/** A ticket database in memory, with the rules of the real one. Each method is one step; `fault` stands before it. */
export class MemoryTicketDatabase implements TicketDatabase {
  readonly name: string;
  readonly databaseId: string;
  incarnation = 1;
  readonly #tags = new Map<string, Map<number, SlotRow>>();
  #started = 1;
  #isDown = false;
  #went = "";

  constructor(name: string) {
    this.name = name;
    this.databaseId = `${name}.0`;
  }

  /** It answers nothing until `start`, and its slots have to be raised then. */
  stop(): void {
    this.#isDown = true;
  }

  start(): void {
    this.#isDown = false;
    this.#started++;
  }

  /** Its present state, to be put back later, as a backup would: unnoticed, unless `fenced`. */
  backup(): (fenced: boolean) => void {
    const rows = [...this.#tags].map(([id, tag]) => [id, new Map(tag)] as const);
    return (fenced) => {
      this.#tags.clear();
      for (const [id, tag] of rows) this.#tags.set(id, new Map(tag));
      this.#went = fenced ? "it was restored" : "";
    };
  }

  /** What it has, whether it answers or not. */
  slots(slotsId: string): readonly Slot[] {
    return [...this.#rows(slotsId).values()].map(slotOf).toSorted((a, b) => a.slot - b.slot);
  }

  async list(slotsId: string): Promise<SlotsView> {
    this.#prove();
    return {
      databaseId: this.databaseId,
      incarnation: String(this.incarnation),
      slotCount: [...this.#rows(slotsId).values()][0]?.slots ?? 0,
      slots: this.slots(slotsId),
    };
  }

  async listSlotsIds({ afterSlotsId, limit }: Request<"listSlotsIds">): Promise<readonly string[]> {
    this.#prove();
    const ids = [...this.#tags.keys()].filter((id) => id > afterSlotsId);
    return ids.toSorted().slice(0, limit);
  }

  async make({ slotsId, slots, own, above }: Request<"make">): Promise<void> {
    this.#prove();
    const rows = this.#rows(slotsId);
    for (const slot of own) {
      if (rows.has(slot)) continue;
      this.#set(slotsId, {
        slot,
        slots,
        owner: this.databaseId,
        epoch: 1n,
        lastId: lastIdUpTo(above, slot, slots),
        state: "active",
        raisedUnder: this.#started,
      });
    }
  }

  async raise({ slotsId, above }: Request<"raise">): Promise<SlotsView> {
    this.#prove();
    for (const row of this.#rows(slotsId).values()) {
      if (row.state !== "active") continue;
      const bound = lastIdUpTo(above, row.slot, row.slots);
      const lastId = bound > row.lastId ? bound : row.lastId;
      this.#set(slotsId, { ...row, lastId, raisedUnder: this.#started });
    }
    return this.list(slotsId);
  }

  async grant({ slotsId, ceiling, requests }: TicketRequest): Promise<readonly SlotGrant[]> {
    this.#prove();
    for (const { slot, epoch, seenLastId } of requests) {
      const row = this.#rows(slotsId).get(slot);
      if (row === undefined || row.epoch < epoch || row.lastId < seenLastId) {
        throw wentBack(this.name, `slot ${slot}`);
      }
    }
    return requests.map(({ slot, epoch, count }) => {
      const row = this.#rows(slotsId).get(slot);
      if (row?.state !== "active" || row.epoch !== epoch) {
        return { slot, outcome: "refused", reason: "MOVED" };
      }
      if (row.raisedUnder !== this.#started) {
        return { slot, outcome: "refused", reason: "NOT_RAISED" };
      }
      const room = (ceiling - row.lastId) / BigInt(row.slots);
      if (room < 1n) return { slot, outcome: "refused", reason: "EXHAUSTED" };
      const granted = room < BigInt(count) ? Number(room) : count;
      const first = row.lastId + BigInt(row.slots);
      const lastId = row.lastId + BigInt(granted) * BigInt(row.slots);
      this.#set(slotsId, { ...row, lastId });
      return { slot, outcome: "granted", first, count: granted, lastId };
    });
  }

  async freeze({ slotsId, slot, epoch, to }: Request<"freeze">): Promise<Slot | undefined> {
    this.#prove();
    const row = this.#rows(slotsId).get(slot);
    if (row?.state === "active" && row.epoch === epoch && to !== this.databaseId) {
      this.#set(slotsId, { ...row, owner: to, epoch: epoch + 1n, state: "frozen" });
    }
    const now = this.#rows(slotsId).get(slot);
    return now === undefined ? undefined : slotOf(now);
  }

  async adopt(request: Request<"adopt">): Promise<Slot> {
    this.#prove();
    const { slotsId, slot, slots, owner, epoch, above } = request;
    if (owner !== this.databaseId) throw wentBack(this.name, "it is another one");
    const old = this.#rows(slotsId).get(slot);
    if (old !== undefined && old.epoch >= epoch) return slotOf(old);
    if (old?.state === "active") throw wentBack(this.name, `slot ${slot} is active`);
    const bound = lastIdUpTo(above, slot, slots);
    const lastId = old !== undefined && old.lastId > bound ? old.lastId : bound;
    const row: SlotRow = {
      slot,
      slots,
      owner,
      epoch,
      lastId,
      state: "active",
      raisedUnder: this.#started,
    };
    this.#set(slotsId, row);
    return slotOf(row);
  }

  async forget({ slotsId, slots, lost, epoch }: Request<"forget">): Promise<void> {
    this.#prove();
    for (const slot of lost) {
      const old = this.#rows(slotsId).get(slot);
      if (old?.state === "active") continue;
      const lastId = old?.lastId ?? lastIdUpTo(0n, slot, slots);
      const gone = { owner: NOBODY, epoch: epoch + 1n, lastId, state: "moved" } as const;
      this.#set(slotsId, { slot, slots, ...gone, raisedUnder: this.#started });
    }
  }

  async confirm({ slotsId, slot, epoch }: Request<"confirm">): Promise<void> {
    this.#prove();
    const row = this.#rows(slotsId).get(slot);
    if (row?.state === "frozen" && row.epoch === epoch) {
      this.#set(slotsId, { ...row, state: "moved" });
    }
  }

  #rows(slotsId: string): Map<number, SlotRow> {
    return this.#tags.get(slotsId) ?? new Map<number, SlotRow>();
  }

  #set(slotsId: string, row: SlotRow): void {
    this.#tags.set(slotsId, this.#rows(slotsId).set(row.slot, row));
  }

  #prove(): void {
    if (this.#isDown) {
      throw new IdmintError("STORE_UNAVAILABLE", `${this.name} is down`, { retryAfterMs: 100 });
    }
    if (this.#went !== "") throw wentBack(this.name, this.#went);
  }
}

function slotOf({ slot, owner, epoch, lastId, state }: SlotRow): Slot {
  return { slot, owner, epoch, lastId, state };
}

function wentBack(name: string, detail: string): IdmintError {
  return new IdmintError("STORE_EPOCH_CHANGED", `${name} went back: ${detail}`);
}
