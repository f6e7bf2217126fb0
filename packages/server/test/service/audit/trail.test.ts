import { setImmediate } from "node:timers/promises";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { AuditTrail } from "../../../src/service/audit/trail.ts";

test("where more rows are too many than one round removes, the next round comes soon", async () => {
  const time = new FakeTime();
  let left = 250_000;
  let rounds = 0;
  const store = {
    listAudit: async () => [],
    recordAudit: async () => undefined,
    trimAudit: async ({ kind, limit }: { kind: string; limit: number }) => {
      if (kind === "refusal") {
        rounds++;
        return 0;
      }
      const removed = Math.min(left, limit);
      left -= removed;
      return removed;
    },
  };
  const ports = { clock: time, timers: time, wallClock: () => 0, random: () => 0.5 };
  const more = { store, randomToken: () => "x", emit: () => undefined, server: "s" };
  const trail = new AuditTrail({ ...ports, ...more }, { keepMs: 1_000, maxRows: 1_000 });
  trail.start();
  for (let second = 0; second < 40; second++) {
    time.advance(1_000);
    // The calls of a round are one after the other.
    for (let turn = 0; turn < 3; turn++) await setImmediate();
  }
  expect({ left, rounds }).toEqual({ left: 0, rounds: 3 });
  await trail.stop();
});
