// One store under several names: links, symbolic links, files that are mounted by themselves.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { granted, reasonOf, refusal, settingsOf } from "@idmint/testkit/store-suite";
import { expect, test, vi } from "vitest";
import { migrateStore, openStore, storeStatus } from "../../../../src/store/open-store.ts";
import { acceptAtOnce } from "../../accept.ts";
import { monotonicMs } from "../../../../src/store/sqlite/file/connection.ts";
import { mountPointsOf } from "../../../../src/store/sqlite/file/location.ts";
import { openDatabase } from "../../../../src/store/sqlite/open.ts";
import { GrantChild, run } from "../../children.ts";
import { inMountNamespace } from "./mount-namespace.ts";
import { sqliteHarness } from "../../harness.ts";

// Every handle starts a thread, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

test("a connection syncs every commit before it is answered", async () => {
  const harness = await sqliteHarness();
  const { database } = openDatabase(harness.config);
  const pragmas = database.raw(monotonicMs() + 5_000, (transaction) =>
    ["journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync"].map(
      (name) => transaction.get(`PRAGMA ${name}`)?.[name],
    ),
  );
  // 2 is FULL. NORMAL would pass every other test, and lose acknowledged grants when the machine goes down.
  expect(pragmas).toEqual(["wal", 2n, 1n, 1n]);
  database.close();
  await harness.remove();
});

test("while its file has two names nobody grants, under neither; then it goes on by itself, without an accept", async () => {
  const harness = await sqliteHarness();
  const running = await harness.open();
  await running.createTag(settingsOf("t"));
  await granted(running, "t");
  const { folder, config } = harness;
  mkdirSync(path.join(folder, "other"));
  const other = { ...config, path: path.join(folder, "other", "y.sqlite") };
  linkSync(config.path, other.path);
  for (let again = 0; again < 2; again++) {
    expect(await reasonOf(granted(running, "t"))).toBe("STORE_UNAVAILABLE");
    const poll = running.changes({ since: 0n, watched: [], limit: 1 });
    await expect(poll).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE", retryable: true });
  }
  for (const each of [config, other]) {
    const works = [
      () => openStore(each),
      () => migrateStore(each, { dryRun: false }),
      () => storeStatus(each),
      () => acceptAtOnce(each, 1n),
    ];
    for (const work of works) await expect(work()).rejects.toThrow(/has 2 names \(hard links\)/);
    expect(existsSync(`${other.path}-wal`)).toBe(false);
  }
  rmSync(other.path);
  expect(await granted(running, "t")).toMatchObject({ base: 11n, epoch: 1n });
  const fresh = await harness.open();
  expect(await granted(fresh, "t")).toMatchObject({ base: 21n, epoch: 1n });
  await Promise.all([running.close(), fresh.close()]);
  await harness.remove();
});

test("through a symbolic link everything lies beside the file itself, and an older copy is recognised", async () => {
  const harness = await sqliteHarness();
  const { folder, config } = harness;
  const first = await harness.open();
  await first.createTag(settingsOf("t"));
  await granted(first, "t");
  await first.close();
  const backup = path.join(folder, "backup");
  run("cp", config.path, backup);
  const link = { ...config, path: path.join(folder, "link") };
  symlinkSync("store.sqlite", link.path);
  const through = await openStore(link);
  expect((await granted(through, "t")).base).toBe(11n);
  for (const suffix of ["-wal", "-shm", ".witness"]) {
    expect(existsSync(`${link.path}${suffix}`)).toBe(false);
    expect(existsSync(`${config.path}${suffix}`)).toBe(true);
  }
  expect((await storeStatus(link)).fenced).toBe("");
  await through.close();
  run("cp", backup, config.path);
  for (const each of [config, link]) {
    const later = await openStore(each);
    expect(await refusal(later, "t")).toBe("STORE_EPOCH_CHANGED");
    await later.close();
    expect((await storeStatus(each)).fenced).not.toBe("");
  }
  await acceptAtOnce(link, 1_000n);
  const later = await harness.open();
  expect((await granted(later, "t")).base).toBe(1_011n);
  await later.close();
  await harness.remove();
});

test("an older copy under a server that came through a symbolic link is recognised by that server", async () => {
  const harness = await sqliteHarness();
  const { folder, config } = harness;
  const link = path.join(folder, "link");
  symlinkSync(config.path, link);
  const through = await openStore({ ...config, path: link });
  await through.createTag(settingsOf("t"));
  await granted(through, "t");
  for (const suffix of ["-wal", "-shm"]) rmSync(`${config.path}${suffix}`);
  expect(await refusal(through, "t")).toBe("STORE_EPOCH_CHANGED");
  await through.close();
  await harness.remove();
});

test("a symbolic link that leads elsewhere later changes nothing for those who opened through it", async () => {
  const harness = await sqliteHarness();
  const { folder, config } = harness;
  const link = path.join(folder, "link");
  symlinkSync(config.path, link);
  const through = await openStore({ ...config, path: link });
  await through.createTag(settingsOf("t"));
  rmSync(link);
  symlinkSync(path.join(folder, "elsewhere"), link);
  expect((await granted(through, "t")).base).toBe(1n);
  await through.close();
  const dangling = { ...config, path: link };
  expect(await reasonOf(openStore(dangling))).toBe("SCHEMA_MISMATCH");
  await expect(migrateStore(dangling, { dryRun: false })).rejects.toThrow(
    /^INVALID_ARGUMENT: store.url names a symbolic link to a file that is not there/,
  );
  expect(readlinkSync(link)).toBe(path.join(folder, "elsewhere"));
  await harness.remove();
});

