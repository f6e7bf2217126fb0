import { IdmintError } from "@idmint/core";
import { type Grant, type GrantRequest, VersionGuard } from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { createCounters } from "../../../src/service/counters.ts";
import { Grants } from "../../../src/service/upstream/grants.ts";

/** A store whose calls the test answers by hand. */
function setUp(store?: (requests: readonly GrantRequest[]) => Promise<readonly Grant[]>) {
  const calls: { requests: readonly GrantRequest[]; answer: (grants: Grant[]) => void }[] = [];
  const guard = new VersionGuard();
  const wentBack: string[] = [];
  const below: string[] = [];
  const counters = createCounters();
  const time = new FakeTime();
  const grants = new Grants({
    store: {
      maxBatch: 10,
      grant: (requests) => {
        if (store !== undefined) return store(requests);
        const { promise, resolve } = Promise.withResolvers<readonly Grant[]>();
        calls.push({ requests, answer: resolve });
        return promise;
      },
    },
    guard,
    timers: time,
    storeTimeoutMs: 1_000,
    counters,
    emit: () => undefined,
    afterTurn: (run) => queueMicrotask(run),
    onWentBack: (tag) => wentBack.push(tag ?? ""),
    onBelow: (tag) => below.push(tag),
  });
  return { grants, guard, calls, wentBack, below, counters, time };
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};
const wish = (tag: string) =>
  ({ tag, kind: "segment", count: 10, minCount: 1, after: 0n }) as const;
const granted = (tag: string, version: bigint): Grant => ({
  outcome: "granted",
  tag,
  base: 1n,
  count: 10,
  version,
  epoch: 1n,
  period: undefined,
});

async function reasonOf(answer: Promise<unknown>): Promise<string> {
  const error: unknown = await answer.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof IdmintError ? error.reason : "answered";
}

test("loads that begin in one turn are one call of the store", async () => {
  const { grants, calls } = setUp();
  const answers = ["a", "b", "c"].map((tag) => grants.request(wish(tag)));
  await settled();
  expect(calls).toHaveLength(1);
  expect(calls[0]?.requests.map(({ tag }) => tag)).toEqual(["a", "b", "c"]);
  calls[0]?.answer(["a", "b", "c"].map((tag) => granted(tag, 1n)));
  expect((await Promise.all(answers)).map(({ tag }) => tag)).toEqual(["a", "b", "c"]);
});

test("an answer to a call of an earlier history of the store is waste", async () => {
  const { grants, calls, counters } = setUp();
  const early = reasonOf(grants.request(wish("orders")));
  await settled();
  grants.startHistory();
  calls[0]?.answer([granted("orders", 5n)]);
  expect(await early).toBe("SEGMENT_NOT_READY");
  expect(counters.wastedIds).toBe(10);
});

test("a request tells the highest version seen when it is sent, and a grant not above it is not used", async () => {
  const { grants, guard, calls, wentBack } = setUp();
  guard.observe("orders", { version: 7n, epoch: 1n });
  const answer = reasonOf(grants.request(wish("orders")));
  await settled();
  expect(calls[0]?.requests[0]?.seenVersion).toBe(7n);
  calls[0]?.answer([granted("orders", 7n)]);
  expect(await answer).toBe("STORE_EPOCH_CHANGED");
  expect(wentBack).toEqual(["orders"]);
});

test("a refusal of the whole store fences no tag, since a poll shows when it is over", async () => {
  for (const ofStore of [true, false]) {
    const { grants, calls, wentBack } = setUp();
    const answer = reasonOf(grants.request(wish("orders")));
    await settled();
    const reason = "STORE_EPOCH_CHANGED" as const;
    calls[0]?.answer([{ outcome: "refused", tag: "orders", reason, detail: "why", ofStore }]);
    expect(await answer).toBe(reason);
    expect(wentBack).toEqual([ofStore ? "" : "orders"]);
  }
});

test("an answer that does not fit its request is not used", async () => {
  const { grants, calls } = setUp();
  const answer = reasonOf(grants.request(wish("orders")));
  await settled();
  calls[0]?.answer([{ ...granted("orders", 1n), count: 11 } as Grant]);
  expect(await answer).toBe("STORE_UNAVAILABLE");
});

