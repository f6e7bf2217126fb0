import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { expectedOfAll, expectedStores } from "../../../src/store/pins/expected.ts";
import { adoptStore, openStoreMemory, type StoreMemory } from "../../../src/store/pins/memory.ts";
import { passingPins, StorePins } from "../../../src/store/pins/pin.ts";

let folder = "";
let cacheFile = "";

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "idmint-pins-"));
  cacheFile = path.join(folder, "cache");
});

afterEach(async () => {
  await last?.close();
  last = undefined;
  await rm(folder, { recursive: true, force: true });
});

const failures: string[] = [];

let last: StoreMemory | undefined;

function onFailed({ message }: { message: string }): void {
  failures.push(message);
}

/** The life of a server after that of the one before. */
async function opened(expectId?: string): Promise<StoreMemory> {
  await last?.close();
  const expected = expectedStores(expectId);
  last = await openStoreMemory({ expected, cacheFile, onFailed });
  return last;
}

const foreign = {
  reason: "STORE_UNAVAILABLE",
  metadata: { store_id: "b", pinned: "a" },
};

test("the first id is believed for good, and another one is away", async () => {
  const pin = passingPins().of("");
  expect(pin.id).toBeUndefined();
  await pin.believe("a");
  await expect(pin.believe("b")).rejects.toMatchObject(foreign);
  await pin.believe("a");
  expect(pin.id).toBe("a");
});

test("of two stores that answer at once one is believed", async () => {
  const pins = new StorePins(await opened());
  const all = await Promise.allSettled(["a", "b", "a"].map((id) => pins.of("").believe(id)));
  expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(all[1]).toMatchObject({ reason: foreign });
});

test("processes of one server settle on one store", async () => {
  const memory = await opened();
  const [one, other] = [new StorePins(memory), new StorePins(memory)];
  const all = await Promise.allSettled([one.of("").believe("a"), other.of("").believe("b")]);
  expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  expect(other.of("").id).toBe("a");
});

test("each place has a store of its own", async () => {
  const pins = passingPins();
  await pins.of("").believe("a");
  await pins.of("ticket/x").believe("b");
  await expect(pins.of("ticket/x").believe("a")).rejects.toThrow("belongs to b");
});

test("what was believed is known after a restart, in a file that only this server reads", async () => {
  await new StorePins(await opened()).of("").believe("a");
  const { mode } = await stat(`${cacheFile}.store`);
  expect(mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).not.toContain("cache.store.next");
  const later = new StorePins(await opened());
  await expect(later.of("").believe("b")).rejects.toMatchObject(foreign);
  await later.of("").believe("a");
});

test("store.expect_id goes before what was kept", async () => {
  await new StorePins(await opened()).of("").believe("b");
  const pin = new StorePins(await opened("a")).of("");
  await expect(pin.believe("b")).rejects.toMatchObject(foreign);
  await pin.believe("a");
});

test("nothing is believed that cannot be kept", async () => {
  const memory = await opened();
  await rm(folder, { recursive: true });
  const pin = new StorePins(memory).of("");
  await expect(pin.believe("a")).rejects.toMatchObject({
    reason: "INVALID_ARGUMENT",
    violations: [{ field: "snowflake.cache_file" }],
  });
  expect(pin.id).toBeUndefined();
  await mkdir(folder);
  await pin.believe("b");
  expect((await opened()).known.stores.get("")).toBe("b");
});

test("histories that were left are known after a restart", async () => {
  const memory = await opened();
  for (const incarnation of ["1", "2", "2", "1", "3"]) await memory.entered(incarnation);
  const { known } = await opened();
  expect(known).toMatchObject({ present: "3", left: ["1", "2"] });
});

test("a history that cannot be written down is known until the end, and told once", async () => {
  const memory = await opened();
  await memory.entered("1");
  await rm(folder, { recursive: true });
  failures.length = 0;
  await memory.entered("2");
  await memory.entered("3");
  expect(failures).toHaveLength(1);
  expect(memory.known.left).toEqual(["1", "2"]);
  await mkdir(folder);
  await memory.entered("4");
  expect((await opened()).known.left).toEqual(["1", "2", "3"]);
});

test.for(["", "{}", '{"format":"idmint stores 2"}', '{"format":"idmint stores 1","stores":7}'])(
  "a file that says %s is refused by name",
  async (text) => {
    await writeFile(`${cacheFile}.store`, text);
    await expect(opened()).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
      violations: [{ description: expect.stringContaining("cache.store") as string }],
    });
  },
);

test("a link in the place of the next file is not followed", async () => {
  const other = path.join(folder, "other");
  await writeFile(other, "precious");
  await symlink(other, `${cacheFile}.store.next`);
  await new StorePins(await opened()).of("").believe("a");
  expect(await readFile(other, "utf8")).toBe("precious");
});

test("a server can be made to belong to another store, while it does not run", async () => {
  const memory = await opened();
  await new StorePins(memory).of("").believe("a");
  await memory.settle("ticket/x", "c");
  await memory.entered("1");
  await memory.entered("2");
  const inUse = { violations: [{ field: "snowflake.cache_file" }] };
  await expect(adoptStore(cacheFile, "b")).rejects.toMatchObject(inUse);
  await memory.close();
  expect(await adoptStore(cacheFile, "b")).toBe("a");
  const { known } = await opened();
  expect(known).toEqual({ stores: new Map([["", "b"]]), present: undefined, left: [] });
});

test("a second server with the same file is refused", async () => {
  await opened();
  const other = openStoreMemory({ expected: new Map(), cacheFile, onFailed });
  await expect(other).rejects.toThrow("is in use by a server that runs");
});

test("one id is the store's, and of several databases each has its own", () => {
  expect([...expectedStores(undefined)]).toEqual([]);
  expect([...expectedStores(" a ")]).toEqual([["", "a"]]);
  const both = "default: a; b: c";
  const ids = [
    ["", "a"],
    ["b", "c"],
  ];
  expect([...expectedStores(both)]).toEqual(ids);
  expect([...expectedOfAll(both, ["b"])]).toEqual(ids);
  expect([...expectedOfAll(undefined, ["b"])]).toEqual([]);
  for (const text of ["a", "default: a", "default: a; b"]) {
    expect(() => expectedOfAll(text, ["b"])).toThrow(/leaves out b; idmint store status shows/);
  }
});

test("a process that keeps nothing belongs to all stores that it was told", async () => {
  const pins = passingPins("default: a; x: b");
  await expect(pins.of("").believe("b")).rejects.toThrow("belongs to a");
  await expect(pins.of("x").believe("a")).rejects.toThrow("belongs to b");
});
