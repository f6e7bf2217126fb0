// How far tags had counted in Redis.
import type { RedisMark, Store } from "@idmint/core/server";
import { expect } from "vitest";
import { redisSequenceOf, type Suite } from "./support.ts";

const at = (tag: string, generation: bigint, mark: bigint): RedisMark => ({
  tag,
  generation,
  mark,
});

/** What is kept of these generations, not of higher ones, as `tag:generation:mark`. */
async function kept(store: Store, ...which: readonly [string, bigint][]): Promise<string[]> {
  const asked = which.map(([tag, generation]) => ({ tag, generation }));
  const marks = await store.exchangeMarks([], asked);
  const isAsked = ({ tag, generation }: RedisMark): boolean =>
    which.some(([name, number]) => name === tag && number === generation);
  return marks
    .filter(isAsked)
    .map(({ tag, generation, mark }) => `${tag}:${generation}:${mark}`)
    .toSorted();
}

export function markCases(suite: Suite): void {
  suite("a mark rises, never falls, and is each server's to read", async (store, open) => {
    const other = await open();
    await store.exchangeMarks([at("t", 5n, 10n), at("u", 1n, 0n)], []);
    await other.exchangeMarks([at("t", 5n, 7n)], []);
    expect(await kept(other, ["t", 5n], ["u", 1n], ["none", 1n])).toEqual(["t:5:10", "u:1:0"]);
    await other.exchangeMarks([at("t", 5n, 2n ** 62n)], []);
    expect(await kept(store, ["t", 5n])).toEqual([`t:5:${2n ** 62n}`]);
  });

  suite(
    "marks of different generations are kept apart, the eight highest of a tag",
    async (store) => {
      for (let generation = 20n; generation > 0n; generation--) {
        await store.exchangeMarks([at("down", generation, generation)], []);
      }
      for (let generation = 1n; generation <= 20n; generation++) {
        await store.exchangeMarks([at("up", generation, 100n - generation), at("v", 1n, 1n)], []);
      }
      for (const tag of ["up", "down"]) {
        const left: string[] = [];
        for (let generation = 1n; generation <= 20n; generation++) {
          left.push(...(await kept(store, [tag, generation])));
        }
        expect(left.map((one) => one.split(":")[1])).toEqual([
          "13",
          "14",
          "15",
          "16",
          "17",
          "18",
          "19",
          "20",
        ]);
      }
      expect(await kept(store, ["up", 13n], ["v", 1n])).toEqual(["up:13:87", "v:1:1"]);
      const above = await store.exchangeMarks([], [{ tag: "up", generation: 18n }]);
      expect(new Set(above.map(({ generation }) => generation))).toEqual(new Set([18n, 19n, 20n]));
    },
  );

  suite("marks of many servers at once are the highest of each", async (first, open) => {
    const handles = [first, await open(), await open()];
    const tags = Array.from({ length: 200 }, (_, index) => `t${index}`);
    await Promise.all(
      handles.map(async (handle, server) => {
        for (let round = 0; round < 5; round++) {
          const risen = tags.map((tag) => at(tag, 1n, BigInt(round * 10 + server)));
          if (server === 1) risen.reverse();
          await handle.exchangeMarks(risen, [{ tag: "t0", generation: 1n }]);
        }
      }),
    );
    const asked = tags.map((tag) => ({ tag, generation: 1n }));
    const marks = await first.exchangeMarks([], asked);
    expect(new Set(marks.map(({ mark }) => mark))).toEqual(new Set([42n]));
    expect(marks).toHaveLength(200);
  });

  suite("marks change neither revision nor version of anything", async (store) => {
    await store.createTag(redisSequenceOf("t"));
    const query = { since: 0n, watched: [], limit: 10 };
    const before = await store.changes(query);
    await store.exchangeMarks([at("t", 0n, 5n)], [{ tag: "t", generation: 0n }]);
    const { nowMs: _, ...after } = await store.changes(query);
    expect(before).toMatchObject(after);
    expect(await store.getTags(["t"])).toMatchObject([{ version: 0n, epoch: 1n, floor: 0n }]);
  });
}
