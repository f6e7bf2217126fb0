// Bounds of tags that count in Redis.
import { MAX_ID } from "@idmint/core";
import { expect } from "vitest";
import {
  assertDisjoint,
  FREE,
  NO_CHECK,
  raised,
  raiseOf,
  redisSequenceOf,
  redisSnowflakeOf,
  sequenceOf,
  settingsOf,
  type Suite,
  ticketOf,
} from "./support.ts";

export function raiseCases(suite: Suite): void {
  suite("a raise is the range above the floor, and the row tells", async (store) => {
    await store.createTag(redisSequenceOf("t"));
    expect(await raised(store, "t", { by: 100n })).toEqual({
      outcome: "raised",
      tag: "t",
      before: 0n,
      floor: 100n,
      generation: 0n,
      version: 1n,
      epoch: 1n,
    });
    expect(await raised(store, "t", { by: 5n, newGeneration: true })).toMatchObject({
      before: 100n,
      floor: 105n,
      generation: 1n,
      version: 2n,
    });
    const [row] = await store.getTags(["t"]);
    expect(row).toMatchObject({ floor: 105n, generation: 1n, version: 2n, epoch: 1n });
  });

  suite("a raise to at least a bound never lowers one", async (store) => {
    await store.createTag(redisSnowflakeOf("t"));
    const far = 2n ** 62n;
    expect(await raised(store, "t", { atLeast: far })).toMatchObject({ before: 0n, floor: far });
    expect(await raised(store, "t", { atLeast: 5n })).toMatchObject({ before: far, floor: far });
    const both = await raised(store, "t", { by: 10n, atLeast: far + 3n });
    expect([both.before, both.floor]).toEqual([far, far + 10n]);
    expect((await raised(store, "t", { by: 1n, atLeast: far + 50n })).floor).toBe(far + 50n);
  });

  suite("a raise ends at the ceiling, and there it is refused", async (store) => {
    await store.createTag(redisSequenceOf("t", { ceiling: 100n }));
    await raised(store, "t", { by: 90n });
    expect(await raised(store, "t", { by: MAX_ID })).toMatchObject({ before: 90n, floor: 100n });
    const more = raiseOf("t", { by: 1n, newGeneration: true });
    expect(await store.raise(more)).toMatchObject({ reason: "TAG_EXHAUSTED" });
    expect((await store.getTags(["t"]))[0]).toMatchObject({ generation: 0n, version: 2n });
    await store.createTag(redisSnowflakeOf("end"));
    expect((await raised(store, "end", { atLeast: MAX_ID })).floor).toBe(MAX_ID);
  });

  suite("only tags that count in Redis are raised", async (store) => {
    const others = [settingsOf("segment"), sequenceOf("sequence"), ticketOf("ticket")];
    for (const settings of others) {
      await store.createTag(settings);
      const answer = await store.raise(raiseOf(settings.name, { by: 1n }));
      expect(answer).toMatchObject({ outcome: "refused", reason: "WRONG_KIND" });
    }
  });

  suite("a raise is refused for the reasons of every tag", async (store) => {
    const why = async (seenVersion = 0n): Promise<unknown> => {
      const answer = await store.raise(raiseOf("t", { by: 1n, seenVersion }));
      return answer.outcome === "refused" ? answer.reason : answer.version;
    };
    expect(await why()).toBe("TAG_NOT_FOUND");
    expect(await why(1n)).toBe("STORE_EPOCH_CHANGED");
    await store.createTag(redisSequenceOf("t"));
    expect(await why()).toBe(1n);
    expect(await why(2n)).toBe("STORE_EPOCH_CHANGED");
    expect(await why(1n)).toBe(2n);
    await store.setTagState("t", "PAUSED", NO_CHECK);
    expect(await why()).toBe("TAG_PAUSED");
    await store.setTagState("t", "DELETED", NO_CHECK);
    expect(await why()).toBe("TAG_NOT_FOUND");
    expect(await why(3n)).toBe("STORE_EPOCH_CHANGED");
  });

  suite("raises of several handles at once share nothing", async (first, open) => {
    const handles = [first, await open(), await open()];
    await first.createTag(redisSequenceOf("t"));
    const ranges: { from: bigint; to: bigint }[] = [];
    const generations: bigint[] = [];
    await Promise.all(
      handles.map(async (handle) => {
        for (let round = 0; round < 30; round++) {
          const newGeneration = round % 3 === 0;
          const answer = await raised(handle, "t", { by: 7n, newGeneration });
          ranges.push({ from: answer.before + 1n, to: answer.floor });
          if (newGeneration) generations.push(answer.generation);
        }
      }),
    );
    assertDisjoint(ranges);
    expect(ranges.every(({ from, to }) => to - from === 6n)).toBe(true);
    expect(new Set(generations).size).toBe(30);
  });

  suite("whatever moves the floor besides a raise gives Redis a new start", async (store) => {
    await store.createTag(redisSequenceOf("t"));
    await raised(store, "t", { by: 10n, newGeneration: true });
    expect((await store.advanceTag("t", 5n, FREE)).tag.generation).toBe(1n);
    const would = await store.advanceTag("t", 20n, { ...FREE, validateOnly: true });
    expect(would.tag.generation).toBe(2n);
    expect((await store.getTags(["t"]))[0]?.generation).toBe(1n);
    expect((await store.advanceTag("t", 20n, FREE)).tag.generation).toBe(2n);
    await store.accept(100n);
    const [accepted] = await store.getTags(["t"]);
    expect(accepted?.floor).toBe(120n);
    // The lost history may have begun the one that follows.
    const generation = accepted?.generation ?? 0n;
    expect(generation).toBeGreaterThan(3n);
    await store.setTagState("t", "DELETED", NO_CHECK);
    const again = await store.createTag(redisSequenceOf("t"));
    expect(again).toMatchObject({ generation: generation + 1n, floor: 120n });
    expect(await raised(store, "t", { by: 1n })).toMatchObject({
      before: 120n,
      generation: generation + 1n,
    });
  });

  suite(
    "a new generation is at least the one that is asked for, and above the old one",
    async (store) => {
      await store.createTag(redisSequenceOf("t"));
      const next = async (generationFrom: bigint, newGeneration = true): Promise<bigint> =>
        (await raised(store, "t", { by: 1n, newGeneration, generationFrom })).generation;
      expect(await next(100n)).toBe(100n);
      expect(await next(100n)).toBe(101n);
      expect(await next(50n)).toBe(102n);
      expect(await next(500n, false)).toBe(102n);
      expect(await next(2n ** 40n)).toBe(2n ** 40n);
    },
  );

  suite("a name that counted elsewhere in between keeps its generation", async (store) => {
    await store.createTag(redisSequenceOf("t"));
    await raised(store, "t", { by: 10n, newGeneration: true });
    await store.setTagState("t", "DELETED", NO_CHECK);
    await store.createTag(settingsOf("t"));
    await store.setTagState("t", "DELETED", NO_CHECK);
    expect((await store.createTag(redisSequenceOf("t"))).generation).toBeGreaterThan(1n);
  });
}
