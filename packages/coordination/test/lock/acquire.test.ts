import { expect, test } from "vitest";
import { CoordinationError } from "../../src/errors.ts";
import { takeOnce } from "../../src/lock/acquire.ts";
import type { TokenSource } from "../../src/lock/options.ts";
import { nodeRuntime } from "../../src/time.ts";
import { FakeRuntime, settle } from "../fake-runtime.ts";
import { FakeNode } from "./fake-nodes.ts";
import { loseToLateTake } from "./late-take.ts";

const now = async (): Promise<void> => undefined;

function fiveNodes(): FakeNode[] {
  return [7n, 3n, 9n, 0n, 2n].map((counter, i) => new FakeNode(`n${i}`, now, counter));
}

async function take(
  nodes: readonly FakeNode[],
  tokenSource?: TokenSource,
): Promise<bigint | CoordinationError> {
  const claim = { lock: "l", owner: "me", ttlMs: 10_000 };
  const limits = { timeoutMs: 1_000 };
  const attempt = { nodes, claim, limits, tokenSource, runtime: nodeRuntime };
  try {
    return (await takeOnce(attempt)).token;
  } catch (error) {
    if (error instanceof CoordinationError) return error;
    throw error;
  }
}

test("the token is the largest counter of a majority, and a majority knows it", async () => {
  const nodes = fiveNodes();
  const token = await take(nodes);
  expect(token).toBe(10n);
  expect(nodes.filter(({ counter }) => counter === 10n).length).toBeGreaterThanOrEqual(3);
});

test("two nodes down of five are borne, three are refused with each one's cause", async () => {
  const nodes = fiveNodes();
  nodes[0]!.isDown = true;
  nodes[3]!.isDown = true;
  expect(await take(nodes)).toBe(10n);
  const others = fiveNodes();
  for (const i of [0, 3, 4]) others[i]!.isDown = true;
  const error = await take(others);
  expect(error).toMatchObject({ reason: "NO_MAJORITY", code: "UNAVAILABLE", retryable: true });
  const { nodes: causes } = error as CoordinationError;
  expect(causes.map(({ node, error: { reason } }) => [node, reason])).toEqual([
    ["n0", "NODE_UNAVAILABLE"],
    ["n3", "NODE_UNAVAILABLE"],
    ["n4", "NODE_UNAVAILABLE"],
  ]);
  await settle();
  expect(others.map(({ owner }) => owner)).toEqual(Array(5).fill(undefined));
});

test("a split vote is nobody's, and is freed", async () => {
  const nodes = fiveNodes();
  for (const i of [0, 1, 2]) nodes[i]!.owner = "other";
  expect(await take(nodes)).toMatchObject({ reason: "LOCK_HELD" });
  await settle();
  expect(nodes.map(({ owner }) => owner)).toEqual([
    "other",
    "other",
    "other",
    undefined,
    undefined,
  ]);
});

test("an outside token is given out only above the last one", async () => {
  const nodes = fiveNodes();
  expect(await take(nodes, async () => 11n)).toBe(11n);
  for (const node of nodes) node.owner = undefined;
  expect(await take(nodes, async () => 11n)).toMatchObject({ reason: "TOKEN_WENT_BACK" });
  await settle();
  expect(await take(nodes, async () => 12n)).toBe(12n);
  for (const node of nodes) node.owner = undefined;
  expect(await take(nodes, async () => 0n)).toMatchObject({ reason: "TOKEN_WENT_BACK" });
});

test("a source that went back is told whichever majority answers", async () => {
  const nodes = fiveNodes();
  for (const i of [0, 1]) nodes[i]!.isDown = true;
  expect(await take(nodes, async () => 20n)).toBe(20n);
  for (const i of [2, 3, 4]) nodes[i]!.owner = undefined;
  const pairs = nodes.flatMap((a, i) => nodes.slice(i + 1).map((b) => [a, b] as const));
  for (const pair of pairs) {
    for (const node of nodes) node.isDown = pair.includes(node);
    const error = await take(nodes, async () => 19n);
    expect(error).toMatchObject({
      reason: "TOKEN_WENT_BACK",
      retryable: false,
      metadata: { lock: "l" },
    });
    expect(String(error)).toContain('token 19 of lock "l" is not above 20');
    await settle();
    expect(nodes.map(({ owner }) => owner)).toEqual(Array(5).fill(undefined));
  }
});

test.each([
  ["a token that a later one overtook is a lost race, not a source that went back", 102n],
  ["a token that a source repeats to who takes late is not given out twice", 101n],
])("%s", async (_what, late) => {
  const nodes = [0, 1, 2].map((i) => new FakeNode(`n${i}`, now)) as [FakeNode, FakeNode, FakeNode];
  expect(await loseToLateTake(nodes, "l", { early: 101n, late })).toMatchObject({
    reason: "LOCK_HELD",
    retryable: true,
  });
  await settle();
  expect(nodes.map(({ owner }) => owner)).toEqual(Array(3).fill(undefined));
  expect(await take(nodes, async () => 103n)).toBe(103n);
});

test.each([1, 5])(
  "a lock whose time was over before it was taken on %s nodes is nobody's, and is freed",
  async (count) => {
    const runtime = new FakeRuntime();
    const ttlMs = 1_000;
    // Every answer comes in its time, and the last one too late: 0.99 of the ttl is what a lock is surely held for.
    for (const [answerMs, isTaken] of [
      [400, true],
      [1_000, false],
    ] as const) {
      let isFirst = true;
      const slow = async (what: string): Promise<void> => {
        if (!what.startsWith("n0") || !isFirst) return;
        isFirst = false;
        runtime.time.advance(answerMs);
      };
      const nodes = Array.from({ length: count }, (_, i) => new FakeNode(`n${i}`, slow));
      const claim = { lock: "l", owner: "me", ttlMs };
      const limits = { timeoutMs: 500 };
      const attempt = { nodes, claim, limits, tokenSource: undefined, runtime };
      const answer = await takeOnce(attempt).catch((thrown: unknown) => thrown);
      await settle();
      const owners = new Set(nodes.map(({ owner }) => owner));
      if (isTaken) {
        expect(answer).toMatchObject({ token: 1n });
        expect(owners).toEqual(new Set(["me"]));
      } else {
        expect(answer).toMatchObject({ reason: "NO_MAJORITY", metadata: { lock: "l" } });
        expect(owners).toEqual(new Set([undefined]));
      }
    }
  },
);
