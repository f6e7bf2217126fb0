import { expect } from "vitest";
import { takeOnce } from "../../src/lock/acquire.ts";
import type { LockNode } from "../../src/lock/lock-node.ts";
import type { TokenSource } from "../../src/lock/options.ts";
import { nodeRuntime } from "../../src/time.ts";
import { failure } from "../support.ts";

/**
 * Attempt `early` gets its token while its `take` at the third node is still on its way. Its lock runs out at the second
 * node, and `late` is granted its token by the second and the third, and releases. Only then does the `take` of `early`
 * arrive. Answers the error of `early`.
 */
export async function loseToLateTake(
  [n0, n1, n2]: readonly [LockNode, LockNode, LockNode],
  lock: string,
  tokens: { readonly early: bigint; readonly late: bigint },
): ReturnType<typeof failure> {
  const limits = { timeoutMs: 5_000 };
  const attempt = { limits, runtime: nodeRuntime };
  const asked = Promise.withResolvers<undefined>();
  const mayArrive = Promise.withResolvers<undefined>();
  const arrived = Promise.withResolvers<undefined>();
  const slow: LockNode = {
    ...n2,
    take: async (...args) => {
      await mayArrive.promise;
      const counter = await n2.take(...args);
      arrived.resolve(undefined);
      return counter;
    },
  };
  const slowly: TokenSource = async () => {
    asked.resolve(undefined);
    await arrived.promise;
    return tokens.early;
  };
  const early = { lock, owner: "early", ttlMs: 60_000 };
  const late = { lock, owner: "late", ttlMs: 60_000 };
  const lost = failure(
    takeOnce({ ...attempt, nodes: [n0, n1, slow], claim: early, tokenSource: slowly }),
  );
  await asked.promise;
  expect(await n1.release(early, limits)).toBe(true);
  const tokenSource = async (): Promise<bigint> => tokens.late;
  const granted = await takeOnce({ ...attempt, nodes: [n0, n1, n2], claim: late, tokenSource });
  expect(granted.token).toBe(tokens.late);
  for (const node of [n1, n2]) expect(await node.release(late, limits)).toBe(true);
  mayArrive.resolve(undefined);
  return lost;
}
