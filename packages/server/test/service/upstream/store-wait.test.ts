import { IdmintError, type Reason } from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { StoreWait } from "../../../src/service/upstream/store-wait.ts";
import type { ServerEvent } from "../../../src/service/events.ts";

/** A start that waits `waitMs` for a store which fails each attempt with the next of these, and then answers. */
function waiting(waitMs: number, failures: readonly Reason[]) {
  const time = new FakeTime();
  const events: ServerEvent[] = [];
  const stop = new AbortController();
  const emit = (event: ServerEvent) => void events.push(event);
  const ports = { clock: time, timers: time, random: () => 1, emit };
  const storeWait = new StoreWait(ports, waitMs, stop.signal);
  const asked: number[] = [];
  const answer = storeWait.of(async () => {
    const reason = failures[asked.length];
    asked.push(time.now());
    if (reason !== undefined) throw new IdmintError(reason, "of a test");
    return "open";
  });
  answer.catch(() => undefined);
  const pass = async (ms: number) => {
    await settle();
    for (let left = ms; left > 0; left -= 50) {
      time.advance(Math.min(50, left));
      await settle();
    }
  };
  return { answer, asked, events, pass, stop };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

const away = (times: number): readonly Reason[] =>
  Array.from({ length: times }, () => "STORE_UNAVAILABLE" as const);

test("a store that does not answer is asked again, later each time, until it does", async () => {
  const { answer, asked, events, pass } = waiting(60_000, away(7));
  await pass(10_000);
  expect(await answer).toBe("open");
  // With jitter at its most: 100 ms, doubling to 2 s.
  expect(asked).toEqual([0, 100, 300, 700, 1_500, 3_100, 5_100, 7_100]);
  expect(events[0]).toMatchObject({
    type: "store-awaited",
    error: { reason: "STORE_UNAVAILABLE" },
    retryInMs: 100,
    leftMs: 60_000,
  });
  expect(events).toHaveLength(7);
});

test("the last attempt is made when the time is over, and its failure is told", async () => {
  const { answer, asked, pass } = waiting(1_000, away(100));
  await pass(5_000);
  await expect(answer).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  expect(asked).toEqual([0, 100, 300, 700, 1_000]);
});

test.each(["STORE_REFUSED", "SCHEMA_MISMATCH", "STORE_UNSAFE"] as const)(
  "%s ends the start at once, first and later",
  async (reason) => {
    const { answer, asked, events } = waiting(60_000, [reason]);
    await expect(answer).rejects.toMatchObject({ reason });
    expect([asked, events]).toEqual([[0], []]);
    const later = waiting(60_000, ["STORE_UNAVAILABLE", reason]);
    await later.pass(200);
    await expect(later.answer).rejects.toMatchObject({ reason });
    expect(later.asked).toEqual([0, 100]);
  },
);

test("a start that is told to end waits no longer, and asks no more", async () => {
  const { answer, asked, pass, stop } = waiting(60_000, away(100));
  await pass(750);
  stop.abort();
  await expect(answer).rejects.toMatchObject({ reason: "CALL_CANCELLED" });
  await pass(5_000);
  expect(asked).toEqual([0, 100, 300, 700]);
});
