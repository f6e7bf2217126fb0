// What a server does with rows of the ledger that it cannot write.
import { segmentOf } from "@idmint/core";
import { FakeTime, MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, test } from "vitest";
import { createCounters } from "../../src/service/counters.ts";
import type { ServerEvent } from "../../src/service/events.ts";
import { Ledger } from "../../src/service/ledger.ts";
import { settled } from "./directory-world.ts";

const CLIENT = { instance: "orders/7f", principal: "payments" };

function setUp() {
  const time = new FakeTime(5_000);
  const store = new MemoryStore();
  const counters = createCounters();
  const events: ServerEvent[] = [];
  const ledger = new Ledger({
    store,
    guard: { seen: () => 1n },
    nodeId: "n1",
    server: "host-1",
    limits: { keepForMs: 3_600_000, maxRows: 1_000_000 },
    storeTimeoutMs: 1_000,
    clock: time,
    wallClock: () => time.now(),
    timers: time,
    counters,
    emit: (event) => events.push(event),
  });
  const rows = () => store.database.ledger.map(({ entry }) => entry);
  return { time, store, counters, events, ledger, rows };
}

const SEGMENTS = [segmentOf(1n, 10)];

test("rows are written twice a second, and nothing waits for them", async () => {
  const { time, ledger, rows, store } = setUp();
  ledger.start();
  ledger.granted("t", segmentOf(1n, 100), 1n, 1n);
  ledger.allocated("t", SEGMENTS, 1n, CLIENT);
  await settled();
  expect(rows()).toEqual([]);
  time.advance(500);
  await settled();
  expect(rows()).toEqual(["grant", "allocation"]);
  expect(store.database.ledger[1]).toMatchObject({ ...CLIENT, server: "host-1", atMs: 5_000 });
  time.advance(2_000);
  await settled();
  expect(store.count("recordLedger")).toBe(1);
  ledger.stop();
  expect(time.pending).toBe(0);
});

test("an idle server does not wake up for its ledger, and rows that were not written do", async () => {
  const { time, ledger, rows, store } = setUp();
  ledger.start();
  time.advance(500);
  await settled();
  expect(time.pending).toBe(0);
  store.faults = { before: storeIsDown };
  ledger.granted("t", segmentOf(1n, 100), 1n, 1n);
  for (let tries = 1; tries <= 2; tries++) {
    time.advance(500);
    await settled();
    expect([store.count("recordLedger"), time.pending]).toEqual([tries, 1]);
  }
  store.faults = {};
  time.advance(500);
  await settled();
  expect(rows()).toEqual(["grant"]);
  expect(time.pending).toBe(0);
});

test("a release is true once its row is stored, and false when that failed or is not known", async () => {
  const { ledger, store, rows, events, time } = setUp();
  expect(await ledger.released("t", SEGMENTS, 1n)).toBe(true);
  expect(rows()).toEqual(["release"]);
  store.faults = { before: storeIsDown };
  expect(await ledger.released("t", SEGMENTS, 1n)).toBe(false);
  store.faults = { after: storeIsDown };
  expect(await ledger.released("t", SEGMENTS, 1n)).toBe(false);
  expect(events.map(({ type }) => type)).toEqual(["ledger-behind"]);
  store.faults = { before: () => new Promise<void>(() => undefined) };
  const waiting = ledger.released("t", SEGMENTS, 1n);
  await settled();
  time.advance(1_000);
  expect(await waiting).toBe(false);
});

test("what cannot be written waits, is dropped beyond a limit, and leaves a gap", async () => {
  const { ledger, store, counters, events, rows } = setUp();
  store.faults = { before: storeIsDown };
  for (let at = 0; at < 20_001; at++) ledger.allocated("t", SEGMENTS, 1n, CLIENT);
  expect([counters.ledgerRows, counters.ledgerDropped]).toEqual([20_000, 1]);
  expect(await ledger.released("t", SEGMENTS, 1n)).toBe(false);
  await ledger.flush();
  expect(events.filter(({ type }) => type === "ledger-behind")).toHaveLength(1);
  store.faults = {};
  await ledger.close();
  expect(rows()).toHaveLength(20_001);
  expect(rows().at(-1)).toBe("gap");
}, 20_000);
