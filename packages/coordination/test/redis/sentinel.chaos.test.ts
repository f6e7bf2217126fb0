// Locks, elections and queues while the master dies behind real Sentinels.
import { SentinelGroup } from "@idmint/testkit/redis";
import { expect, test } from "vitest";
import { createElection, createLocks, createQueue } from "../../src/index.ts";
import { sleep } from "../support.ts";

/** What it answers, as soon as it does. */
async function again<T>(what: string, call: () => Promise<T>): Promise<T> {
  const end = performance.now() + 30_000;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (performance.now() > end) throw new Error(`still not: ${what}`, { cause: error });
    }
    await sleep(50);
  }
}

test(
  "locks, elections and queues go on at the replica that was promoted, with higher tokens and terms",
  { timeout: 240_000 },
  async () => {
    await using group = await SentinelGroup.start();
    const { url } = group;
    await using locks = createLocks({ nodes: url });
    await using queue = createQueue({ redis: url, name: "mail" });
    await using election = createElection({ node: url, name: "cleaner", ttlMs: 2_000 });
    const lock = await again("a lock", () => locks.lock("reports").acquire({ waitMs: 1_000 }));
    const leadership = await election.campaign();
    await queue.push("before");
    await group.killMaster();
    // Of what the replica had not heard it knows nothing; whatever it gives is above all that was given before.
    const later = await again("a lock", () => locks.lock("payments").acquire({ waitMs: 500 }));
    expect(later.token).toBeGreaterThan(lock.token);
    await leadership.resign();
    const next = await election.campaign();
    expect(next.term).toBeGreaterThan(leadership.term);
    await again("a message is pushed", () => queue.push("after"));
    const taken = await again("a message is taken", () => queue.take({ timeoutMs: 10_000 }));
    expect(["before", "after"]).toContain(taken?.data);
    await taken?.ack();
    await later.release();
    await lock.release().catch(() => undefined);
  },
);
