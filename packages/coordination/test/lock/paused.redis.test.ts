// A holder that is paused for longer than its lock lasts, and writes when it wakes.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import path from "node:path";
import { sharedRedisUrl } from "@idmint/testkit/redis";
import { expect, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { writeFenced } from "../fenced.ts";
import { sleep } from "../support.ts";

test("a paused holder's writes are refused by their token, and it learns that it lost the lock", async () => {
  const url = await sharedRedisUrl();
  const name = `paused-${randomUUID()}`;
  const ttlMs = 1_000;
  const script = path.join(import.meta.dirname, "holder-child.ts");
  const holder = spawn(
    process.execPath,
    ["-C", "idmint-source", script, url, name, String(ttlMs)],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const lines = createInterface({ input: holder.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => String((await lines.next()).value);
  try {
    const token = BigInt((await line()).replace("token ", ""));
    await using locks = createLocks({ nodes: url, ttlMs });
    // It extends its lock while it runs.
    await sleep(2 * ttlMs);
    await expect(locks.lock(name).acquire({ waitMs: 0 })).rejects.toThrow("LOCK_HELD");
    holder.kill("SIGSTOP");
    await sleep(2 * ttlMs);
    await using next = await locks.lock(name).acquire({ waitMs: 0 });
    expect(next.token > token).toBe(true);
    expect(await writeFenced(url, name, next.token)).toBe("ok");
    holder.kill("SIGCONT");
    holder.stdin.write("go\n");
    expect(await line()).toBe("written stale");
    expect(await line()).toBe("held false aborted true");
    next.assert();
  } finally {
    holder.kill("SIGKILL");
  }
});
