// Hostile callers of every kind we know, one after the other, while another caller goes about its work.
import path from "node:path";
import { beforeAll, expect, test } from "vitest";
import { buildPackages } from "../../bench/lib/build.ts";
import { DOORS, testDoor } from "../../src/doors.ts";
import { Child } from "../../src/fleet/child.ts";
import { until } from "../../src/fleet/until.ts";
import type { FloodResult, FloodOptions } from "./flood-child.ts";
import { isLong } from "../fleet-support.ts";
import { type Flood, type FloodName, FLOODS } from "./flood-table.ts";
import { Memory, overGrpc, startTarget, TAG, type Target, Victim, warm } from "./target.ts";

const FLOOD = path.resolve(import.meta.dirname, "flood-child.ts");
const SECONDS = isLong ? 3 : 0.5;
/** How long it is looked at how the other caller does when nobody floods. A short form judges no time. */
const QUIET_MS = isLong ? 2_000 : 0;
const AS_BEFORE_MS = isLong ? 100 : 2_000;

function floodsOf(door: (typeof DOORS)[number]): readonly FloodName[] {
  return (Object.keys(FLOODS) as FloodName[]).filter(
    (flood) => door === "fast" || !("ofFast" in FLOODS[flood]),
  );
}

/**
 * What a flood may take at its highest, more than the server had before.
 *
 * grpc-js gets less of a promise: node:http2 keeps of each stream and session what nobody can bound from outside, so that a
 * flood of what is kept open on many connections is left out.
 */
const MORE_MB = { fast: 64, "grpc-js": 160 } as const;

function moreMb(flood: FloodName, door: (typeof DOORS)[number], tls: boolean): number {
  const { mostMb }: Flood = FLOODS[flood];
  const most = door === "fast" ? mostMb?.[tls ? "tls" : "plain"] : undefined;
  return most ?? MORE_MB[door];
}

/**
 * How much longer the other caller waits for half of its answers, at most. Only in a long form: its share of the processor is
 * what the flood's process leaves, and others that run beside it. Floods of many connections are not judged by it: each of
 * these has its turn, and another caller waits for all of them. The door of grpc-js makes objects of every header before it can
 * refuse them: with huge metadata the other caller waits 70 to 280 ms for half of its answers.
 */
const SLOWER: Readonly<Record<(typeof DOORS)[number], number>> = { fast: 200, "grpc-js": 500 };

interface Told {
  readonly calls: number;
  readonly p50: number;
  readonly p99: number;
}

function told(latencies: readonly number[]): Told {
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { calls: sorted.length, p50: at(0.5), p99: at(0.99) };
}

async function pour(target: Target, flood: FloodName, tls: boolean): Promise<void> {
  const options: FloodOptions = { address: target.address, flood, tag: TAG, seconds: SECONDS, tls };
  const child = new Child(FLOOD, [JSON.stringify(options)], { name: flood });
  const exit = await child.waitForEnd(120_000);
  expect(exit, child.describe()).toEqual({ code: 0, signal: null });
  const { connected, bytes } = JSON.parse(child.stdout) as FloodResult;
  expect(connected, flood).toBeGreaterThanOrEqual(FLOODS[flood].connections);
  if ("chunks" in FLOODS[flood]) expect(bytes, flood).toBeGreaterThan(100_000);
}

async function withstand(
  target: Target,
  flood: FloodName,
  door: (typeof DOORS)[number],
  tls: boolean,
): Promise<void> {
  const victim = new Victim(overGrpc(target));
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  const quiet = told(victim.take());
  const memory = new Memory(target);
  await pour(target, flood, tls);
  const busy = told(victim.take());
  const over = performance.now();
  await until(
    `it answers as before ${flood}`,
    async () => {
      const ms = await victim.call();
      return ms !== undefined && ms < Math.max(AS_BEFORE_MS, SLOWER[door] * quiet.p50);
    },
    { withinMs: 60_000 },
  );
  const recoveryMs = performance.now() - over;
  // Whole megabytes: what is above its bound is wrong, and is not tried again as what was late is.
  const more = Math.ceil(memory.most - memory.before);
  await victim.stop();
  const where = `${flood}, ${door}${tls ? ", TLS" : ""}`;
  const figures =
    `${where}: ${busy.calls} answers, p50 ${busy.p50.toFixed(1)} (quiet ${quiet.p50.toFixed(1)}) ms, ` +
    `p99 ${busy.p99.toFixed(0)} (quiet ${quiet.p99.toFixed(0)}) ms, ${victim.errors.length} errors, ` +
    `recovery ${recoveryMs.toFixed(0)} ms, memory ${memory.before.toFixed(0)} + ${more} MB`;
  if (isLong) console.log(figures);
  expect(target.server.exit, target.server.describe()).toBeUndefined();
  expect(victim.errors, where).toEqual([]);
  expect(more, figures).toBeLessThanOrEqual(moreMb(flood, door, tls));
  const { ofFast: isOfMany = false }: Flood = FLOODS[flood];
  if (isLong && !isOfMany)
    expect(busy.p50, figures).toBeLessThanOrEqual(Math.max(1, quiet.p50) * SLOWER[door]);
}

/** A long form floods both doors, a short one that of this file. */
const TARGETS = DOORS.flatMap((door) => [
  { door, tls: false },
  { door, tls: true },
]).filter(({ door, tls }) => isLong || (door === testDoor() && !tls));

/** A long form has a server of its own for each flood, so that each is judged by itself. */
const CASES = TARGETS.flatMap((target) =>
  isLong
    ? floodsOf(target.door).map((flood) => ({ ...target, floods: [flood], name: flood }))
    : [{ ...target, floods: floodsOf(target.door), name: "all floods" }],
);

beforeAll(async () => {
  if (isLong) await buildPackages();
}, 300_000);

test.each(CASES)(
  "the server withstands $name, and another caller notices nothing ($door, TLS: $tls)",
  { timeout: 600_000 },
  async ({ door, tls, floods }) => {
    const target = await startTarget(door, tls);
    await warm(target);
    for (const flood of floods) {
      await withstand(target, flood, door, tls);
    }
  },
);
