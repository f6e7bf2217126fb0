// PostgreSQL's data directory put back while an accept asks.
import { TestPostgres } from "@idmint/testkit/postgres";
import { onTestFinished, test } from "vitest";
import { openStore } from "../../../src/store/open-store.ts";
import { expectNoneAgain, MOMENTS } from "../ask-scene.ts";
import { postgresHarness } from "../harness.ts";
import { Poller } from "../poller.ts";

test.each(MOMENTS)(
  "put back to %s: nothing is granted twice",
  { timeout: 60_000 },
  async (moment) => {
    const postgres = await TestPostgres.start({ durable: true });
    onTestFinished(() => postgres.close());
    const { config } = await postgresHarness({}, await postgres.createDatabase());
    const operator = await openStore(config);
    onTestFinished(() => operator.close());
    const replace = async (work: () => void): Promise<void> => {
      await postgres.stop("immediate");
      work();
      await postgres.start();
    };
    const keep = async (): Promise<() => Promise<void>> => {
      let putBack: (() => void) | undefined;
      await replace(() => (putBack = postgres.backUp()));
      return () => replace(() => putBack?.());
    };
    const [busy, other] = [await Poller.open(config), await Poller.open(config)];
    await expectNoneAgain({ busy, other, operator, keep }, moment);
  },
);
