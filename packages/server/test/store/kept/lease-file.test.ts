import {
  chmodSync,
  copyFileSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { SNOWFLAKE_PRESETS } from "@idmint/core";
import type { KeptContents, KeptLease, Tag } from "@idmint/core/server";
import { expect, onTestFinished, test } from "vitest";
import { contentsFrom, textOf } from "../../../src/store/kept/contents.ts";
import { openLeaseFile, type OpenLeaseFile } from "../../../src/store/kept/lease-file.ts";

const clock = { now: () => performance.now() };

const tag: Tag = {
  name: "t",
  description: "",
  order: "UNORDERED",
  ceiling: 2n ** 63n - 1n,
  kind: {
    kind: "snowflake",
    layout: SNOWFLAKE_PRESETS["41-5-5-12"],
    dataCenter: 3,
    clockPolicy: "REFUSE",
    clockWaitMs: 5,
    registry: "STORE",
  },
  state: "PAUSED",
  floor: 0n,
  periodStart: "",
  generation: 0n,
  version: 1n,
  epoch: 7n,
  revision: 12n,
  createdAtMs: 1,
  updatedAtMs: 2,
};

const lease: KeptLease = {
  tag: "t",
  instance: "a#1",
  dataCenter: 3,
  workerId: 5,
  extension: 0,
  epoch: 7n,
  token: 2n ** 40n,
  ttlMs: 30_000,
  reservedUntilMs: 1_800_000_060_000,
  usedUntilMs: 1_800_000_003_000,
  registryMs: 1_800_000_000_000,
  at: 123.5,
  leadMs: 0,
};

const contents: KeptContents = {
  reportedMs: 1_800_000_000_000,
  incarnation: "one",
  leases: [lease],
  tags: [tag],
  node: {
    id: "n",
    parts: [
      ["", 456],
      ["more", Infinity],
    ],
  },
  issuing: [
    { name: "", incarnation: "one", revision: 3n, stoppedAtMs: 1_800_000_000_000 },
    { name: "more", incarnation: "two", revision: 0n, stoppedAtMs: undefined },
  ],
  callers: {
    tokens: [
      {
        id: "0123456789abcdef",
        principal: "orders",
        rights: [{ role: "issue", tags: "orders.*" }],
        hash: "00".repeat(32),
        createdAtMs: 1,
        expiresAtMs: 2,
      },
    ],
    believedUntil: 60_000,
  },
};

function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), "idmint-lease-file-"));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

async function opened(file: string): Promise<OpenLeaseFile> {
  const it = await openLeaseFile(file, clock);
  onTestFinished(() => it.close());
  return it;
}

test("what was written is found by the next one who opens it", async () => {
  const file = path.join(folder(), "leases");
  const first = await opened(file);
  expect(first).toMatchObject({ found: undefined, ignored: undefined });
  await first.write({ ...contents, leases: [], incarnation: undefined });
  await first.write(contents);
  await first.close();
  const second = await opened(file);
  const [found] = second.found?.leases ?? [];
  // The clock that counts suspends is told in steps of 10 ms.
  expect(Math.abs((found?.at ?? 0) - lease.at)).toBeLessThanOrEqual(20);
  const [whole, more] = second.found?.node?.parts ?? [];
  const until = whole?.[1] ?? 0;
  expect(Math.abs(until - 456)).toBeLessThanOrEqual(20);
  expect(more).toEqual(["more", Infinity]);
  const node = { id: "n", parts: [["", until], more] };
  const believedUntil = second.found?.callers?.believedUntil ?? 0;
  expect(Math.abs(believedUntil - 60_000)).toBeLessThanOrEqual(20);
  const callers = { tokens: contents.callers?.tokens, believedUntil };
  const leases = [{ ...lease, at: found?.at }];
  expect(second.found).toEqual({ ...contents, leases, node, callers });
});

