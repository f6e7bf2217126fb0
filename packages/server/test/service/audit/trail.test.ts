import { setImmediate } from "node:timers/promises";
import { IdmintError } from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { type AuditPorts, AuditTrail } from "../../../src/service/audit/trail.ts";

const CALL = {
  deadline: Infinity,
  signal: new AbortController().signal,
  peer: "10.0.0.9:1",
  caller: "10.0.0.9",
  principal: undefined,
  authorization: () => undefined,
};

function setUp(store: Partial<AuditPorts["store"]>) {
  const time = new FakeTime();
  const ports = { clock: time, timers: time, wallClock: () => 0, random: () => 0.5 };
  const all = {
    listAudit: async () => [],
    recordAudit: async () => undefined,
    trimAudit: async () => 0,
    ...store,
  };
  const more = { store: all, randomToken: () => "x", emit: () => undefined, server: "s" };
  const trail = new AuditTrail({ ...ports, ...more }, { keepMs: 1_000, maxRows: 1_000 });
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      time.advance(1_000);
      // The calls of a round are one after the other.
      for (let turn = 0; turn < 3; turn++) await setImmediate();
    }
  };
  return { time, trail, pass };
}

test("an idle server does not wake up for its trail, and what waits is written and told", async () => {
  let isDown = true;
  let written = 0;
  let looks = 0;
  const { time, trail, pass } = setUp({
    recordAudit: async (events) => {
      if (isDown) throw new Error("down");
      written += events.length;
    },
    listAudit: async () => {
      looks++;
      return [];
    },
  });
  trail.start();
  await pass(1);
  // The round that removes old rows.
  const idle = time.pending;
  expect(idle).toBe(1);
  trail.ended(trail.ownNote("accept"));
  expect(time.pending).toBe(idle + 1);
  await pass(1);
  expect([looks, time.pending]).toEqual([1, idle]);
  trail.refused(CALL, "/x", "t", new IdmintError("PERMISSION_DENIED", "no"));
  await pass(2);
  expect([written, time.pending]).toEqual([0, idle + 1]);
  isDown = false;
  await pass(1);
  expect(written).toBe(1);
  // What was left out of this minute would be told at its end.
  await pass(60);
  expect(time.pending).toBe(idle);
  await trail.stop();
  expect(time.pending).toBe(0);
});

test("where more rows are too many than one round removes, the next round comes soon", async () => {
  let left = 250_000;
  let rounds = 0;
  const { trail, pass } = setUp({
    trimAudit: async ({ kind, limit }) => {
      if (kind === "refusal") {
        rounds++;
        return 0;
      }
      const removed = Math.min(left, limit);
      left -= removed;
      return removed;
    },
  });
  trail.start();
  await pass(40);
  expect({ left, rounds }).toEqual({ left: 0, rounds: 3 });
  await trail.stop();
});
