import { forgetLost } from "@idmint/core/server";
import { MemoryTicketDatabase } from "@idmint/testkit";
import { expect, test } from "vitest";
import { ticketSuite } from "./suite.ts";

ticketSuite(async () => {
  const database = new MemoryTicketDatabase("a");
  return {
    database,
    restart: async () => {
      database.stop();
      database.start();
    },
    close: async () => undefined,
  };
});

test("nothing is given up while a database is away that may have it", async () => {
  const [a, b] = [new MemoryTicketDatabase("a"), new MemoryTicketDatabase("b")];
  for (const [database, slot] of [
    [a, 0],
    [b, 1],
  ] as const) {
    await database.make({ slotsId: "orders.1", slots: 3, own: [slot], above: 0n });
  }
  b.stop();
  await expect(forgetLost([a, b], "orders.1")).rejects.toThrow("b is down");
  b.start();
  expect(a.slots("orders.1")).toHaveLength(1);
  expect(await forgetLost([a, b], "orders.1")).toEqual({ forgotten: 1, slots: 3 });
  expect(await forgetLost([a, b], "orders.1")).toEqual({ forgotten: 0, slots: 3 });
  for (const database of [a, b]) {
    const states = database.slots("orders.1").map(({ slot, state }) => [slot, state]);
    expect(states).toEqual([
      [database === a ? 0 : 1, "active"],
      [2, "moved"],
    ]);
  }
});
