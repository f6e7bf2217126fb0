// What an accept makes of claims where it is several transactions; the suite of stores has the rest.
import { randomUUID } from "node:crypto";
import { acceptAsking, type AcceptReport, type Claim, type Store } from "@idmint/core/server";
import { granted, settingsOf } from "@idmint/testkit/store-suite";
import { expect, onTestFinished, test, vi } from "vitest";
import { storeStatus } from "../../../src/store/open-store.ts";
import { Session } from "../../../src/store/etcd/session/etcd.ts";
import { Poller } from "../poller.ts";
import { type EtcdHarness, etcdHarness, setByHand } from "./harness.ts";

const ASK_MS = 60_000;
const TIMES = { leastMs: 200, mostMs: 10_000, longestMs: 20_000, pauseMs: 2_000 };

async function opened(harness: EtcdHarness): Promise<Store> {
  const store = await harness.open();
  onTestFinished(() => store.close());
  return store;
}

/** A server that was granted 50 ids of `t`. */
async function served(): Promise<{ harness: EtcdHarness; operator: Store; server: Poller }> {
  const harness = await etcdHarness();
  const operator = await opened(harness);
  await operator.createTag(settingsOf("t"));
  const server = await Poller.open(harness.config);
  await server.poll();
  for (let grants = 0; grants < 5; grants++) await server.grant("t");
  return { harness, operator, server };
}

function accepting(store: Store, gap: bigint): Promise<AcceptReport> {
  const clock = { now: () => performance.now() };
  const timers = {
    after: (ms: number, run: () => void) => {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  };
  return acceptAsking({ store, clock, timers, nonce: randomUUID(), times: TIMES }, { gap });
}

function claimOf(tag: string, last: bigint): Claim {
  return { tag, period: "", last };
}

async function take(store: Store, nonce: string) {
  return store.accept(0n, undefined, undefined, undefined, { nonce, look: 0, isTrusted: false });
}

async function revisionOf({ gateway, config }: EtcdHarness, name: string): Promise<number> {
  return gateway.revisionOf(`${config.prefix}${name}`);
}

test("after a floor was set back by hand an accept without a gap starts above what a server was granted", async () => {
  const { harness, operator, server } = await served();
  await setByHand(harness, "t", { floor: "10" });
  // It marks the store, which takes claims all the same.
  await server.poll();
  expect((await storeStatus(harness.config)).fenced).not.toBe("");
  const report = accepting(operator, 0n);
  const ask = async () => (await server.poll()).parts[0]?.ask;
  await expect.poll(ask, { timeout: 10_000 }).toBeDefined();
  expect(await server.speak((await ask()) ?? "")).toBe("heard");
  expect(await report).toMatchObject({
    tags: 1,
    claims: { raised: 1, most: { tag: "t", by: 40n }, servers: [{ told: "all" }] },
  });
  expect((await granted(await opened(harness), "t")).base).toBe(51n);
  expect((await server.poll()).fenced).toBe("");
  expect(await server.grant("t")).toBe(61n);
});

test("what is claimed after an accept has read claims, and before it begins, is taken too", async () => {
  const { harness, operator, server } = await served();
  await setByHand(harness, "t", { floor: "10" });
  await operator.askForClaims("a", ASK_MS);
  // It looks at all tags between the two.
  vi.spyOn(Session.prototype, "read").mockImplementationOnce(async function (
    this: Session,
    ...args
  ) {
    const before = await this.read(...args);
    expect(await server.speak("a")).toBe("heard");
    return before;
  });
  const { claims } = await take(operator, "a").finally(() => vi.restoreAllMocks());
  expect(claims).toMatchObject({ raised: 1, claimants: [{ hasSpoken: true }] });
  expect((await granted(operator, "t")).base).toBe(51n);
});

test("claims below floors are not kept, whether a page names most of the tags or few", async () => {
  const harness = await etcdHarness();
  const operator = await opened(harness);
  const names = Array.from({ length: 20 }, (_, at) => `t${String(at).padStart(2, "0")}`);
  for (const name of names) await operator.createTag(settingsOf(name));
  for (const name of names) await granted(operator, name);
  await operator.askForClaims("a", ASK_MS);
  const claimant = { id: "s", instance: "s", address: "", sinceMs: 0, isWhole: true };
  const pages = [
    [claimOf("t00", 10n), claimOf("t01", 11n), claimOf("t02", 9n)],
    [claimOf("t19", 10n), claimOf("t05", 11n)],
    [claimOf("t10", 11n), claimOf("gone", 1n), claimOf("zz", 2n)],
    [],
  ];
  for (const [page, claims] of pages.entries()) {
    const isLast = page === pages.length - 1;
    expect(await operator.claim({ nonce: "a", claimant, claims, page, isLast })).toBe("heard");
  }
  const kept = await harness.gateway.under(`${harness.config.prefix}claim/`);
  expect(kept.map(({ value }) => JSON.parse(value) as unknown)).toEqual([
    [["t01", "", "11"]],
    [["t05", "", "11"]],
    [
      ["t10", "", "11"],
      ["gone", "", "1"],
      ["zz", "", "2"],
    ],
    [],
  ]);
});

test("what is claimed once an accept has begun is not heard", async () => {
  const { harness, operator, server } = await served();
  await operator.askForClaims("a", ASK_MS);
  vi.spyOn(Session.prototype, "write").mockImplementationOnce(async function (
    this: Session,
    ...args
  ) {
    await this.write(...args);
    expect(await server.speak("a")).toBe("not-asked");
    throw new Error("interrupted");
  });
  await expect(take(operator, "a")).rejects.toThrow("the store failed");
  vi.restoreAllMocks();
  // The store is closed, and can be asked again.
  expect((await storeStatus(harness.config)).fenced).toContain("run it again");
  await setByHand(harness, "t", { floor: "10" });
  expect(await operator.askForClaims("b", ASK_MS)).toMatchObject({ outcome: "asked" });
  expect(await server.speak("b")).toBe("heard");
  expect((await take(operator, "b")).claims).toMatchObject({ raised: 1 });
  expect((await granted(operator, "t")).base).toBe(51n);
});

test("an ask and what is claimed hide nothing of a store that went back, and leave nothing", async () => {
  const { harness, operator, server } = await served();
  const { gateway, config } = harness;
  const written = await revisionOf(harness, "room");
  await setByHand(harness, "t", { floor: "10" });
  await operator.askForClaims("a", ASK_MS);
  expect(await server.speak("a")).toBe("heard");
  expect(await gateway.under(`${config.prefix}claim`)).toHaveLength(2);
  expect(await revisionOf(harness, "room")).toBe(written);
  await operator.withdrawAsk("a");
  expect(await revisionOf(harness, "room")).toBe(written);
  for (const name of ["ask", "claim"]) {
    expect(await gateway.under(`${config.prefix}${name}`)).toEqual([]);
  }
});
