// Fencing tokens under every order of what nodes do: each grant has its own, and later ones are larger, also when locks run
// out while their holders still believe in them, when different majorities answer, and when a token source goes back. An
// honest source is never told to have gone back.
import fc from "fast-check";
import { expect, test } from "vitest";
import { CoordinationError } from "../../src/errors.ts";
import { takeOnce } from "../../src/lock/acquire.ts";
import { nodeRuntime } from "../../src/time.ts";
import { FakeNode } from "./fake-nodes.ts";

interface Grant {
  readonly token: bigint;
  /** Steps of the test at which the attempt began and at which it had succeeded. */
  readonly begun: number;
  readonly done: number;
}

test.for([1, 3, 5])("tokens of %i nodes differ and rise", async (nodeCount) => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.bigInt({ min: 0n, max: 20n }), { minLength: nodeCount, maxLength: nodeCount }),
      // When locks run out, at which node; and which nodes are down when.
      fc.array(fc.tuple(fc.nat(nodeCount - 1), fc.constantFrom("expire", "down", "up")), {
        maxLength: 25,
      }),
      fc.constantFrom("nodes", "source", "broken source"),
      // What a broken source answers, one number for each attempt.
      fc.array(fc.bigInt({ min: 101n, max: 106n }), { minLength: 9, maxLength: 9 }),
      async (scheduler, counters, accidents, minter, answers) => {
        const isExternal = minter !== "nodes";
        const nodes = counters.map(
          (counter, i) =>
            new FakeNode(
              `n${i}`,
              (what) => scheduler.schedule(Promise.resolve(), what),
              isExternal ? 0n : counter,
            ),
        );
        let external = 100n;
        let asked = 0;
        let step = 0;
        const grants: Grant[] = [];
        const contender = async (id: number): Promise<void> => {
          for (let attempt = 0; attempt < 3; attempt++) {
            const begun = ++step;
            const claim = { lock: "l", owner: `${id}-${attempt}`, ttlMs: 60_000 };
            const taken = await takeOnce({
              nodes,
              claim,
              limits: { timeoutMs: 1_000 },
              tokenSource: isExternal
                ? async () => {
                    await scheduler.schedule(Promise.resolve(), "source");
                    return minter === "source" ? ++external : answers[asked++]!;
                  }
                : undefined,
              runtime: nodeRuntime,
            }).catch((error: unknown) => {
              if (!(error instanceof CoordinationError)) throw error;
              const isTold = minter === "broken source" && error.reason === "TOKEN_WENT_BACK";
              if (error.retryable || isTold) return undefined;
              throw error;
            });
            if (taken === undefined) continue;
            grants.push({ token: taken.token, begun, done: ++step });
            for (const node of nodes) void node.release(claim).catch(() => undefined);
          }
        };
        const all = Promise.all([contender(1), contender(2), contender(3)]);
        const accident = async (): Promise<void> => {
          for (const [index, what] of accidents) {
            await scheduler.schedule(Promise.resolve(), what);
            const node = nodes[index]!;
            if (what === "expire") node.owner = undefined;
            else
              node.isDown = what === "down" && nodes.filter((n) => n.isDown).length < nodeCount / 2;
          }
        };
        void accident();
        await scheduler.waitFor(all);
        expect(new Set(grants.map(({ token }) => token)).size).toBe(grants.length);
        for (const earlier of grants) {
          for (const later of grants) {
            if (earlier.done < later.begun) expect(later.token > earlier.token).toBe(true);
          }
        }
      },
    ),
    { numRuns: 450 },
  );
});