test("what was emptied says nothing to the next one, also where nothing can be written", async () => {
  const file = path.join(folder(), "leases");
  const first = await opened(file);
  await first.empty();
  await first.write(contents);
  mkdirSync(path.join(`${file}.next`, "in the way"), { recursive: true });
  await expect(first.write({ ...contents, callers: undefined })).rejects.toThrow(/directory/i);
  await first.empty();
  await first.close();
  expect((await opened(file)).found).toBeUndefined();
});

test("nobody else can open it meanwhile", async () => {
  const file = path.join(folder(), "leases");
  const first = await opened(file);
  await expect(openLeaseFile(file, clock)).rejects.toThrow(/another process uses/);
  await first.close();
  await opened(file);
});

test("what is being written when it is closed is written before the next one may open it, and nothing after", async () => {
  const file = path.join(folder(), "leases");
  const first = await opened(file);
  const written = first.write(contents);
  await first.close();
  const second = await opened(file);
  expect(second.found?.leases).toHaveLength(1);
  await written;
  await expect(first.write({ ...contents, leases: [] })).rejects.toThrow(/closed/);
});

test("a copy says nothing, beside its original's lock or without it", async () => {
  const here = folder();
  const file = path.join(here, "leases");
  const first = await opened(file);
  await first.write(contents);
  const copy = path.join(here, "copy");
  copyFileSync(file, copy);
  expect(await opened(copy)).toMatchObject({ found: undefined, ignored: "it is a copy" });
  const other = path.join(here, "other");
  copyFileSync(file, other);
  copyFileSync(`${file}.lock`, `${other}.lock`);
  expect(await opened(other)).toMatchObject({ found: undefined, ignored: "it is a copy" });
});

test("an older file that was put back in its place says nothing", async () => {
  const file = path.join(folder(), "leases");
  const first = await opened(file);
  await first.write({ ...contents, leases: [{ ...lease, usedUntilMs: lease.usedUntilMs - 1 }] });
  copyFileSync(file, `${file}.backup`);
  await first.write(contents);
  await first.close();
  copyFileSync(`${file}.backup`, file);
  const second = await opened(file);
  expect(second).toMatchObject({ found: undefined, ignored: "it is a copy" });
  await second.write(contents);
  await second.close();
  renameSync(`${file}.backup`, file);
  expect(await opened(file)).toMatchObject({ found: undefined, ignored: "it is a copy" });
});

test("an older file that a hard link kept says nothing in its place", async () => {
  const file = path.join(folder(), "leases");
  const [kept, found] = [`${file}.kept`, `${file}.found`];
  const first = await opened(file);
  await first.write({ ...contents, leases: [{ ...lease, usedUntilMs: lease.usedUntilMs - 1 }] });
  linkSync(file, kept);
  await first.write(contents);
  await first.close();
  // The same for a file that was found and not written here.
  linkSync(file, found);
  const second = await opened(file);
  expect(second.found?.leases).toHaveLength(1);
  await second.write(contents);
  await second.close();
  for (const older of [kept, found]) {
    renameSync(older, file);
    const next = await opened(file);
    expect(next).toMatchObject({ found: undefined, ignored: "it is spoiled" });
    await next.close();
  }
});

test("a file is void before another takes its place: who is killed in between leaves none", async () => {
  const file = path.join(folder(), "leases");
  const first = await opened(file);
  await first.write(contents);
  linkSync(file, `${file}.kept`);
  // Nothing can be renamed onto a folder, so the write ends where a kill might have ended it.
  renameSync(file, `${file}.away`);
  mkdirSync(file);
  await expect(first.write(contents)).rejects.toThrow(/EISDIR/);
  await first.close();
  rmdirSync(file);
  renameSync(`${file}.kept`, file);
  expect(await opened(file)).toMatchObject({ found: undefined, ignored: "it is spoiled" });
});

