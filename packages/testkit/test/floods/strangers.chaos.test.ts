// Strangers without a token who begin as much as they may on as many connections as there may be, while callers of both doors go
// about their work.
import path from "node:path";
import { beforeAll, expect, test } from "vitest";
import { buildPackages } from "../../bench/lib/build.ts";
import { Child } from "../../src/fleet/child.ts";
import { until } from "../../src/fleet/until.ts";
import type { FloodResult, FloodOptions } from "./flood-child.ts";
import { isLong } from "../fleet-support.ts";
import { type StrangerName, STRANGERS } from "./strangers.ts";
import { Memory, overGrpc, startTarget, TAG, type Target, Victim, warm } from "./target.ts";

const FLOOD = path.resolve(import.meta.dirname, "flood-child.ts");
/** As many as limits.connections is unless it is set. Each process has a limit of open files, and an address of its own. */
const CONNECTIONS = isLong ? 10_000 : 600;
const PROCESSES = isLong ? 4 : 1;
const CONNECT_MS = 150_000;
const SECONDS = isLong ? 10 : 0.3;
/** A short form is done with soon; a long one leaves some of the processor to those who must not notice. */
const AGAIN_MS = isLong ? 1_000 : 100;
/** How much more than as many connections that do nothing these may take, in MB. */
const BEYOND_IDLE_MB = { plain: 160, tls: 200 } as const;
/** How much more than before 10,000 of them may take. Of HTTP over TLS, those that do nothing take 650: Node's buffers. */
const MOST_MB = {
  grpc: { plain: 200, tls: 700 },
  http: { plain: 200, tls: 750 },
} as const;
const LEFT_MB = 64;
const LEFT_WITHIN_MS = isLong ? 30_000 : 500;
/** What the allocator keeps is used by the next flood. */
const SECOND_SHARE = 1.05;

const NOTHING = { grpc: "gRPC that does nothing", http: "HTTP that does nothing" } as const;
const HOSTILE = {
  grpc: ["tables, headers and frames"],
  http: ["half headers", "half bodies", "small chunks"],
} as const satisfies Record<string, readonly StrangerName[]>;

/** Fulfils with the most memory that the server had meanwhile, in MB. */
async function pour(target: Target, flood: StrangerName, tls: boolean): Promise<number> {
  const memory = new Memory(target);
  const children = Array.from({ length: PROCESSES }, (_, at) => {
    const options: FloodOptions = {
      address: STRANGERS[flood].door === "grpc" ? target.address : target.httpAddress,
      flood,
      tag: TAG,
      seconds: SECONDS,
      tls,
      connections: CONNECTIONS / PROCESSES,
      from: `127.0.2.${at + 1}`,
      againMs: AGAIN_MS,
      connectMs: CONNECT_MS,
    };
    return new Child(FLOOD, [JSON.stringify(options)], { name: flood });
  });
  let connected = 0;
  for (const child of children) {
    const exit = await child.waitForEnd(240_000);
    expect(exit, child.describe()).toEqual({ code: 0, signal: null });
    connected += (JSON.parse(child.stdout) as FloodResult).connected;
  }
  expect(connected, flood).toBeGreaterThanOrEqual(CONNECTIONS);
  return memory.most;
}

/** The memory that is left, in MB; undefined: it is not given back soon. */
async function leftOf(memory: Memory): Promise<number | undefined> {
  const isLeft = (): number | false => memory.now <= memory.before + LEFT_MB && memory.now;
  try {
    return await until("memory is given back", isLeft, { withinMs: LEFT_WITHIN_MS, everyMs: 500 });
  } catch {
    return undefined;
  }
}

beforeAll(async () => {
  if (isLong) await buildPackages();
}, 300_000);

interface Case {
  readonly door: "grpc" | "http";
  readonly tls: boolean;
  readonly floods: readonly StrangerName[];
}

/** A long form has a server of its own for each flood, so that each is judged by itself. */
const CASES = (["grpc", "http"] as const).flatMap((door) =>
  [false, true].flatMap((tls): readonly Case[] =>
    isLong
      ? HOSTILE[door].map((flood) => ({ door, tls, floods: [flood] }))
      : [{ door, tls, floods: HOSTILE[door] }],
  ),
);

async function withstand(
  target: Target,
  memory: Memory,
  { door, flood, idle, tls }: Pick<Case, "door" | "tls"> & { flood: StrangerName; idle: number },
): Promise<void> {
  const victims = [new Victim(overGrpc(target)), new Victim(target.overHttp)];
  const most = await pour(target, flood, tls);
  const left = await leftOf(memory);
  const again = left === undefined ? await pour(target, flood, tls) : undefined;
  const told: string[] = [];
  for (const victim of victims) {
    await victim.stop();
    const sorted = victim.latencies.toSorted((a, b) => a - b);
    const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? 0;
    told.push(`${sorted.length} answers, p99 ${p99.toFixed(0)} ms`);
  }
  const more = (mb: number | undefined): string =>
    mb === undefined ? "-" : `${Math.round(mb - memory.before)}`;
  const figures =
    `${flood}, ${CONNECTIONS} connections${tls ? ", TLS" : ""}: ${Math.round(memory.before)} MB, idle + ${more(idle)}, ` +
    `flood + ${more(most)}, left + ${more(left)}, again + ${more(again)}; gRPC: ${told[0]}; HTTP: ${told[1]}`;
  if (isLong) console.log(figures);
  expect(target.server.exit, target.server.describe()).toBeUndefined();
  expect(victims.map(({ errors }) => errors)).toEqual([[], []]);
  const how = tls ? "tls" : "plain";
  expect(most - idle, figures).toBeLessThanOrEqual(BEYOND_IDLE_MB[how]);
  if (isLong) {
    expect(most - memory.before, figures).toBeLessThanOrEqual(MOST_MB[door][how]);
  }
  if (again === undefined) return;
  // A short flood does not go on for so long that nothing more could come.
  const mostAgain = isLong ? most * SECOND_SHARE : idle + BEYOND_IDLE_MB[how];
  expect(again, figures).toBeLessThanOrEqual(mostAgain);
}

test.each(CASES)(
  "strangers take a bounded part of the memory of $door, and give it back: $floods (TLS: $tls)",
  { timeout: 1_200_000 },
  async ({ door, tls, floods }) => {
    const target = await startTarget("fast", tls);
    await warm(target);
    const memory = new Memory(target);
    const idle = await pour(target, NOTHING[door], tls);
    for (const flood of floods) {
      await withstand(target, memory, { door, flood, idle, tls });
    }
  },
);
