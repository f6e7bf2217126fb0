import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { setV8Flags, v8Flags } from "../src/v8-flags.ts";

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
