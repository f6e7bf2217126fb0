// What every store must do, whatever it is made of. A backend's test file registers this and adds cases of its own.
import type { Store } from "@idmint/core/server";
import { test } from "vitest";
import { acceptCases, changeCases, closeCases, concurrencyCases } from "./suite-changes.ts";
import { giveBackCases, grantCases } from "./suite-grants.ts";
import { operatorCases, tagCases } from "./suite-tags.ts";
import { auditCases } from "./suite-audit.ts";
import { claimCases } from "./suite-claims.ts";
import { kindCases } from "./suite-kinds.ts";
import { ledgerCases } from "./suite-ledger.ts";
import { markCases } from "./suite-marks.ts";
import { issuingCases } from "./suite-issuing.ts";
import { nodeCases } from "./suite-nodes.ts";
import { periodCases } from "./suite-periods.ts";
import { raiseCases } from "./suite-raises.ts";
import { readCases } from "./suite-reads.ts";
import { sequenceCases } from "./suite-sequences.ts";
import { tokenCases } from "./suite-tokens.ts";
import type { StoreHarness, Suite } from "./support.ts";
import { workerSuite } from "../workers/suite.ts";

export * from "./support.ts";
export {
  leaseOf,
  type OpenRegistry,
  type RegistryHarness,
  renewalOf,
  snowflakeOf,
} from "../workers/support.ts";
export { workerSuite };
export { tokenOf } from "./suite-tokens.ts";
export { auditOf, noteOf } from "./suite-audit.ts";
export { nodeOf, renewalOf as nodeRenewalOf } from "./suite-nodes.ts";

/** Real stores write to a disk, and start threads and connections. */
const TIMEOUT_MS = 30_000;

/** Registers the suite; `makeStore` is called once a test. */
export function storeSuite(name: string, makeStore: () => Promise<StoreHarness>): void {
  const suite: Suite = (title, run) => {
    test(`${name}: ${title}`, { timeout: TIMEOUT_MS }, async () => {
      const harness = await makeStore();
      const handles: Store[] = [];
      const open = async (): Promise<Store> => {
        const handle = await harness.open();
        handles.push(handle);
        return handle;
      };
      try {
        await run(await open(), open, harness);
      } finally {
        await Promise.all(handles.map((handle) => handle.close()));
        await harness.remove();
      }
    });
  };
  grantCases(suite);
  giveBackCases(suite);
  sequenceCases(suite);
  periodCases(suite);
  raiseCases(suite);
  markCases(suite);
  ledgerCases(suite);
  tokenCases(suite);
  kindCases(suite);
  tagCases(suite);
  operatorCases(suite);
  changeCases(suite);
  issuingCases(suite);
  auditCases(suite);
  nodeCases(suite);
  readCases(suite);
  acceptCases(suite);
  claimCases(suite);
  concurrencyCases(suite);
  closeCases(suite);
  workerSuite(name, async () => {
    const harness = await makeStore();
    return { ...harness, place: { registry: "STORE" }, pass: (ms) => harness.passWorkers(ms) };
  });
}
