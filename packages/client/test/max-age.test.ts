// Ids end at their max_age also while the event loop does not turn, so that no timer can run.
import { expect, onTestFinished, test } from "vitest";
import { createIdClient, type IdTag } from "../src/index.ts";
import { startFleet } from "./fake-fleet.ts";
import { thrown } from "./support.ts";

const MAX_AGE_MS = 400;
/** Most ids that a stride of looks at the clock may add, for a process that stopped in the middle of it. */
const STRIDE = 1_024;

async function warmTag(): Promise<{ tag: IdTag; warmAt: number }> {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders", { maxAgeMs: MAX_AGE_MS });
  const client = createIdClient({ address: servers[0]!.address, min: 500_000 });
  onTestFinished(() => client.close());
  const tag = client.tag("orders");
  await tag.warm();
  return { tag, warmAt: performance.now() };
}

function keepBusy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

for (const [name, issue] of [
  ["nextSync", (tag) => tag.nextSync()],
  ["nextNumberSync", (tag) => tag.nextNumberSync()],
  ["nextStringSync", (tag) => tag.nextStringSync()],
] as const satisfies [string, (tag: IdTag) => unknown][]) {
  test(`${name} between long computations refuses what is past max_age`, async () => {
    const { tag, warmAt } = await warmTag();
    const lateIds: unknown[] = [];
    const error = thrown(() => {
      for (let i = 0; i < 40; i++) {
        const isLate = performance.now() - warmAt >= MAX_AGE_MS;
        const id = issue(tag);
        if (isLate) lateIds.push(id);
        keepBusy(20);
      }
    });
    expect(error.reason).toBe("SEGMENT_NOT_READY");
    expect(lateIds).toEqual([]);
  });
}

test("a loop of nextSync goes on past max_age for less than one stride", async () => {
  const { tag, warmAt } = await warmTag();
  let late = 0;
  const issue = (): bigint => {
    if (performance.now() - warmAt >= MAX_AGE_MS) late++;
    keepBusy(0.005);
    return tag.nextSync();
  };
  const error = thrown(() => {
    for (let i = 0; i < 500_000; i++) issue();
  });
  expect(error.reason).toBe("SEGMENT_NOT_READY");
  expect(late).toBeLessThanOrEqual(STRIDE);
});

test("a loop of awaited calls, too, and then waits for new ids", async () => {
  const { tag, warmAt } = await warmTag();
  let late = 0;
  let last = 0n;
  // The next segment begins with the next block of the server.
  while (last < 500_000n) {
    if (performance.now() - warmAt >= MAX_AGE_MS) late++;
    keepBusy(0.005);
    last = await tag.next();
  }
  expect(late).toBeLessThanOrEqual(STRIDE + 1);
});
