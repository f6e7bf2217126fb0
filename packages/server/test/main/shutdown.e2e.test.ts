import { IdServiceService, NodeServiceService, TagServiceService } from "@idmint/proto";
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { FORCED_EXIT_CODE, runUntilSignal } from "../../src/main/run.ts";
import {
  call,
  clientsOf,
  createTag,
  generateId,
  refusalOf,
  sleep,
  startTest,
  until,
  holdBack,
} from "../support.ts";

function floorOf(store: MemoryStore, tag: string): bigint | undefined {
  return store.database.rows.get(tag)?.floor;
}

test("a server that stops gives the unused end back, current and next in one range and one call", async () => {
  const it = await startTest();
  await createTag(it, "orders", { min: 10, max: 10 });
  // The second id starts the prefetch: 1–10 are current, 11–20 are next.
  await generateId(it, "orders");
  await generateId(it, "orders");
  await until(() => floorOf(it.store, "orders") === 20n);
  await it.server.close();
  expect(it.store.count("giveBack")).toBe(1);
  expect(floorOf(it.store, "orders")).toBe(2n);
  expect(it.events.at(-1)).toEqual({ type: "stopped", givenBack: 18, wasted: 0 });
  expect(it.store.isClosed).toBe(true);
});

test("ids that a caller gave back and nobody asked for are counted as waste", async () => {
  const it = await startTest();
  await createTag(it, "orders", { min: 100, max: 100 });
  const segment = { tag: "orders", count: 5, after: 0n, instance: "" };
  const { releaseToken } = await call(it.ids, IdServiceService.allocateSegment, segment);
  const release = { tag: "orders", releaseToken, unusedCount: 3 };
  await call(it.ids, IdServiceService.releaseSegment, release);
  await it.server.close();
  expect(it.events.at(-1)).toEqual({ type: "stopped", givenBack: 95, wasted: 3 });
});

test("what another server was granted after is not given back", async () => {
  const one = await startTest();
  const two = await startTest({ store: new MemoryStore({ database: one.store.database }) });
  await createTag(one, "orders", { min: 10, max: 10 });
  await generateId(one, "orders");
  await until(() => floorOf(one.store, "orders") === 20n);
  await generateId(two, "orders");
  await until(() => floorOf(one.store, "orders") === 40n);
  await one.server.close();
  expect(floorOf(one.store, "orders")).toBe(40n);
  expect(one.events.at(-1)).toEqual({ type: "stopped", givenBack: 0, wasted: 19 });
  await two.server.close();
  expect(floorOf(one.store, "orders")).toBe(21n);
});

test("a give-back whose outcome is unknown is tried once and leaves a gap", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  await generateId(it, "orders");
  it.store.faults = { after: storeIsDown };
  await it.server.close();
  expect(it.store.count("giveBack")).toBe(1);
  expect(it.events).toContainEqual(expect.objectContaining({ type: "give-back-failed" }));
});

test("while it drains new calls are refused, calls in flight finish, and nodes still answer", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store, flags: { "drain-time": "2s" } });
  await createTag(it, "orders");
  const release = holdBack(store, "grant");
  const waiting = generateId(it, "orders");
  await until(() => store.count("grant") === 1);
  const closed = it.server.close();
  expect(await refusalOf(generateId(it, "orders"))).toMatchObject({
    code: "UNAVAILABLE",
    reason: "DRAINING",
  });
  expect(
    (await refusalOf(call(it.tags, TagServiceService.getTag, { name: "orders" }))).reason,
  ).toBe("DRAINING");
  expect(await call(it.nodes, NodeServiceService.getNodeStatus, {})).toMatchObject({ state: 2 });
  const ready = await fetch(`http://${it.server.httpAddress}/readyz`);
  expect(ready.status).toBe(503);
  release();
  expect((await waiting).id).toBe(1n);
  await closed;
  expect(floorOf(store, "orders")).toBe(1n);
});

test("calls that cannot finish in the drain time are refused, and the server stops", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store, flags: { "drain-time": "300ms" } });
  await createTag(it, "orders");
  holdBack(store, "grant");
  const waiting = refusalOf(generateId(it, "orders", 10_000));
  await until(() => store.count("grant") === 1);
  const startedAt = performance.now();
  await it.server.close();
  expect(performance.now() - startedAt).toBeLessThan(1_500);
  expect(await waiting).toMatchObject({ reason: "DRAINING" });
});