test("a file from before the machine was started, of another place or release, or spoiled, says nothing", () => {
  const origin = { boot: "this", lock: "1/2/3", file: "1/4/5" };
  const text = textOf(contents, origin, 0);
  expect(contentsFrom(text, origin, 0)).toEqual({ found: contents });
  expect(contentsFrom(text, { ...origin, boot: "that" }, 0)).toEqual({
    ignored: "it is of another machine, or from before this one was started",
  });
  for (const other of [{ lock: "1/2/4" }, { file: "1/5/6" }]) {
    expect(contentsFrom(text, { ...origin, ...other }, 0)).toEqual({ ignored: "it is a copy" });
  }
  expect(contentsFrom(text.replace('"workerId":5', '"workerId":6'), origin, 0)).toEqual({
    ignored: "it is spoiled",
  });
  expect(contentsFrom(text.replace("orders.*", "*"), origin, 0)).toEqual({
    ignored: "it is spoiled",
  });
  const without = { ...contents, callers: undefined };
  expect(contentsFrom(textOf(without, origin, 0), origin, 0)).toEqual({ found: without });
  expect(contentsFrom(text.slice(0, 200), origin, 0)).toEqual({ ignored: "it is spoiled" });
  expect(contentsFrom("", origin, 0)).toEqual({ ignored: "it is spoiled" });
});

test("a file that is none is passed over, and replaced as a whole", async () => {
  const file = path.join(folder(), "leases");
  writeFileSync(file, "something else\n");
  const it = await opened(file);
  expect(it).toMatchObject({ found: undefined, ignored: "it is spoiled" });
  await it.write(contents);
  expect(readFileSync(file, "utf8")).toMatch(/^[0-9a-f]{64}\n\{.*\}\n\[.*\]\n$/);
});

test("the file can be read by its owner alone, whatever was left there before", async () => {
  const file = path.join(folder(), "leases");
  for (const name of [file, `${file}.next`]) writeFileSync(name, "", { mode: 0o644 });
  await (await opened(file)).write(contents);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("a folder of its own is made, where the one around it may be written by others", async () => {
  const around = folder();
  chmodSync(around, 0o777);
  const file = path.join(around, "kept", "leases");
  await (await opened(file)).write(contents);
  expect(statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
});

test("a folder in which everybody may write is refused", async () => {
  const its = folder();
  chmodSync(its, 0o777);
  await expect(openLeaseFile(path.join(its, "leases"), clock)).rejects.toThrow(
    /^INVALID_ARGUMENT: snowflake.cache_file cannot be used: everybody .*chmod o-w/,
  );
});

test.each(["leases", "leases.lock"])("a link in the place of %s is not followed", async (name) => {
  const its = folder();
  const target = path.join(its, "target");
  writeFileSync(target, "precious");
  symlinkSync(target, path.join(its, name));
  await expect(openLeaseFile(path.join(its, "leases"), clock)).rejects.toThrow("symbolic link");
  expect(readFileSync(target, "utf8")).toBe("precious");
});

test("a link in the place of the next file is replaced, and its target stays as it is", async () => {
  const its = folder();
  const target = path.join(its, "target");
  writeFileSync(target, "precious");
  symlinkSync(target, path.join(its, "leases.next"));
  await (await opened(path.join(its, "leases"))).write(contents);
  expect(readFileSync(target, "utf8")).toBe("precious");
});

test("a link that takes the place of the file while it is open empties nothing", async () => {
  const its = folder();
  const file = path.join(its, "leases");
  const target = path.join(its, "target");
  const it = await opened(file);
  await it.write(contents);
  writeFileSync(target, "precious");
  rmSync(file);
  symlinkSync(target, file);
  await it.write(contents);
  expect(readFileSync(target, "utf8")).toBe("precious");
  expect(lstatSync(file).isSymbolicLink()).toBe(false);
});

test("a folder that is not there is refused by the name of the option", async () => {
  const file = path.join(folder(), "missing", "too", "leases");
  await expect(openLeaseFile(file, clock)).rejects.toThrow(
    /^INVALID_ARGUMENT: snowflake.cache_file /,
  );
});
