import { IdmintError } from "@idmint/core";
import { NOBODY, type SlotsView, type TicketDatabase } from "@idmint/core/server";
import { expect, test } from "vitest";

/** A ticket database of a test's own. */
export interface TicketHarness {
  readonly database: TicketDatabase;
  /** Stops and starts the server below. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

const ID = "orders.1";
const CEILING = 2n ** 63n - 1n;

/** What every ticket database does, the one in memory that the models use as well as the real one. */
export function ticketSuite(start: () => Promise<TicketHarness>): void {
  const withDatabase = async (
    work: (database: TicketDatabase, harness: TicketHarness) => Promise<void>,
  ): Promise<void> => {
    const harness = await start();
    try {
      await work(harness.database, harness);
    } finally {
      await harness.close();
    }
  };

  test("slots are made once, below the first id", async () => {
    await withDatabase(async (database) => {
      await database.make({ slotsId: ID, slots: 4, own: [0, 3], above: 100n });
      await grant(database, [{ slot: 3, count: 2 }]);
      await database.make({ slotsId: ID, slots: 4, own: [0, 1, 3], above: 0n });
      const { slots, slotCount, databaseId } = await database.list(ID);
      expect(slotCount).toBe(4);
      expect(slots.map(({ slot, lastId, epoch, state }) => [slot, lastId, epoch, state])).toEqual([
        [0, 100n, 1n, "active"],
        [1, -3n, 1n, "active"],
        [3, 107n, 1n, "active"],
      ]);
      expect(new Set(slots.map(({ owner }) => owner))).toEqual(new Set([databaseId]));
      expect(await database.list("other.1")).toMatchObject({ slotCount: 0, slots: [] });
    });
  });

  test("the names of slots are listed in pages", async () => {
    await withDatabase(async (database) => {
      for (const slotsId of ["b.1", "a.2", "a.1"]) {
        await database.make({ slotsId, slots: 3, own: [0, 1], above: 0n });
      }
      const first = await database.listSlotsIds({ afterSlotsId: "", limit: 2 });
      expect(first).toEqual(["a.1", "a.2"]);
      expect(await database.listSlotsIds({ afterSlotsId: "a.2", limit: 2 })).toEqual(["b.1"]);
    });
  });

  test("a grant takes ids of each slot in its class, in the order of the requests", async () => {
    await withDatabase(async (database) => {
      await database.make({ slotsId: ID, slots: 10, own: [2, 7], above: 0n });
      const requests = [
        { slot: 7, count: 2 },
        { slot: 2, count: 1 },
      ];
      expect(await grant(database, requests)).toEqual([
        { slot: 7, outcome: "granted", first: 7n, count: 2, lastId: 17n },
        { slot: 2, outcome: "granted", first: 2n, count: 1, lastId: 2n },
      ]);
      expect(await grant(database, [{ slot: 7, count: 1 }])).toMatchObject([{ first: 27n }]);
    });
  });

  test("the last ids below the ceiling come, and no more", async () => {
    await withDatabase(async (database) => {
      await database.make({ slotsId: ID, slots: 10, own: [0, 5], above: 0n });
      const wish = { slot: 5, count: 9 };
      expect(await grant(database, [wish], 4n)).toMatchObject([{ reason: "EXHAUSTED" }]);
      expect(await grant(database, [wish], 30n)).toMatchObject([{ first: 5n, count: 3 }]);
      expect(await grant(database, [wish], 30n)).toMatchObject([{ reason: "EXHAUSTED" }]);
      expect(await grant(database, [wish], 1n)).toMatchObject([{ reason: "EXHAUSTED" }]);
      await database.raise({ slotsId: ID, above: CEILING - 11n });
      const [end] = await grant(database, [{ slot: 5, count: 9 }]);
      // 2^63 − 1 ends in 7.
      expect(end).toMatchObject({ count: 1, lastId: CEILING - 2n });
      expect(await grant(database, [wish], 1n)).toMatchObject([{ reason: "EXHAUSTED" }]);
    });
  });

  test("a raise lifts active slots only, and never lowers one", async () => {
    await withDatabase(async (database) => {
      await database.make({ slotsId: ID, slots: 3, own: [0, 1, 2], above: 50n });
      await database.freeze({ slotsId: ID, slot: 1, epoch: 1n, to: "other.0" });
      const low = await database.raise({ slotsId: ID, above: 10n });
      expect(low.slots.map(({ lastId }) => lastId)).toEqual([48n, 49n, 50n]);
      const high = await database.raise({ slotsId: ID, above: 99n });
      expect(high.slots.map(({ lastId }) => lastId)).toEqual([99n, 49n, 98n]);
    });
  });

  test("a frozen slot grants nothing, and is given away once", async () => {
    await withDatabase(async (database) => {
      await database.make({ slotsId: ID, slots: 3, own: [1], above: 0n });
      await grant(database, [{ slot: 1, count: 4 }]);
      const freeze = { slotsId: ID, slot: 1, epoch: 1n };
      const frozen = await database.freeze({ ...freeze, to: "b.0" });
      expect(frozen).toMatchObject({ owner: "b.0", epoch: 2n, state: "frozen", lastId: 10n });
      expect(await database.freeze({ ...freeze, to: "c.0" })).toEqual(frozen);
      expect(await database.freeze({ ...freeze, epoch: 2n, to: "c.0" })).toEqual(frozen);
      for (const epoch of [1n, 2n]) {
        const requests = [{ slot: 1, epoch, seenLastId: 0n, count: 1 }];
        expect(await database.grant({ slotsId: ID, ceiling: CEILING, requests })).toEqual([
          { slot: 1, outcome: "refused", reason: "MOVED" },
        ]);
      }
      await database.confirm({ slotsId: ID, slot: 1, epoch: 1n });
      expect((await database.list(ID)).slots[0]).toEqual(frozen);
      await database.confirm({ slotsId: ID, slot: 1, epoch: 2n });
      expect((await database.list(ID)).slots[0]).toEqual({ ...frozen, state: "moved" });
      const { databaseId } = await database.list(ID);
      const own = await database.freeze({ ...freeze, epoch: 2n, to: databaseId });
      expect(own?.state).toBe("moved");
    });
  });

  test("a slot is taken over once for each epoch, above what it was frozen at", async () => {
    await withDatabase(async (database) => {
      const { databaseId: owner } = await database.list(ID);
      const adopt = { slotsId: ID, slot: 2, slots: 5, owner };
      expect(await database.adopt({ ...adopt, epoch: 3n, above: 44n })).toMatchObject({
        epoch: 3n,
        lastId: 42n,
        state: "active",
      });
      await grant(database, [{ slot: 2, epoch: 3n, count: 1 }]);
      const late = await database.adopt({ ...adopt, epoch: 3n, above: 44n });
      expect(late.lastId).toBe(47n);
      await database.freeze({ slotsId: ID, slot: 2, epoch: 3n, to: "b.0" });
      const later = await database.adopt({ ...adopt, epoch: 3n, above: 44n });
      expect(later).toMatchObject({ state: "frozen", epoch: 4n });
      // It comes back, from a database that knows of fewer ids than this one.
      const back = await database.adopt({ ...adopt, epoch: 5n, above: 10n });
      expect(back).toMatchObject({ state: "active", epoch: 5n, lastId: 47n });
      // Whoever knows it from before it was away asks again.
      expect(await grant(database, [{ slot: 2, epoch: 3n, count: 1 }])).toMatchObject([
        { reason: "MOVED" },
      ]);
      expect(await reasonOf(database.adopt({ ...adopt, epoch: 6n, above: 0n }))).toBe(
        "STORE_EPOCH_CHANGED",
      );
      const other = { ...adopt, owner: "b.0", epoch: 9n, above: 0n };
      expect(await reasonOf(database.adopt(other))).toBe("STORE_EPOCH_CHANGED");
    });
  });

  test("slots that are given up are nobody's for good; those that are here stay", async () => {
    await withDatabase(async (database) => {
      await database.make({ slotsId: ID, slots: 3, own: [0, 1], above: 0n });
      const freeze = { slotsId: ID, slot: 1, epoch: 1n };
      await database.freeze({ ...freeze, to: "gone.0" });
      await database.forget({ slotsId: ID, slots: 3, lost: [0, 1, 2], epoch: 4n });
      const { slots, databaseId: owner } = await database.list(ID);
      expect(slots.map(({ state }) => state)).toEqual(["active", "moved", "moved"]);
      expect(slots.map((each) => each.owner)).toEqual([owner, NOBODY, NOBODY]);
      for (const { epoch } of slots.slice(1)) expect(epoch).toBeGreaterThan(4n);
      await grant(database, [{ slot: 0, count: 1 }]);
      // An adoption that was on its way comes late.
      const adopt = { slotsId: ID, slot: 2, slots: 3, owner, epoch: 2n, above: 0n };
      expect((await database.adopt(adopt)).owner).toBe(NOBODY);
      await database.forget({ slotsId: ID, slots: 3, lost: [1, 2], epoch: 4n });
      expect((await database.list(ID)).slots[0]?.state).toBe("active");
    });
  });

  test("a database behind what was seen refuses all of a grant", async () => {
    await withDatabase(async (database) => {
      await database.make({ slotsId: ID, slots: 3, own: [0, 1], above: 0n });
      const good = { slot: 0, epoch: 1n, seenLastId: 0n, count: 1 };
      for (const bad of [
        { slot: 1, epoch: 1n, seenLastId: 1n, count: 1 },
        { slot: 1, epoch: 2n, seenLastId: -2n, count: 1 },
        { slot: 2, epoch: 1n, seenLastId: -1n, count: 1 },
      ]) {
        const requests = [good, bad];
        const asked = database.grant({ slotsId: ID, ceiling: CEILING, requests });
        expect(await reasonOf(asked)).toBe("STORE_EPOCH_CHANGED");
      }
    });
  });

  test("after a restart slots grant only when they were raised", async () => {
    await withDatabase(async (database, harness) => {
      await database.make({ slotsId: ID, slots: 3, own: [0, 1], above: 0n });
      await grant(database, [{ slot: 1, count: 1 }]);
      await harness.restart();
      // The first call may find the old connection.
      await database.list(ID).catch(() => undefined);
      expect(await grant(database, [{ slot: 1, count: 1 }])).toMatchObject([
        { reason: "NOT_RAISED" },
      ]);
      await database.raise({ slotsId: ID, above: 0n });
      expect(await grant(database, [{ slot: 1, count: 1 }])).toMatchObject([{ first: 4n }]);
    });
  });
}

async function grant(
  database: TicketDatabase,
  requests: readonly { slot: number; count: number; epoch?: bigint }[],
  ceiling = CEILING,
): ReturnType<TicketDatabase["grant"]> {
  const view: SlotsView = await database.list(ID);
  return database.grant({
    slotsId: ID,
    ceiling,
    requests: requests.map(({ slot, count, epoch = 1n }) => {
      const seenLastId = view.slots.find((each) => each.slot === slot)?.lastId ?? 0n;
      return { slot, epoch, seenLastId, count };
    }),
  });
}

async function reasonOf(work: Promise<unknown>): Promise<string> {
  const thrown: unknown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  return thrown instanceof IdmintError ? thrown.reason : `not refused: ${String(thrown)}`;
}