test("ids that a caller gives back while the server drains go back to the store", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store, flags: { "drain-time": "1s" } });
  await createTag(it, "orders", { min: 1_000 });
  const answer = await call(it.ids, IdServiceService.allocateSegment, {
    tag: "orders",
    count: 50,
    after: 0n,
    instance: "",
  });
  await createTag(it, "other");
  holdBack(store, "grant");
  void refusalOf(generateId(it, "other", 10_000));
  await until(() => store.count("grant") === 2);
  const closed = it.server.close();
  const { reclaimedCount } = await call(it.ids, IdServiceService.releaseSegment, {
    tag: "orders",
    releaseToken: answer.releaseToken,
    unusedCount: 50,
  });
  expect(reclaimedCount).toBe(50);
  await closed;
});

test("closing twice is one close", async () => {
  const it = await startTest();
  expect(it.server.close()).toBe(it.server.close());
  await it.server.close();
});

class Signals extends EventEmitter {
  readonly exits: number[] = [];
  exit(code: number): void {
    this.exits.push(code);
  }
}

test("the first signal stops the server and ends with 0", async () => {
  const source = new Signals();
  let closes = 0;
  const run = runUntilSignal({ close: () => Promise.resolve(void closes++) }, undefined, source);
  source.emit("SIGTERM");
  expect(await run).toBe(0);
  expect(closes).toBe(1);
  expect(source.exits).toEqual([]);
  expect(source.listenerCount("SIGTERM") + source.listenerCount("SIGINT")).toBe(0);
});

test("a second signal does not wait", async () => {
  const source = new Signals();
  void runUntilSignal({ close: () => new Promise<void>(() => undefined) }, undefined, source);
  source.emit("SIGINT");
  expect(source.exits).toEqual([]);
  source.emit("SIGTERM");
  expect(source.exits).toEqual([FORCED_EXIT_CODE]);
});

test("under a script the signals of one second are one press, and a later one does not wait", () => {
  const source = new Signals();
  let now = 0;
  const script = { ended: new Promise<void>(() => undefined), stop: () => undefined };
  const server = { close: () => new Promise<void>(() => undefined) };
  void runUntilSignal(server, script, source, { now: () => now });
  // The terminal's, then npx's and pnpm's.
  for (const at of [0, 5, 999]) {
    now = at;
    source.emit("SIGINT");
  }
  expect(source.exits).toEqual([]);
  now = 1_000;
  source.emit("SIGINT");
  expect(source.exits).toEqual([FORCED_EXIT_CODE]);
});

test("the end of the script, and of the terminal, stop the server like a signal", async () => {
  const over = Promise.withResolvers<void>();
  let stops = 0;
  const script = { ended: over.promise, stop: () => void stops++ };
  const run = runUntilSignal({ close: () => Promise.resolve() }, script, new Signals());
  over.resolve();
  expect([await run, stops]).toEqual([0, 1]);
  const source = new Signals();
  const hungUp = runUntilSignal({ close: () => Promise.resolve() }, undefined, source);
  source.emit("SIGHUP");
  expect(await hungUp).toBe(0);
});

/** A server in a process of its own, on SQLite. */
async function spawnServer(): Promise<{
  child: ReturnType<typeof spawn>;
  address: string;
  storePath: string;
}> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-shutdown-"));
  const child = spawn(
    process.execPath,
    ["-C", "idmint-source", path.join(import.meta.dirname, "serve-child.ts"), folder],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  onTestFinished(() => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { child, address: line.toString().trim(), storePath: path.join(folder, "idmint.db") };
}

test("a process that is told to stop ends with 0 and leaves no gap", async () => {
  const { child, address, storePath } = await spawnServer();
  await generateId(clientsOf(address), "demo");
  child.kill("SIGTERM");
  const [code] = (await once(child, "exit")) as [number | null];
  expect(code).toBe(0);
  const store = await openStore({ backend: "sqlite", path: storePath, allowUnsafe: [] });
  const [demo] = await store.getTags(["demo"]);
  await store.close();
  expect(demo?.floor).toBe(1n);
});

test("a process that is told twice ends at once", async () => {
  const { child, address } = await spawnServer();
  const clients = clientsOf(address);
  // A call that cannot finish keeps the drain going for its five seconds.
  const open = clients.ids.generateId({ tag: "never", name: "" }, () => undefined);
  await generateId(clients, "demo");
  child.kill("SIGTERM");
  await sleep(100);
  const toldAt = performance.now();
  child.kill("SIGTERM");
  const [code] = (await once(child, "exit")) as [number | null];
  open.cancel();
  expect(code).toBe(FORCED_EXIT_CODE);
  // Well before the drain would have ended.
  expect(performance.now() - toldAt).toBeLessThan(4_000);
});
