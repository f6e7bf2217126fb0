import { walkStore } from "@idmint/testkit/store-model";
import { test } from "vitest";
import { sqliteHarness } from "./harness.ts";

test("a SQLite store does what the reference does, step by step, from several handles", async () => {
  await walkStore(sqliteHarness, { runs: 15, steps: 120 });
});
