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
import { acceptStore, type StoreConfig, storeStatus } from "../../src/store/open-store.ts";

interface SpoiledHarness extends StoreHarness {
  readonly config: StoreConfig;
}

/** `sql` runs what it is told of the table that has the tags. */
export function spoiledRowsSuite<Harness extends SpoiledHarness>(
  name: string,
  makeStore: () => Promise<Harness>,
  sql: (harness: Harness, text: (table: string) => string) => Promise<void>,
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
  const spoil = (harness: Harness): Promise<void> =>
    sql(harness, (tag) => `UPDATE ${tag} SET settings = 'nonsense' WHERE name IN ('b', 'c')`);

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
      for (const detail of details) expect(detail).toMatch(/the row of tag "[bc]".*accept/u);
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

  suite("an accept names rows that cannot be read, and changes nothing", async (harness) => {
    const store = await harness.open();
    for (const tag of ["a", "b", "c"]) await store.createTag(settingsOf(tag));
    await granted(store, "a");
    await spoil(harness);
    expect((await storeStatus(harness.config)).refusedTags).toMatch(
      /^2 tags, whose rows .*: b, c$/u,
    );
    const accepting = acceptStore(harness.config, 100n);
    await expect(accepting).rejects.toMatchObject({ reason: "SCHEMA_MISMATCH" });
    await expect(accepting).rejects.toThrow(/nothing was changed.*: b, c; the row of tag "b"/u);
    const [kept] = await store.getTags(["a"]);
    expect(kept?.floor).toBe(10n);
    await sql(harness, (tag) => `DELETE FROM ${tag} WHERE name IN ('b', 'c')`);
    expect((await storeStatus(harness.config)).refusedTags ?? "").toBe("");
    expect(await acceptStore(harness.config, 100n)).toMatchObject({ tags: 1 });
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
    const outcomes = async (): Promise<readonly string[]> =>
      (await store.grant(made)).map(({ outcome }) => outcome);
    expect(await outcomes()).toEqual(["granted", "granted", "granted"]);
    await sql(
      harness,
      (table) => `UPDATE ${table} SET time_zone = 'Mars/Olympus' WHERE name = 'zone';
        UPDATE ${table} SET other_periods = '{"2020-01-01":"nonsense"}', period_start = '2020-01-02'
          WHERE name = 'others'`,
    );
    expect(await outcomes()).toEqual(["refused", "refused", "granted"]);
    await store.close();
  });
}
