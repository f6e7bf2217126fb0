// What a command that cannot be undone shows and asks, on real stores and a real terminal.
import { spawn } from "node:child_process";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { cleanEnv, CLI, cli, temporaryFolder, untilEnd } from "../spawn.ts";
import type { CommandResult } from "../support.ts";

/** Two stores with one tag each, whose floor is 1. */
async function twoStores(): Promise<{ first: string; second: string }> {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const files = ["first.db", "second.db"].map((name) => path.join(folder, name));
  for (const file of files) {
    const { exitCode, err } = await cli(["migrate", "--store-url", `sqlite:${file}`]);
    expect(exitCode, err).toBe(0);
  }
  const [first = "", second = ""] = files;
  return { first, second };
}

/** The store's history: another one after each accept. */
function historyOf(file: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return database.prepare("SELECT * FROM store").get();
  } finally {
    database.close();
  }
}

/** Runs the CLI on a terminal of its own, where somebody types. */
function onTerminal(args: readonly string[], typed: string): Promise<CommandResult> {
  const line = [...CLI, ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["-qefc", line, "/dev/null"], {
    env: cleanEnv(),
    stdio: ["pipe", "pipe", "pipe"],
  });
  let seen = "";
  child.stdout.on("data", (chunk: Buffer) => {
    const hadAsked = seen.includes("Type yes");
    seen += chunk.toString();
    if (!hadAsked && seen.includes("Type yes")) child.stdin.write(typed);
  });
  return untilEnd(child);
}

test("store accept changes the store of the flag, not that of the environment, and names it", async () => {
  const { first, second } = await twoStores();
  const before = [historyOf(first), historyOf(second)];
  const env = { IDMINT_STORE_URL: `sqlite:${first}` };
  const args = ["store", "accept", "--gap", "5", "--store-url", `sqlite:${second}`];
  const refused = await cli(args, { env });
  expect([refused.exitCode, refused.out]).toEqual([2, ""]);
  expect(refused.err).toContain(`--yes is required`);
  expect(refused.err).toContain(`(store: sqlite:${second})`);
  expect([historyOf(first), historyOf(second)]).toEqual(before);
  const accepted = await cli([...args, "--yes"], { env });
  expect([accepted.exitCode, accepted.err.split("\n")[0]]).toEqual([
    0,
    `idmint: store: sqlite:${second}`,
  ]);
  expect(historyOf(first)).toEqual(before[0]);
  expect(historyOf(second)).not.toEqual(before[1]);
});

test("store accept --new-store gives a copy an id of its own; another accept keeps it", async () => {
  const { first } = await twoStores();
  const idOf = (): unknown => (historyOf(first) as { readonly store_id: string }).store_id;
  const before = idOf();
  const args = ["store", "accept", "--gap", "5", "--yes", "--store-url", `sqlite:${first}`];
  expect((await cli(args)).exitCode).toBe(0);
  expect(idOf()).toBe(before);
  expect((await cli([...args, "--new-store"])).exitCode).toBe(0);
  expect(idOf()).not.toBe(before);
});

test("store adopt names the store of before, and wants to be told to", async () => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const flags = ["--snowflake-cache-file", path.join(folder, "cache")];
  const refused = await cli(["store", "adopt", "b", ...flags]);
  expect(refused.err).toContain("makes the server belong to store b from its next start on");
  expect((await cli(["store", "adopt", "a", ...flags, "--yes"])).out).toBe("belongs to a\n");
  const adopted = await cli(["store", "adopt", "b", ...flags, "--yes", "--json"]);
  expect(JSON.parse(adopted.out)).toMatchObject({ storeId: "b", before: "a" });
  const without = await cli(["store", "adopt", "b", "--yes"]);
  expect([without.exitCode, without.err]).toEqual([2, expect.stringContaining("is required")]);
});

test("on a terminal store accept asks, and does nothing after anything but yes", async () => {
  const { first } = await twoStores();
  const before = historyOf(first);
  const args = ["store", "accept", "--gap", "5", "--store-url", `sqlite:${first}`];
  // Ctrl-C and Ctrl-D are what the terminal makes of these.
  for (const typed of ["no\n", "\u0003", "\u0004"]) {
    const { exitCode, out } = await onTerminal(args, typed);
    expect([typed, exitCode]).toEqual([typed, 130]);
    expect(out).toContain(`store: sqlite:${first}`);
    expect(out).toContain("nothing was changed");
    expect(historyOf(first)).toEqual(before);
  }
  const { exitCode, out } = await onTerminal(args, "yes\n");
  expect([exitCode, out]).toEqual([0, expect.stringContaining("accepted: the floors of 0 tags")]);
  expect(historyOf(first)).not.toEqual(before);
});
