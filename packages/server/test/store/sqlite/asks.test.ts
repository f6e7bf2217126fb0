// A SQLite file written over by an earlier copy while an accept asks.
import { onTestFinished, test } from "vitest";
import { openStore } from "../../../src/store/open-store.ts";
import { expectNoneAgain, MOMENTS } from "../ask-scene.ts";
import { sqliteHarness } from "../harness.ts";
import { Poller } from "../poller.ts";
import { backUp, putBack } from "./backups.ts";

test.each(MOMENTS)("put back to %s: nothing is granted twice", async (moment) => {
  const harness = await sqliteHarness();
  onTestFinished(() => harness.remove());
  const operator = await openStore(harness.config);
  onTestFinished(() => operator.close());
  const keep = async (): Promise<() => Promise<void>> => {
    const backup = backUp(harness);
    return async () => putBack(harness, backup);
  };
  const [busy, other] = [await Poller.open(harness.config), await Poller.open(harness.config)];
  await expectNoneAgain({ busy, other, operator, keep }, moment);
});
