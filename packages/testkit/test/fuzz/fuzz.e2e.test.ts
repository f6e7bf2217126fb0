// A short run of all targets, with what was found before; and one in which a fault of each class is planted.
import path from "node:path";
import { expect, test } from "vitest";
import { PLANTED } from "../../fuzz/planted.ts";
import { Child, type Exit } from "../../src/fleet/child.ts";

const MAIN = path.resolve(import.meta.dirname, "../../fuzz/main.ts");
const SECONDS = process.env["IDMINT_LONG"] === "1" ? "120" : "15";
/** Whatever is drawn beyond them is left to long runs. */
const INPUTS = process.env["IDMINT_LONG"] === "1" ? "1000000" : "400";
const SEED = process.env["IDMINT_SEED"] ?? String(Date.now());
const WITHIN_MS = 3_600_000;

async function fuzz(args: string): Promise<{ exit: Exit; child: Child }> {
  const child = new Child(MAIN, ["--seed", SEED, ...args.split(" ")], { name: "fuzz" });
  return { exit: await child.waitForEnd(WITHIN_MS), child };
}

test(
  "nothing that is sent breaks a server, a reader or the command line",
  { timeout: WITHIN_MS },
  async () => {
    const { exit, child } = await fuzz(`--seconds ${SECONDS} --inputs ${INPUTS}`);
    expect(exit, child.describe()).toEqual({ code: 0, signal: null });
    console.log(child.stdout);
  },
);

test("a planted fault of each class is found", { timeout: WITHIN_MS }, async () => {
  const { exit, child } = await fuzz(
    "--planted --target grpc-fast --inputs 1500 --seconds 120 --within 3000 --hang-ms 2000",
  );
  // The last one stops the event loop, for which the watchdog ends the process.
  const faults = Object.keys(PLANTED).slice(0, -1);
  for (const fault of faults) expect(child.stdout).toContain(`${fault}: noticed`);
  expect(exit, child.describe()).toEqual({ code: null, signal: "SIGKILL" });
  expect(child.stderr).toContain("the event loop stands still");
});
