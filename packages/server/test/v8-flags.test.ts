import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { mayGiveBack, mayGrow, setV8Flags, v8Flags } from "../src/v8-flags.ts";

const ACTIVE = { pretenuring: "active", heapGrowth: "active" };

test("V8 takes the flags, and says so by its tag", () => {
  expect(setV8Flags()).toEqual(ACTIVE);
  expect(v8Flags()).toEqual(ACTIVE);
});

test("the flags are set in silence, and are active too where the command line has them", () => {
  const file = fileURLToPath(new URL("../src/v8-flags.ts", import.meta.url));
  const code = `import { setV8Flags as set } from ${JSON.stringify(file)}; console.log(JSON.stringify([set(), set()]));`;
  for (const flags of [
    [],
    ["--no-allocation-site-pretenuring"],
    ["--allocation-site-pretenuring"],
    ["--heap-growing-percent=50"],
  ]) {
    const args = [...flags, "-C", "idmint-source", "--input-type=module", "-e", code];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect([stdout, stderr]).toEqual([`${JSON.stringify([ACTIVE, ACTIVE])}\n`, ""]);
  }
});

test("the young generation grows where a server has much to do, and never above 32 MiB", () => {
  const MiB = 2 ** 20;
  expect(mayGrow(2 * MiB, 0.4)).toBe(false);
  expect(mayGrow(2 * MiB, 0.6)).toBe(true);
  expect(mayGrow(16 * MiB, 1)).toBe(true);
  expect(mayGrow(16 * MiB + 1, 1)).toBe(false);
});

test("the young generation of a process that lies idle stays as it is, and grows in one that is busy", () => {
  const file = fileURLToPath(new URL("../src/v8-flags.ts", import.meta.url));
  const code = `
    import { getHeapSpaceStatistics } from "node:v8";
    import { setTimeout as sleep } from "node:timers/promises";
    import { holdYoungGeneration } from ${JSON.stringify(file)};
    holdYoungGeneration();
    const young = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space").space_size;
    const most = { idle: 0, busy: 0 };
    let kept = [];
    function survive(ms) {
      for (const until = Date.now() + ms; Date.now() < until; ) {
        kept.push(new Array(1_000).fill({}));
        if (kept.length > 4_000) kept = [];
      }
    }
    // All in one turn: nobody has looked yet.
    survive(100);
    most.idle = young();
    for (let round = 0; round < 15; round++) {
      survive(90);
      await sleep(1);
      most.busy = Math.max(most.busy, young());
    }
    console.log(JSON.stringify(most));`;
  const args = ["-C", "idmint-source", "--input-type=module", "-e", code];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stderr).toBe("");
  const { idle, busy } = JSON.parse(stdout) as { idle: number; busy: number };
  const MiB = 2 ** 20;
  expect(idle).toBeLessThanOrEqual(4 * MiB);
  expect(busy).toBeGreaterThanOrEqual(8 * MiB);
});

test("memory is given back where there is some, some time after there was much to do, and seldom", () => {
  const MiB = 2 ** 20;
  expect(mayGiveBack(32 * MiB, 10_000, 30_000)).toBe(true);
  expect(mayGiveBack(8 * MiB, 10_000, 30_000)).toBe(false);
  expect(mayGiveBack(32 * MiB, 9_999, 30_000)).toBe(false);
  expect(mayGiveBack(32 * MiB, 10_000, 29_999)).toBe(false);
});

test("what a busy time took of memory goes back to the system", () => {
  const file = fileURLToPath(new URL("../src/v8-flags.ts", import.meta.url));
  const code = `
    import { setTimeout as sleep } from "node:timers/promises";
    import { giveMemoryBack } from ${JSON.stringify(file)};
    let kept = [];
    for (let i = 0; i < 16_000; i++) kept.push(new Array(1_000).fill({}));
    kept = [];
    const before = process.memoryUsage.rss();
    giveMemoryBack();
    let after = before;
    for (let look = 0; look < 200 && after > before - 2 ** 26; look++) {
      await sleep(50);
      after = process.memoryUsage.rss();
    }
    console.log(before - after);`;
  const args = ["-C", "idmint-source", "--input-type=module", "-e", code];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(Number(stdout)).toBeGreaterThan(2 ** 26);
});
