// A ticket tag that is made where its databases have slots of that name already.
import { FakeTime, MemoryTicketDatabase } from "@idmint/testkit";
import { expect, test } from "vitest";
import { TicketFleet } from "../../../src/service/tickets/fleet.ts";
import { makeSlots } from "../../../src/service/tickets/make-slots.ts";
import { TicketSlots } from "../../../src/service/tickets/slots.ts";

const CEILING = 2n ** 63n - 1n;
const TICKET = { kind: "ticket", start: 1n, slots: 4 } as const;

function stage(names: readonly string[] = ["a", "b"]) {
  const time = new FakeTime();
  const databases = names.map((name) => new MemoryTicketDatabase(name));
  const ports = { clock: time, timers: time, random: () => 0.5 };
  const fleet = new TicketFleet({ databases, ...ports, timeoutMs: 1_000, emit: () => undefined });
  let made = 0;
  const make = (tag = "orders", slots = 4) =>
    makeSlots(tag, { ...TICKET, slots }, fleet, () => `token-${++made}`);
  const load = async (slotsId: string, count: number): Promise<readonly bigint[]> => {
    const source = new TicketSlots(slotsId, TICKET.slots, { fleet, ...ports });
    const segments = await source.load({ count, above: 0n, ceiling: CEILING });
    return segments.flatMap(({ base, count: has, increment }) =>
      Array.from({ length: has }, (_, at) => base + BigInt(at * increment)),
    );
  };
  return { databases, make, load };
}

test("a tag whose row the store has lost goes on with its slots", async () => {
  const { make, load } = stage();
  const first = await make();
  const ids = [...(await load(first.slotsId, 40))];
  const again = await make();
  expect(again.slotsId).toBe(first.slotsId);
  // A server that did not hear of it yet, and one that did.
  ids.push(...(await load(again.slotsId, 40)), ...(await load(first.slotsId, 40)));
  expect(new Set(ids).size).toBe(ids.length);
});

test("slots that are not all there are left, and the new ones begin above them", async () => {
  const { databases, make, load } = stage();
  const [a, b] = databases;
  const empty = b?.backup();
  const first = await make();
  const ids = [...(await load(first.slotsId, 40)), ...(await load(first.slotsId, 40))];
  empty?.(false);
  // What is left of them is in the first one.
  const known = a?.slots(first.slotsId).map(({ lastId }) => lastId) ?? [];
  const highest = known.reduce((most, id) => (id > most ? id : most), 0n);
  const again = await make();
  expect(again.slotsId).not.toBe(first.slotsId);
  for (const id of await load(again.slotsId, 40)) expect(id).toBeGreaterThan(highest);
  expect(ids.length).toBeGreaterThan(0);
});

test("another number of slots would repeat ids, and is refused", async () => {
  const { make, load } = stage();
  const { slotsId } = await make();
  // Nothing was issued of them yet.
  expect((await make("orders", 5)).slotsId).not.toBe(slotsId);
  await load(slotsId, 40);
  const other = make("orders", 6);
  await expect(other).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
  await expect(other).rejects.toThrow("must be 4");
});

test("tags of other names are not looked at", async () => {
  const { make, load } = stage();
  const others = await Promise.all(["order", "orders.eu", "orderss"].map((name) => make(name)));
  for (const { slotsId } of others) await load(slotsId, 40);
  const { slotsId } = await make();
  expect(others.map((other) => other.slotsId)).not.toContain(slotsId);
  expect((await load(slotsId, 4)).toSorted((x, y) => (x < y ? -1 : 1))[0]).toBeLessThan(5n);
});

test("all databases have to say what they have", async () => {
  const { databases, make } = stage();
  await make();
  databases[1]?.stop();
  await expect(make()).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
});
