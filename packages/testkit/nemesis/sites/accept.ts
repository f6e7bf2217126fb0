// What an operator does when a store went back.
import { setTimeout as pause } from "node:timers/promises";
import { IdmintError } from "@idmint/client";
import { until } from "../../src/fleet/until.ts";
import type { Site } from "./site.ts";

const GAP = "1000000";
const REFUSED_MS = 60_000;
/** A server that can prove it needs two polls. */
const PROOF_MS = 10_000;

/** Whether a server says that the store went back. */
async function isRefused(site: Site): Promise<boolean> {
  for (const { server } of site.servers) {
    if (!server.listens) continue;
    const thrown = await server.api.id("bills").catch((error: unknown) => error);
    if (thrown instanceof IdmintError && thrown.reason === "STORE_EPOCH_CHANGED") return true;
  }
  return false;
}

/** Waits until a server has noticed that the store went back. */
export async function refused(site: Site): Promise<void> {
  const what = `${site.name}: a server refuses the store`;
  await until(what, () => isRefused(site), { withinMs: REFUSED_MS, everyMs: 100 });
}

/** Again, as the command says, when the store does not answer at that moment. */
export async function accept(site: Site, ...flags: readonly string[]): Promise<void> {
  const run = async (): Promise<true> => {
    await site.fleet.cli("store", "accept", "--gap", GAP, "--yes", ...flags);
    return true;
  };
  await until(`${site.name}: the store is accepted`, run, { withinMs: REFUSED_MS, everyMs: 500 });
  // Snowflakes begin when the clock has reached what the accept skipped.
  site.note("operator", "accept", "clicks");
}

/**
 * After a fail-over servers go on by themselves, if they were witnesses that the standby had everything. Those that were started a
 * moment ago were not, and then an operator has to say so.
 */
export async function acceptUnlessProved(site: Site, ...flags: readonly string[]): Promise<void> {
  const issues = site.issues();
  for (let isOver = false; !isOver;) {
    isOver = await Promise.race([issues.then(() => true), pause(PROOF_MS, false)]);
    if (!isOver && (await isRefused(site))) await accept(site, ...flags);
  }
}
