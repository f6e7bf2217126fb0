import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { AdminGate } from "../../src/service/admin-gate.ts";

/** Work that ends when told to, and how much of it runs. */
function slowWork() {
  const running: (() => void)[] = [];
  const work = (): Promise<string> =>
    new Promise((resolve) => {
      running.push(() => resolve("done"));
    });
  return { running, work };
}

async function turns(): Promise<void> {
  for (let at = 0; at < 10; at++) await Promise.resolve();
}

test("eight calls are with the store at once, the others follow in turn", async () => {
  const gate = new AdminGate(new FakeTime(), 1_000);
  const { running, work } = slowWork();
  const calls = Array.from({ length: 10 }, () => gate.run(work));
  await turns();
  expect(running).toHaveLength(8);
  running[0]?.();
  await turns();
  expect(running).toHaveLength(9);
  running[1]?.();
  await turns();
  expect(running).toHaveLength(10);
  for (const end of running) end();
  expect(await Promise.all(calls)).toEqual(Array(10).fill("done"));
  // Nothing is left over: the next eight start at once.
  for (let at = 0; at < 9; at++) void gate.run(work);
  await turns();
  expect(running).toHaveLength(18);
});

test("a call that waited two seconds is refused and never begins", async () => {
  const time = new FakeTime();
  const gate = new AdminGate(time, 10_000);
  const { running, work } = slowWork();
  for (let at = 0; at < 8; at++) void gate.run(work);
  const late = gate.run(work).catch((error: unknown) => error);
  await turns();
  time.advance(2_000);
  expect(await late).toMatchObject({ reason: "OVERLOADED" });
  running[0]?.();
  await turns();
  expect(running).toHaveLength(8);
});

test("more than a thousand waiting calls are refused at once", async () => {
  const gate = new AdminGate(new FakeTime(), 1_000);
  const { work } = slowWork();
  for (let at = 0; at < 1_008; at++) void gate.run(work);
  await expect(gate.run(work)).rejects.toMatchObject({ reason: "OVERLOADED" });
});

test("a store that does not answer in time is given up, and its place with it", async () => {
  const time = new FakeTime();
  const gate = new AdminGate(time, 1_000);
  const { work } = slowWork();
  const calls = Array.from({ length: 8 }, () => gate.run(work).catch((error: unknown) => error));
  await turns();
  time.advance(1_000);
  for (const call of calls) expect(await call).toMatchObject({ reason: "STORE_UNAVAILABLE" });
  expect(await gate.run(() => Promise.resolve("next"))).toBe("next");
});
