// Hostile callers of every kind we know, one after the other, while another caller goes about its work.
import path from "node:path";
import { expect, test } from "vitest";
import { DEFAULT_DOOR, doorEnv, DOORS } from "../src/doors.ts";
import { buildPackages } from "../bench/lib/build.ts";
import { Child } from "../src/fleet/child.ts";
import { until } from "../src/fleet/until.ts";
import type { FloodResult, FloodWish } from "./child/flood.ts";
import { isLong } from "./fleet-support.ts";
import { type FloodName, FLOODS } from "./floods/flood-table.ts";
import { memoryOf, startTarget, TAG, type Target, Victim } from "./floods/target.ts";

const FLOOD = path.resolve(import.meta.dirname, "child/flood.ts");
const SECONDS = isLong ? 3 : 0.5;
/**
 * A long form runs what is published, which takes 50 MB less than its source does. Beside other tests the garbage collector
 * has less time. Without the division of work it is 500 and more.
 */
const MAX_MEMORY_MB = isLong ? 256 : 320;
const RECOVERY_MS = isLong ? 2_000 : 20_000;
const NAMES = Object.keys(FLOODS) as FloodName[];

async function withstand(
  target: Target,
  flood: FloodName,
  door: string,
  tls: boolean,
): Promise<void> {
  const victim = new Victim(target);
  const wish: FloodWish = { address: target.address, flood, tag: TAG, seconds: SECONDS, tls };
  const child = new Child(FLOOD, [JSON.stringify(wish)], { name: flood });
  const exit = await child.waitForEnd(120_000);
  const over = performance.now();
  await until(
    `it answers as before ${flood}`,
    async () => ((await victim.call()) ?? Infinity) < (isLong ? 100 : 2_000),
    { withinMs: 60_000 },
  );
  const recoveryMs = performance.now() - over;
  await victim.stop();
  expect(exit, child.describe()).toEqual({ code: 0, signal: null });
  const { connected, bytes } = JSON.parse(child.stdout) as FloodResult;
  expect(connected, flood).toBeGreaterThanOrEqual(FLOODS[flood].connections);
  if ("chunks" in FLOODS[flood]) expect(bytes, flood).toBeGreaterThan(100_000);
  expect(target.server.exit, target.server.describe()).toBeUndefined();
  const memory = memoryOf(target, "VmHWM");
  const sorted = victim.latencies.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(0);
  if (isLong) {
    console.log(
      `${flood}, ${door}${tls ? ", TLS" : ""}: ${sorted.length} answers, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ` +
        `recovery ${recoveryMs.toFixed(0)} ms, memory ${memory.toFixed(0)} MB, ${connected} connections`,
    );
  }
  expect(victim.errors, flood).toEqual([]);
  expect(memory, flood).toBeLessThanOrEqual(MAX_MEMORY_MB);
  expect(recoveryMs, flood).toBeLessThanOrEqual(RECOVERY_MS);
}

const { IDMINT_GRPC_DOOR: OWN = DEFAULT_DOOR } = doorEnv();

/** A long form floods both doors, a short one that of this file. */
const TARGETS = DOORS.flatMap((door) => [
  { door, tls: false },
  { door, tls: true },
]).filter(({ door, tls }) => isLong || (door === OWN && !tls));

test.each(TARGETS)(
  "no flood takes the server from another caller, or more memory than it has ($door, TLS: $tls)",
  { timeout: 600_000 },
  async ({ door, tls }) => {
    if (isLong && !tls) await buildPackages();
    // A long form has a server of its own for each flood, so that each is judged by itself.
    let target = await startTarget(door, tls);
    for (const [at, flood] of NAMES.entries()) {
      // oxlint-disable-next-line no-await-in-loop
      if (isLong && at > 0) target = await startTarget(door, tls);
      // oxlint-disable-next-line no-await-in-loop
      await withstand(target, flood, door, tls);
    }
  },
);
