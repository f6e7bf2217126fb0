// One row that another hand has spoiled: it refuses its tag only, whatever is asked, and an accept names it.
import {
  granted,
  reasonOf,
  sequenceOf,
  sequenceRequest,
  settingsOf,
  type StoreHarness,
  wish,
} from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { askApart } from "../../src/service/upstream/apart.ts";
import { type StoreConfig, storeStatus } from "../../src/store/open-store.ts";
import { acceptAtOnce } from "./accept.ts";

interface SpoiledHarness extends StoreHarness {
  readonly config: StoreConfig;
}

/** What another hand does to rows of tags. */
interface OtherHand<Harness> {
  /** Sets columns of a tag's row to these texts. */
  readonly change: (
    harness: Harness,
    tag: string,
    columns: Readonly<Record<string, string>>,
  ) => Promise<unknown>;
  readonly remove: (harness: Harness, tag: string) => Promise<unknown>;
}

/** Another hand that writes SQL, run by `run`, on `table`. */
export function sqlHand<Harness>(
  table: string,
  run: (harness: Harness, text: string) => Promise<unknown>,
): OtherHand<Harness> {
  return {
    change: async (harness, tag, columns) => {
      const set = Object.entries(columns).map(([column, text]) => `${column} = '${text}'`);
      await run(harness, `UPDATE ${table} SET ${set.join(", ")} WHERE name = '${tag}'`);
    },
    remove: (harness, tag) => run(harness, `DELETE FROM ${table} WHERE name = '${tag}'`),
  };
}

export function spoiledRowsSuite<Harness extends SpoiledHarness>(
  name: string,
  makeStore: () => Promise<Harness>,
  hand: OtherHand<Harness>,
): void {
  const suite = (title: string, run: (harness: Harness) => Promise<void>): void => {
    test(`${name}: ${title}`, { timeout: 30_000 }, async () => {
      const harness = await makeStore();
      try {
        await run(harness);
      } finally {
        await harness.remove();
      }
    });
  };
  const spoil = async (harness: Harness): Promise<void> => {
    for (const tag of ["b", "c"]) await hand.change(harness, tag, { settings: "nonsense" });
  };

  suite("a poll tells the tags whose rows cannot be read, and all others", async (harness) => {
    const store = await harness.open();
    for (const tag of ["a", "b", "c", "d"]) await store.createTag(settingsOf(tag));
    await spoil(harness);
    const seen: string[] = [];
    const told: string[] = [];
    let since = 0n;
    for (let pages = 1; ; pages++) {
      const page = await store.changes({ since, watched: [], limit: 1 });
      seen.push(...page.changed.map((tag) => tag.name));
      told.push(...(page.unreadable ?? []).map((one) => one.tag));
      const details = (page.unreadable ?? []).map(({ detail }) => detail);
      for (const detail of details) {
        expect(detail).toMatch(/the row of tag "[bc]".*accept/u);
        expect(detail.split("put the row back")).toHaveLength(2);
      }
      if (!page.more) break;
      expect(pages).toBeLessThan(5);
      since = page.next ?? page.changed.at(-1)?.revision ?? since;
    }
    expect([seen, told]).toEqual([
      ["a", "d"],
      ["b", "c"],
    ]);
    expect(await reasonOf(store.getTags(["b"]))).toBe("SCHEMA_MISMATCH");
    await store.close();
  });

  suite("a list names the tags whose rows cannot be read, beside all others", async (harness) => {
    const store = await harness.open();
    for (const tag of ["a", "b", "c", "d"]) await store.createTag(settingsOf(tag));
    await spoil(harness);
    const page = async (afterName: string, limit: number, prefix = ""): Promise<string[][]> => {
      const query = { afterName, prefix, showDeleted: false, limit };
      const { tags, unreadable } = await store.listTags(query);
      return [tags.map((tag) => tag.name), unreadable.map(({ tag }) => tag)];
    };
    expect(await page("", 10)).toEqual([
      ["a", "d"],
      ["b", "c"],
    ]);
    expect(await page("", 2)).toEqual([["a"], ["b"]]);
    expect(await page("b", 2)).toEqual([["d"], ["c"]]);
    expect(await page("", 10, "c")).toEqual([[], ["c"]]);
    expect((await store.recentTags(10)).filter((tag) => "ad".includes(tag)).toSorted()).toEqual([
      "a",
      "d",
    ]);
    await store.close();
  });

  suite("an accept names rows that cannot be read, and changes nothing", async (harness) => {
    const store = await harness.open();
    for (const tag of ["a", "b", "c"]) await store.createTag(settingsOf(tag));
    await granted(store, "a");
    await spoil(harness);
    expect((await storeStatus(harness.config)).refusedTags).toMatch(/^2 tags, .*: b, c$/u);
    const accepting = acceptAtOnce(harness.config, 100n);
    await expect(accepting).rejects.toMatchObject({ reason: "SCHEMA_MISMATCH" });
    await expect(accepting).rejects.toThrow(/nothing was changed.*\bb, (?:\S*\/)?c\b/u);
    const [kept] = await store.getTags(["a"]);
    expect(kept?.floor).toBe(10n);
    for (const tag of ["b", "c"]) await hand.remove(harness, tag);
    expect((await storeStatus(harness.config)).refusedTags ?? "").toBe("");
    expect(await acceptAtOnce(harness.config, 100n)).toMatchObject({ tags: 1 });
    expect((await granted(store, "a")).base).toBe(111n);
    await store.close();
  });

  suite("a grant leaves out tags whose periods cannot be told", async (harness) => {
    const store = await harness.open();
    const spoiled = ["zone", "others"];
    await store.createTag(settingsOf("a"));
    for (const tag of spoiled) {
      await store.createTag(
        sequenceOf(tag, { periods: { unit: "DAY", timeZone: "UTC", keepForMs: 86_400_000 } }),
      );
    }
    const made = [...spoiled.map((tag) => sequenceRequest(tag)), wish("a")];
    // As a server asks: some stores refuse the whole question.
    const outcomes = (): Promise<readonly string[]> =>
      askApart(
        made,
        async (some) => (await store.grant(some)).map(({ outcome }) => outcome),
        () => ["refused"],
      );
    expect(await outcomes()).toEqual(["granted", "granted", "granted"]);
    await hand.change(harness, "zone", { time_zone: "Mars/Olympus" });
    await hand.change(harness, "others", {
      other_periods: '{"2020-01-01":"nonsense"}',
      period_start: "2020-01-02",
    });
    expect(await outcomes()).toEqual(["refused", "refused", "granted"]);
    await store.close();
  });
}