test("a file that was moved alone is refused: its last grants stayed behind, in the -wal", async () => {
  const harness = await sqliteHarness();
  const { folder, config } = harness;
  const first = await harness.open();
  await first.createTag(settingsOf("t"));
  await first.close();
  const killed = new GrantChild(config, "t");
  await killed.reached(3);
  await killed.kill();
  const there = path.join(folder, "there");
  mkdirSync(there);
  const moved = { ...config, path: path.join(there, "store.sqlite") };
  renameSync(config.path, moved.path);
  const alone = await openStore(moved);
  expect(await refusal(alone, "t")).toBe("STORE_EPOCH_CHANGED");
  expect((await storeStatus(moved)).fenced).toMatch(/lies here without its witness/);
  await alone.close();
  for (const suffix of ["-wal", "-shm"]) rmSync(`${moved.path}${suffix}`, { force: true });
  for (const suffix of ["-wal", "-shm", ".witness"]) {
    renameSync(`${config.path}${suffix}`, `${moved.path}${suffix}`);
  }
  const whole = await openStore(moved);
  const last = killed.ranges.at(-1)?.to ?? 0n;
  expect((await granted(whole, "t")).base).toBeGreaterThan(last);
  await whole.close();
  await harness.remove();
});

test("mount points are read as the kernel writes them", () => {
  const text = [
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
    String.raw`63 43 254:0 /a /srv/b\040c\134d rw,relatime shared:1 - ext4 /dev/vda rw`,
    "",
  ].join("\n");
  expect([...mountPointsOf(text)]).toEqual(["/", String.raw`/srv/b c\d`, ""]);
});

test("a file that is mounted by itself is refused, and its folder is not", async () => {
  const harness = await sqliteHarness();
  const { folder, config } = harness;
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  await store.close();
  const there = path.join(folder, "a mount");
  mkdirSync(there);
  const file = path.join(there, "y.sqlite");
  writeFileSync(file, "");
  const child = path.join(import.meta.dirname, "open-child.ts");
  const open = (name: string, mount: string) =>
    inMountNamespace(
      `${mount} && exec "$1" -C idmint-source "$2" "$3"`,
      process.execPath,
      child,
      JSON.stringify({ ...config, path: name }),
    ).stdout.trim();
  expect(open(file, `mount --bind '${config.path}' '${file}'`)).toMatch(
    /^STORE_UNSAFE: .* is a file that is mounted by itself/,
  );
  expect(open(path.join(there, "store.sqlite"), `mount --bind '${folder}' '${there}'`)).toBe(
    "open",
  );
  await harness.remove();
});

test("a file or folder that cannot be written is told by the name of the option, and nothing is tried again", async () => {
  const harness = await sqliteHarness();
  const { folder, config } = harness;
  const inner = path.join(folder, "inner");
  mkdirSync(inner);
  const inside = { ...config, path: path.join(inner, "store.sqlite") };
  await migrateStore(inside, { dryRun: false });
  const child = path.join(import.meta.dirname, "open-child.ts");
  // Root may write everywhere.
  chmodSync(folder, 0o755);
  chmodSync(inside.path, 0o666);
  chmodSync(inner, 0o555);
  const open = (create: boolean, file: string): string =>
    spawnSync(
      process.execPath,
      ["-C", "idmint-source", child, JSON.stringify({ ...inside, create, path: file }), "nobody"],
      { encoding: "utf8" },
    ).stdout.trim();
  expect(open(false, inside.path)).toBe(
    `INVALID_ARGUMENT: store.url cannot be used: this process cannot write in the file's folder, where SQLite keeps -wal and -shm: ${inner} (EACCES). Let this user write there, or choose another path with --store-url`,
  );
  expect(open(true, path.join(inner, "new.sqlite"))).toContain(`${inner} (EACCES)`);
  expect(open(true, path.join(inner, "deep", "new.sqlite"))).toMatch(
    /its folder cannot be made: .*deep \(EACCES\)/,
  );
  chmodSync(inner, 0o777);
  chmodSync(inside.path, 0o444);
  expect(open(false, inside.path)).toMatch(/this process cannot write the file: .* \(EACCES\)/);
  expect(statSync(inside.path).size).toBeGreaterThan(0);
  // What root leaves behind that worked with the store of another user.
  chmodSync(inside.path, 0o666);
  const witness = `${inside.path}.witness`;
  writeFileSync(witness, "", { mode: 0o400 });
  const start = performance.now();
  expect(open(false, inside.path)).toMatch(
    /^INVALID_ARGUMENT: .*this process cannot write the witness .*: .*witness \(EACCES\)/,
  );
  expect(performance.now() - start).toBeLessThan(config.timeoutMs ?? 3_000);
  await harness.remove();
});
