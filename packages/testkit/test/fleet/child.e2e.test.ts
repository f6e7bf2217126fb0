// The processes of a test must not outlive it, whatever ends it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { Child, killChildren } from "../../src/fleet/child.ts";
import { until } from "../../src/fleet/until.ts";

afterAll(killChildren);

const sleeper = path.join(import.meta.dirname, "sleeper-child.ts");

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test.for(["SIGKILL", "SIGTERM"] as const)(
  "a process ends when the one that began it is ended by %s, even while it is stopped",
  async (signal) => {
    const parent = spawn(
      process.execPath,
      ["-C", "idmint-source", path.join(import.meta.dirname, "parent-child.ts"), sleeper],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const [text] = (await once(parent.stdout.setEncoding("utf8"), "data")) as [string];
    const pids = text.trim().split(" ").map(Number);
    expect(pids.map(lives)).toEqual([true, true]);
    process.kill(pids[1]!, "SIGSTOP");
    parent.kill(signal);
    await until("both are gone", () => !pids.some(lives));
  },
);

test("a process tells how it ended and what it said", async () => {
  const child = new Child(sleeper, ["7"], { name: "sleeper" });
  await child.waitForOutput("asleep");
  child.signal("SIGTERM");
  expect(await child.waitForEnd(5_000)).toEqual({ code: 7, signal: null });
  expect(child.stdout).toBe("asleep\n");
});

test("waiting for words of a process that ended fails at once, with its last words", async () => {
  const child = new Child(sleeper, ["no number"], { name: "sleeper" });
  await expect(child.waitForOutput("asleep")).rejects.toThrow("not an exit code");
});
