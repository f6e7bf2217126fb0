import { WALK_TIMEOUT_MS, walkRegistry, walkStore } from "@idmint/testkit/store-model";
import type { RegistryHarness } from "@idmint/testkit/store-suite";
import { test } from "vitest";
import { etcdHarness } from "./harness.ts";

async function makeRegistry(): Promise<RegistryHarness> {
  const harness = await etcdHarness();
  return { ...harness, place: { registry: "STORE" }, pass: (ms) => harness.passWorkers(ms) };
}

test(
  "a store in etcd answers as one in memory does, of several servers, of calls nobody heard, put back",
  { timeout: WALK_TIMEOUT_MS },
  async () => {
    await walkStore(etcdHarness, { runs: 6, steps: 120 });
  },
);

test("the registry of worker ids in etcd leases as the reference does, from several handles", async () => {
  await walkRegistry(makeRegistry, { runs: 6, steps: 80 });
});