test("a grant that comes too late is waste, and what it says of the store counts all the same", async () => {
  const { grants, calls, wentBack, counters, time } = setUp();
  const given = reasonOf(grants.request(wish("orders")));
  await settled();
  time.advance(1_000);
  expect(await given).toBe("STORE_UNAVAILABLE");
  calls[0]?.answer([granted("orders", 5n)]);
  await settled();
  expect(counters.wastedIds).toBe(10);
  const next = reasonOf(grants.request(wish("orders")));
  await settled();
  // A store that went back behind the grant nobody got is found out by the next request.
  expect(calls[1]?.requests[0]?.seenVersion).toBe(5n);
  calls[1]?.answer([granted("orders", 5n)]);
  expect(await next).toBe("STORE_EPOCH_CHANGED");
  expect(wentBack).toEqual(["orders"]);
});

test("a late grant that is not above what was seen shows that the store went back", async () => {
  const { grants, guard, calls, wentBack, time } = setUp();
  guard.observe("orders", { version: 7n, epoch: 1n });
  const given = reasonOf(grants.request(wish("orders")));
  await settled();
  time.advance(1_000);
  expect(await given).toBe("STORE_UNAVAILABLE");
  calls[0]?.answer([granted("orders", 7n)]);
  await settled();
  expect(wentBack).toEqual(["orders"]);
});

test("ids granted here before are not used, though a grant nobody waited for has raised the version again", async () => {
  const { grants, calls, wentBack, time } = setUp();
  const abandoned = reasonOf(grants.request(wish("orders")));
  await settled();
  time.advance(1_000);
  expect(await abandoned).toBe("STORE_UNAVAILABLE");
  const used = reasonOf(grants.request(wish("orders")));
  await settled();
  calls[1]?.answer([{ ...granted("orders", 2n), base: 11n } as Grant]);
  expect(await used).toBe("answered");
  const next = reasonOf(grants.request(wish("orders")));
  await settled();
  expect(calls[2]?.requests[0]?.seenVersion).toBe(2n);
  // The row went back below both; what was sent first is done now, with fewer ids than the second had.
  calls[0]?.answer([{ ...granted("orders", 2n), base: 11n, count: 5 } as Grant]);
  await settled();
  calls[2]?.answer([{ ...granted("orders", 3n), base: 16n } as Grant]);
  expect(await next).toBe("STORE_EPOCH_CHANGED");
  expect(wentBack).toEqual(["orders"]);
});

test("ids that were granted before an accept are not used, and the store did not go back", async () => {
  const { grants, calls, wentBack, below, counters } = setUp();
  const first = grants.request(wish("t"));
  await settled();
  calls[0]?.answer([granted("t", 7n)]);
  expect(await reasonOf(first)).toBe("answered");
  grants.startHistory();
  const again = grants.request(wish("t"));
  await settled();
  calls[1]?.answer([{ ...granted("t", 8n), epoch: 2n } as Grant]);
  expect(await reasonOf(again)).toBe("SEGMENT_NOT_READY");
  expect(below).toEqual(["t"]);
  expect(wentBack).toEqual([]);
  expect(counters.wastedIds).toBe(10);
});

test("a sequence's floor that was set back under its version shows that the store went back", async () => {
  const { grants, calls, wentBack } = setUp();
  const sequence = { ...wish("s"), kind: "sequence" } as const;
  const first = grants.request(sequence);
  await settled();
  calls[0]?.answer([granted("s", 7n)]);
  await first;
  const again = grants.request(sequence);
  await settled();
  calls[1]?.answer([granted("s", 8n)]);
  expect(await reasonOf(again)).toBe("STORE_EPOCH_CHANGED");
  expect(wentBack).toEqual(["s"]);
});

test("a tag whose row cannot be read is refused, and the others of its batch are granted", async () => {
  const { grants, counters } = setUp(async (requests) => {
    if (requests.some(({ tag }) => tag === "b")) throw new IdmintError("SCHEMA_MISMATCH", "row b");
    return requests.map(({ tag }) => granted(tag, 1n));
  });
  const answers = ["a", "b", "c"].map((tag) => reasonOf(grants.request(wish(tag))));
  expect(await Promise.all(answers)).toEqual(["answered", "SCHEMA_MISMATCH", "answered"]);
  expect(counters.grants).toBe(2);
});
