import { walkStore } from "@idmint/testkit/store-model";
import { test } from "vitest";
import { postgresHarness } from "./harness.ts";

test("a PostgreSQL store does what the reference does, step by step, from several handles", async () => {
  await walkStore(postgresHarness, { runs: 15, steps: 120 });
});
