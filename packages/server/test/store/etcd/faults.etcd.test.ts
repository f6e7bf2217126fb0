// An etcd that is full, and one whose answers are lost.
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Store } from "@idmint/core/server";
import { EtcdCluster } from "@idmint/testkit/etcd";
import {
  FREE,
  granted,
  nodeRenewalOf,
  reasonOf,
  settingsOf,
  wish,
} from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { openStore, storeStatus } from "../../../src/store/open-store.ts";
import { etcdHarness } from "./harness.ts";

const PACE_MS = 15_000;

test("a full etcd says so, answers what is read, and goes on when there is room", async () => {
  const args = ["--quota-backend-bytes=4000000"];
  await using cluster = await EtcdCluster.start({ args });
  const harness = await etcdHarness({ timeoutMs: PACE_MS }, cluster);
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  const big = "x".repeat(400_000);
  let isFull = false;
  for (let i = 0; i < 40 && !isFull; i++) {
    isFull = await harness.gateway.put("/elsewhere", big).then(
      () => false,
      () => true,
    );
  }
  expect(isFull).toBe(true);
  await expect(store.grant([wish("t")])).rejects.toMatchObject({
    reason: "STORE_UNAVAILABLE",
    message: expect.stringMatching(/NOSPACE.*docs\/etcd\.md/u) as string,
  });
  expect((await store.getTags(["t"]))[0]?.floor).toBe(10n);
  const renewal = nodeRenewalOf("n");
  const poll = { since: 0n, watched: [], limit: 10, renewal };
  const { fenced, parts, refusesWrites, warning } = await store.changes(poll);
  expect([fenced, parts[0]?.isRenewed]).toEqual(["", false]);
  expect(refusesWrites).toMatch(/^etcd is full \(NOSPACE\)/u);
  expect(warning).toContain(refusesWrites);
  expect((await storeStatus(harness.config)).findings).toMatchObject([
    { name: "full", isFatal: true, found: expect.stringContaining("NOSPACE") as string },
  ]);
  await harness.gateway.compact(await harness.gateway.revision());
  await harness.gateway.post("maintenance/defragment", {});
  const { alarms } = await harness.gateway.post<{ alarms: object[] }>("maintenance/alarm", {});
  for (const alarm of alarms) {
    await harness.gateway.post("maintenance/alarm", { action: "DEACTIVATE", ...alarm });
  }
  expect((await granted(store, "t")).base).toBe(11n);
  const again = await store.changes(poll);
  expect([again.parts[0]?.isRenewed, again.refusesWrites]).toEqual([true, ""]);
  expect((await storeStatus(harness.config)).findings).toEqual([]);
  await store.close();
});

test("a store whose record is gone says what to put back, and is not accepted", async () => {
  const harness = await etcdHarness({ timeoutMs: PACE_MS });
  const store = await harness.open();
  await store.createTag(settingsOf("t"));
  await granted(store, "t");
  await harness.gateway.remove(`${harness.config.prefix}store`);
  const words = /the key \S+\/store, by .* is gone: first put etcd's data back from a backup/u;
  expect(await store.grant([wish("t")])).toMatchObject([
    { reason: "STORE_EPOCH_CHANGED", detail: expect.stringMatching(words) as string },
  ]);
  for (const look of [() => storeStatus(harness.config), () => store.accept(10n)]) {
    await expect(look()).rejects.toMatchObject({
      reason: "STORE_EPOCH_CHANGED",
      message: expect.stringMatching(words) as string,
    });
  }
  await store.close();
  await harness.remove();
});

/** Passes everything on to a member. When it is told to, it keeps all answers to itself from the next row on that is written. */
class MuteProxy {
  isWaiting = false;
  isMute = false;
  port = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(target: number) {
    this.#server = createServer((socket) => {
      const onward = connect(target, "127.0.0.1");
      for (const [each, other] of [
        [socket, onward],
        [onward, socket],
      ] as const) {
        this.#sockets.add(each);
        each.on("error", () => other.destroy());
        each.on("close", () => other.destroy());
      }
      socket.on("data", (chunk) => {
        if (this.isWaiting && chunk.includes('"floor"')) this.isMute = true;
        onward.write(chunk);
      });
      onward.on("data", (chunk) => {
        if (!this.isMute) socket.write(chunk);
      });
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.port = (this.#server.address() as { port: number }).port;
  }

  /** Whoever waits for an answer learns that there is none. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** `lose` asks for something that the cluster does, and cuts the connection before the answer. */
async function withLostAnswers(
  work: (scene: {
    store: Store;
    lose: <T>(ask: () => Promise<T>) => Promise<T>;
    floor: () => Promise<bigint | undefined>;
  }) => Promise<void>,
): Promise<void> {
  await using cluster = await EtcdCluster.start();
  const [member] = cluster.members;
  const proxy = new MuteProxy(member?.place.clientPort ?? 0);
  await proxy.listen();
  const direct = await etcdHarness({ timeoutMs: PACE_MS }, cluster);
  const through = { ...direct.config, hosts: [`127.0.0.1:${proxy.port}`] };
  const [store, other] = [await openStore(through), await direct.open()];
  try {
    await store.createTag(settingsOf("t"));
    await granted(store, "t");
    const revisionOf = async (): Promise<number> => direct.gateway.revision();
    await work({
      store,
      floor: async () => (await other.getTags(["t"]))[0]?.floor,
      lose: async (ask) => {
        const before = await revisionOf();
        proxy.isWaiting = true;
        const asked = ask();
        asked.catch(() => undefined);
        while ((await revisionOf()) === before) await pause(5);
        proxy.isWaiting = false;
        proxy.isMute = false;
        proxy.cut();
        return asked;
      },
    });
  } finally {
    await Promise.all([store.close(), other.close()]);
    await proxy.close();
  }
}

test("a grant whose answer is lost is burnt, and the next one lies above it", async () => {
  await withLostAnswers(async ({ store, lose, floor }) => {
    const grant = await lose(() => granted(store, "t"));
    // 11 to 20 was granted to nobody.
    expect([grant.base, grant.version]).toEqual([21n, 3n]);
    expect(await floor()).toBe(30n);
    expect((await granted(store, "t")).base).toBe(31n);
  });
});

test("a give-back or a change whose answer is lost is told as unknown, and not made again", async () => {
  await withLostAnswers(async ({ store, lose, floor }) => {
    const back = { tag: "t", from: 6n, to: 10n, version: 1n };
    expect(await reasonOf(lose(() => store.giveBack([back])))).toBe("STORE_UNAVAILABLE");
    expect(await floor()).toBe(5n);
    expect(await store.giveBack([back])).toEqual([0]);
    const advanced = lose(() => store.advanceTag("t", 50n, FREE));
    expect(await reasonOf(advanced)).toBe("STORE_UNAVAILABLE");
    expect(await floor()).toBe(50n);
    expect((await granted(store, "t")).base).toBe(51n);
  });
});
