// A store put back together with its witness: everything has the contents of before, in the files of now.
import { chownSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { granted, refusal, settingsOf, tokenOf, wish } from "@idmint/testkit/store-suite";
import { expect, test, vi } from "vitest";
import { storeStatus } from "../../../../src/store/open-store.ts";
import { acceptAtOnce } from "../../accept.ts";
import { monotonicMs } from "../../../../src/store/sqlite/file/connection.ts";
import type { Database } from "../../../../src/store/sqlite/file/database.ts";
import { grant } from "../../../../src/store/sqlite/grant.ts";
import { Witness } from "../../../../src/store/sqlite/file/witness.ts";
import { openDatabase } from "../../../../src/store/sqlite/open.ts";
import { backUp, BESIDE, putBack } from "../backups.ts";
import { GrantChild, run, sqlInAnotherProcess } from "../../children.ts";
import { inMountNamespace } from "./mount-namespace.ts";
import { type SqliteHarness, sqliteHarness } from "../../harness.ts";

// Every handle starts a thread, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

function grantHere(database: Database): void {
  const [one] = grant(database, monotonicMs() + 5_000, [wish("t")]);
  expect(one?.outcome).toBe("granted");
}

async function harnessWithTag(): Promise<SqliteHarness> {
  const harness = await sqliteHarness();
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  await store.close();
  return harness;
}

test("a backup of file and witness, made while nobody served, is recognised when both are written back", async () => {
  const harness = await harnessWithTag();
  const backup = backUp(harness);
  const later = await harness.open();
  for (let i = 0; i < 20; i++) await granted(later, "t");
  await later.close();
  const inodes = ["", ".witness"].map((suffix) => statSync(`${harness.config.path}${suffix}`).ino);
  putBack(harness, backup);
  // The files are the same ones; only what lies in them is of before.
  expect(["", ".witness"].map((suffix) => statSync(`${harness.config.path}${suffix}`).ino)).toEqual(
    inodes,
  );
  const fresh = await harness.open();
  expect(await refusal(fresh, "t")).toBe("STORE_EPOCH_CHANGED");
  expect((await storeStatus(harness.config)).fenced).toMatch(/do not belong together/);
  await acceptAtOnce(harness.config, 1_000n);
  expect((await granted(fresh, "t")).base).toBe(1_011n);
  await fresh.close();
  const again = await harness.open();
  expect((await granted(again, "t")).base).toBe(1_021n);
  await again.close();
  await harness.remove();
});

test("a backup made while a server runs is recognised after the witness took its turn, which it does each minute", async () => {
  const harness = await harnessWithTag();
  vi.useFakeTimers({ toFake: ["hrtime"] });
  try {
    const { database } = openDatabase(harness.config);
    grantHere(database);
    const backup = backUp(harness);
    for (let i = 0; i < 5; i++) grantHere(database);
    const before = statSync(`${harness.config.path}.witness`).ino;
    vi.advanceTimersByTime(59_000);
    grantHere(database);
    expect(statSync(`${harness.config.path}.witness`).ino).toBe(before);
    vi.advanceTimersByTime(1_000);
    grantHere(database);
    expect(statSync(`${harness.config.path}.witness`).ino).not.toBe(before);
    database.close();
    putBack(harness, backup);
    expect((await storeStatus(harness.config)).fenced).toMatch(/do not belong together/);
  } finally {
    vi.useRealTimers();
    await harness.remove();
  }
});

test("under a server that runs, file and witness written back are refused by what it has seen", async () => {
  const harness = await harnessWithTag();
  const running = await harness.open();
  await granted(running, "t");
  const backup = backUp(harness);
  await granted(running, "t");
  // As a tool that writes file after file does it, in whatever order.
  putBack(harness, backup);
  expect(await refusal(running, "t")).toBe("STORE_EPOCH_CHANGED");
  await acceptAtOnce(harness.config, 1_000n);
  expect((await granted(running, "t")).base).toBeGreaterThan(1_000n);
  await running.close();
  await harness.remove();
});

test("what root makes beside the store of another user is that user's", async () => {
  expect(process.getuid?.(), "only root gives files to another user: run this test as root").toBe(
    0,
  );
  const harness = await harnessWithTag();
  for (const suffix of BESIDE) {
    if (existsSync(`${harness.config.path}${suffix}`)) {
      chownSync(`${harness.config.path}${suffix}`, 4_242, 4_243);
    }
  }
  rmSync(`${harness.config.path}.witness`);
  await acceptAtOnce(harness.config, 0n);
  for (const suffix of [".witness", ".witness.next"]) {
    const { uid, gid, mode } = statSync(`${harness.config.path}${suffix}`);
    expect([uid, gid, mode & 0o777]).toEqual([4_242, 4_243, 0o600]);
  }
  await harness.remove();
});

test("a store without its witness is refused by who has never seen it, and gets another by who has", async () => {
  const harness = await harnessWithTag();
  const running = await harness.open();
  await granted(running, "t");
  const witness = `${harness.config.path}.witness`;
  rmSync(witness);
  const fresh = await harness.open();
  expect(await refusal(fresh, "t")).toBe("STORE_EPOCH_CHANGED");
  expect((await storeStatus(harness.config)).fenced).toMatch(/without its witness/);
  await granted(running, "t");
  await granted(running, "t");
  expect(existsSync(witness)).toBe(true);
  await granted(fresh, "t");
  await Promise.all([running.close(), fresh.close()]);
  rmSync(witness);
  const later = await harness.open();
  expect(await refusal(later, "t")).toBe("STORE_EPOCH_CHANGED");
  await acceptAtOnce(harness.config, 1_000n);
  expect((await granted(later, "t")).base).toBeGreaterThan(1_000n);
  await later.close();
  await harness.remove();
});

test("a token that is made on a store that went back does not hide that it did", async () => {
  const harness = await harnessWithTag();
  const { path: file } = harness.config;
  const running = await harness.open();
  await granted(running, "t");
  sqlInAnotherProcess(file, "PRAGMA wal_checkpoint(TRUNCATE)");
  const backup = path.join(harness.folder, "alone");
  run("cp", file, backup);
  for (let i = 0; i < 5; i++) await granted(running, "t");
  await running.close();
  run("cp", backup, file);
  // The witness is the same file still: it tells by how far it saw the store come.
  const first = await harness.open();
  expect(await first.addToken(tokenOf("a"))).toBe(true);
  expect(await refusal(first, "t")).toBe("STORE_EPOCH_CHANGED");
  const fresh = await harness.open();
  expect(await refusal(fresh, "t")).toBe("STORE_EPOCH_CHANGED");
  await Promise.all([first.close(), fresh.close()]);
  await harness.remove();
});

test("a file that is not the one made ahead is neither put in place nor written to", async () => {
  const harness = await sqliteHarness();
  const witness = new Witness(harness.config.path);
  const mark = { storeId: "s", generation: 0n, progress: 1n };
  const made = witness.makeAhead(mark);
  const next = `${witness.path}.next`;
  rmSync(next);
  run("cp", "/dev/null", next);
  expect(witness.putInPlace(made, mark)).toBe(false);
  expect([statSync(next).size, statSync(witness.path).size]).toEqual([0, 160]);
  await harness.remove();
});

test("a snapshot beside a witness that has taken its turn meanwhile is taken again", async () => {
  const harness = await harnessWithTag();
  const { database } = openDatabase(harness.config);
  // oxlint-disable-next-line typescript/unbound-method
  const { exec } = DatabaseSync.prototype;
  let turns = 0;
  const begun = vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(function (
    this: DatabaseSync,
    sql: string,
  ) {
    if (sql === "BEGIN" && turns++ < 3) {
      const other = openDatabase(harness.config).database;
      grantHere(other);
      other.close();
    }
    exec.call(this, sql);
  });
  const fenced = database.read(monotonicMs() + 5_000, (_, reason) => reason);
  begun.mockRestore();
  expect(turns).toBe(4);
  expect(fenced).toBe("");
  database.close();
  await harness.remove();
});

test("where no file can be made or renamed grants go on, and the witness tells how far they came", async () => {
  const harness = await harnessWithTag();
  const { path: file } = harness.config;
  const running = await harness.open();
  await granted(running, "t");
  const backup = path.join(harness.folder, "alone");
  run("cp", file, backup);
  // A folder cannot be replaced by a file.
  const next = `${file}.witness.next`;
  for (let opened = 0; opened < 3; opened++) {
    rmSync(next, { recursive: true });
    mkdirSync(next);
    const other = await harness.open();
    for (let i = 0; i < 3; i++) await granted(other, "t");
    await other.close();
  }
  await running.close();
  run("cp", backup, file);
  expect((await storeStatus(harness.config)).fenced).toMatch(/its witness has seen later changes/);
  await harness.remove();
});

function highest(children: readonly GrantChild[]): bigint {
  return children
    .flatMap(({ ranges }) => ranges)
    .reduce((max, { to }) => (to > max ? to : max), 0n);
}

test("processes that open, serve and are killed at any moment never lose the witness", async () => {
  const harness = await harnessWithTag();
  const all: GrantChild[] = [];
  for (let round = 0; round < 4; round++) {
    const children = [0, 1, 2].map(() => new GrantChild(harness.config, "t"));
    all.push(...children);
    // Killed one by one, in the midst of the turns of those that opened later.
    for (const [at, child] of children.entries()) {
      await child.reached(1 + at * 3 + round);
      await child.kill();
    }
    const fresh = await harness.open();
    expect((await granted(fresh, "t")).base).toBeGreaterThan(highest(all));
    await fresh.close();
  }
  expect(all.flatMap(({ refused }) => [...refused])).toEqual([]);
  expect(readdirSync(harness.folder).filter((name) => name.includes("witness"))).toHaveLength(2);
  await harness.remove();
});

/** What full-disk-child.ts says of a store on a disk of its own. */
function onFullDisk(folder: string, ...more: string[]): { stdout: string; stderr: string } {
  const { stdout, stderr } = inMountNamespace(
    'mount -t tmpfs -o size=16m,mode=700 none "$2" && exec "$1" -C idmint-source "$3" "$2" "$4"',
    process.execPath,
    folder,
    path.join(import.meta.dirname, "full-disk-child.ts"),
    ...more,
  );
  return { stdout, stderr };
}

test("on a full disk grants go on, and the file that was made ahead becomes the witness", async () => {
  const harness = await sqliteHarness();
  expect(onFullDisk(harness.folder, "")).toEqual({
    stdout: "grants go on; the witness took its turn\n",
    stderr: "",
  });
  await harness.remove();
});

test("on a full disk processes that share a short -wal begin it anew, and say what is wrong", async () => {
  const harness = await sqliteHarness();
  const { stdout, stderr } = onFullDisk(harness.folder, "short");
  expect(stderr).toBe("");
  const answers = JSON.parse(stdout) as Record<string, number>;
  expect(Object.keys(answers).toSorted()).toEqual([
    "STORE_UNAVAILABLE: the disk that the store lies on is full; make room on it",
    "granted",
  ]);
  expect(answers["granted"]).toBeGreaterThan(100);
  await harness.remove();
});

test("on a full disk a poll says why nothing is written, and store status finds it, until there is room", async () => {
  const harness = await sqliteHarness();
  const { stdout, stderr } = onFullDisk(harness.folder, "poll");
  expect(stderr).toBe("");
  const well = { refusesWrites: "", warning: "", fenced: "", isRenewed: true, found: [] };
  const why = "the disk that the store lies on is full; make room on it";
  const full = { ...well, refusesWrites: why, warning: why, isRenewed: false, found: ["full"] };
  expect(JSON.parse(stdout)).toEqual([well, full, well]);
  await harness.remove();
});
