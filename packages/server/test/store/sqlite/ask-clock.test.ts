// An ask that nobody ended, when the clock of the store is set back.
import { ASK_MS } from "@idmint/core/server";
import { expect, onTestFinished, test, vi } from "vitest";
import { open } from "../../../src/store/sqlite/store.ts";
import { sqliteHarness } from "../harness.ts";

vi.setConfig({ testTimeout: 30_000 });

test("a clock that is set back does not keep a store from being accepted", async () => {
  const harness = await sqliteHarness();
  onTestFinished(() => harness.remove());
  const clock = new SharedArrayBuffer(8);
  const setBack = (ms: number) => Atomics.store(new BigInt64Array(clock), 0, BigInt(-ms));
  const store = await open(harness.config, undefined, clock);
  onTestFinished(() => store.close());
  // Whoever asked was killed.
  expect(await store.askForClaims("one", ASK_MS)).toMatchObject({ outcome: "asked" });
  // A small step, as time services make them, ends no ask.
  setBack(ASK_MS / 2);
  expect(await store.askForClaims("two", ASK_MS)).toMatchObject({ outcome: "busy" });
  setBack(86_400_000);
  expect(await store.askForClaims("two", ASK_MS)).toMatchObject({ outcome: "asked" });
  expect((await store.hearClaims("one", { number: 1, answered: 0 })).isStanding).toBe(false);
});
