import { randomBytes, randomFillSync } from "node:crypto";
import { hostname, totalmem, uptime } from "node:os";
import { elapsedClock } from "@idmint/core";
import * as uuids from "uuid";
import type { System } from "../service/system.ts";
import { runFor } from "../service/trace.ts";
import { nodeTimers } from "../timers.ts";

/** Random bytes are fetched ahead: fetching 16 at a time would be a large part of the cost of an allocation. */
const pool = Buffer.alloc(4_096);
const TOKEN_BYTES = 16;
let poolAt = pool.length;

function randomToken(): string {
  if (poolAt + TOKEN_BYTES > pool.length) {
    randomFillSync(pool);
    poolAt = 0;
  }
  const token = pool.toString("base64url", poolAt, poolAt + TOKEN_BYTES);
  // Whoever reads this memory later learns no token from it.
  pool.fill(0, poolAt, poolAt + TOKEN_BYTES);
  poolAt += TOKEN_BYTES;
  return token;
}

export const realSystem: System = {
  clock: elapsedClock({
    monotonicMs: () => performance.now(),
    wallMs: Date.now,
    uptimeMs: () => uptime() * 1_000,
  }),
  // What a timer does later is for nobody's call: polls and renewals go on for as long as the server runs.
  timers: { after: (delayMs, run) => nodeTimers.after(delayMs, () => runFor(undefined, run)) },
  afterTurn: (run) => {
    setImmediate(run);
  },
  idleMs: () => performance.eventLoopUtilization().idle,
  random: Math.random,
  randomBytes: (count) => randomBytes(count),
  randomToken,
  wallClock: Date.now,
  uuids,
  process: { hostname: hostname(), pid: process.pid },
};

/** The memory that this process may have, of its machine or of its container. */
export function memoryBytes(): number {
  // 0 where nothing bounds it but the machine.
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
}
