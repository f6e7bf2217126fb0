// Sequences that count in the store.
import { MAX_ID } from "@idmint/core";
import type { Granted } from "@idmint/core/server";
import { expect } from "vitest";
import {
  assertSeamless,
  FREE,
  granted,
  grantedOf,
  NO_CHECK,
  redisSequenceOf,
  redisSnowflakeOf,
  refusal,
  refusalOf,
  sequenceOf,
  sequenceRequest,
  settingsOf,
  type Suite,
  ticketOf,
  wish,
} from "./support.ts";

export function sequenceCases(suite: Suite): void {
  suite("ids of a sequence follow each other from its start", async (store) => {
    await store.createTag(sequenceOf("t", { start: 7n }));
    expect(await grantedOf(store, "t")).toEqual({
      outcome: "granted",
      tag: "t",
      base: 7n,
      count: 1,
      version: 1n,
      epoch: 1n,
      period: undefined,
    });
    expect(await grantedOf(store, "t", 5)).toMatchObject({ base: 8n, count: 5, version: 2n });
    const [row] = await store.getTags(["t"]);
    expect(row).toMatchObject({ floor: 12n, version: 2n, periodStart: "", generation: 0n });
  });

  suite("ids of a sequence are exact up to 2^63 − 1, and no further", async (store) => {
    await store.createTag(sequenceOf("t", { start: MAX_ID - 2n }));
    expect((await grantedOf(store, "t", 3)).base).toBe(MAX_ID - 2n);
    expect(await refusalOf(store, "t")).toBe("TAG_EXHAUSTED");
  });

  suite("a sequence grants all that is wanted or nothing", async (store) => {
    await store.createTag(sequenceOf("t", { ceiling: 5n }));
    expect(await refusalOf(store, "t", 6)).toBe("TAG_EXHAUSTED");
    const part = wish("t", { kind: "sequence", count: 6, minCount: 5 });
    await expect((async () => store.grant([part]))()).rejects.toThrow(RangeError);
    expect(await grantedOf(store, "t", 5)).toMatchObject({ base: 1n, version: 1n });
    expect(await refusalOf(store, "t")).toBe("TAG_EXHAUSTED");
  });

  suite("a tag is granted only as the kind it is", async (store) => {
    await store.createTag(settingsOf("segment"));
    await store.createTag(sequenceOf("sequence"));
    await store.createTag(redisSequenceOf("redis"));
    await store.createTag(redisSnowflakeOf("snowflake"));
    await store.createTag(ticketOf("ticket"));
    const others = ["segment", "redis", "snowflake", "ticket"];
    for (const tag of others) expect(await refusalOf(store, tag)).toBe("WRONG_KIND");
    for (const tag of ["sequence", ...others.slice(1)]) {
      expect(await refusal(store, tag)).toBe("WRONG_KIND");
    }
    const grants = await store.grant([sequenceRequest("sequence", 2), wish("segment")]);
    expect(grants).toMatchObject([
      { outcome: "granted", base: 1n, count: 2 },
      { outcome: "granted", base: 1n, count: 10 },
    ]);
  });

  suite("a sequence is refused for the reasons of every tag", async (store) => {
    expect(await refusalOf(store, "t")).toBe("TAG_NOT_FOUND");
    await store.createTag(sequenceOf("t"));
    await grantedOf(store, "t");
    expect(await refusalOf(store, "t", 1, 2n)).toBe("STORE_EPOCH_CHANGED");
    expect((await grantedOf(store, "t", 1, 1n)).version).toBe(2n);
    await store.setTagState("t", "PAUSED", NO_CHECK);
    expect(await refusalOf(store, "t")).toBe("TAG_PAUSED");
    await store.setTagState("t", "DELETED", NO_CHECK);
    expect(await refusalOf(store, "t")).toBe("TAG_NOT_FOUND");
    expect(await refusalOf(store, "t", 1, 3n)).toBe("STORE_EPOCH_CHANGED");
  });

  suite("an advanced sequence goes on above its floor, in a new epoch", async (store) => {
    await store.createTag(sequenceOf("t"));
    await store.advanceTag("t", 100n, FREE);
    expect(await grantedOf(store, "t")).toMatchObject({ base: 101n, epoch: 2n });
    const [row] = await store.getTags(["t"]);
    expect(row?.generation).toBe(0n);
  });

  suite("no id of a sequence goes back", async (store) => {
    await store.createTag(sequenceOf("t"));
    const { version } = await grantedOf(store, "t", 10);
    expect(await store.giveBack([{ tag: "t", from: 5n, to: 10n, version }])).toEqual([0]);
    expect((await grantedOf(store, "t")).base).toBe(11n);
  });

  suite(
    "grants of a sequence by several handles at once follow each other",
    async (first, open) => {
      const handles = [first, await open(), await open()];
      await first.createTag(sequenceOf("t"));
      await first.createTag(settingsOf("s"));
      const grants: Granted[] = [];
      let answered = 0n;
      await Promise.all(
        handles.map(async (handle, at) => {
          for (let round = 0; round < 40; round++) {
            // Strict: what is asked for after an answer is above it, whoever asked.
            const before = answered;
            const asked = [sequenceRequest("t", 1 + ((round + at) % 5)), wish("s")];
            const [grant] = await handle.grant(asked);
            if (grant?.outcome !== "granted") throw new Error(grant?.outcome);
            expect(grant.base).toBeGreaterThan(before);
            const last = grant.base + BigInt(grant.count) - 1n;
            if (last > answered) answered = last;
            grants.push(grant);
          }
        }),
      );
      assertSeamless(grants);
      expect(await granted(first, "s")).toMatchObject({ base: 1_201n });
    },
  );
}
