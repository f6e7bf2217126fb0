// What servers learn of changes, accepts, calls at once, and the end.
import { MAX_ID } from "@idmint/core";
import type { Granted, Tag } from "@idmint/core/server";
import { expect } from "vitest";
import { outcomeOf } from "./suite-grants.ts";
import {
  assertDisjoint,
  assertSeamless,
  FREE,
  granted,
  nextOf,
  NO_CHECK,
  raised,
  raiseOf,
  reasonOf,
  redisSequenceOf,
  settingsOf,
  wish,
  type Suite,
} from "./support.ts";

export function changeCases(suite: Suite): void {
  const all = { since: 0n, watched: [], limit: 100 } as const;

  suite("a poll of an empty store answers its clock and nothing else", async (store) => {
    const poll = await store.changes(all);
    expect(poll).toMatchObject({ revision: 0n, changed: [], more: false, behind: [], fenced: "" });
    expect(poll.incarnation).not.toBe("");
    expect(Math.abs(poll.nowMs - Date.now())).toBeLessThan(60_000);
  });

  suite(
    "a poll answers what operators changed, oldest first, and not what was granted",
    async (store, open, { spreads = false }) => {
      const other = await open();
      await other.createTag(settingsOf("a"));
      await other.createTag(settingsOf("b"));
      const before = await store.changes(all);
      const inOrder = (texts: string[]): string[] => (spreads ? texts.toSorted() : texts);
      expect(inOrder(before.changed.map(({ name }) => name))).toEqual(["a", "b"]);
      await granted(other, "a");
      const since = before.revision;
      expect(await store.changes({ ...all, since })).toMatchObject({
        revision: since,
        changed: [],
      });
      await other.setTagState("a", "PAUSED", NO_CHECK);
      await other.setTagState("b", "DELETED", NO_CHECK);
      const after = await store.changes({ ...all, since });
      const changed = after.changed.map(({ name, state }) => `${name} ${state}`);
      expect(inOrder(changed)).toEqual(["a PAUSED", "b DELETED"]);
      expect(after.revision).toBe(nextOf(after, since));
      expect(after.revision).toBeGreaterThan(since);
      expect(after.incarnation).toBe(before.incarnation);
    },
  );

  suite("a poll answers in pages that miss nothing", async (store, _open, { spreads = false }) => {
    for (let i = 0; i < 7; i++) await store.createTag(settingsOf(`t${i}`));
    const names: string[] = [];
    let since = 0n;
    for (;;) {
      const changes = await store.changes({ since, watched: [], limit: 3 });
      names.push(...changes.changed.map(({ name }) => name));
      since = nextOf(changes, since);
      if (!changes.more) break;
    }
    expect(spreads ? names.toSorted() : names).toEqual(["t0", "t1", "t2", "t3", "t4", "t5", "t6"]);
  });

  suite("a poll names the watched tags that went back", async (store) => {
    await store.createTag(settingsOf("a"));
    await granted(store, "a");
    const watched = [
      { tag: "a", version: 1n },
      { tag: "gone", version: 4n },
    ];
    expect((await store.changes({ ...all, watched })).behind).toEqual(["gone"]);
    const ahead = [{ tag: "a", version: 2n }];
    expect((await store.changes({ ...all, watched: ahead })).behind).toEqual(["a"]);
  });
}

export function acceptCases(suite: Suite): void {
  suite("accepting raises every floor by the gap, at most to the ceiling", async (store) => {
    await store.createTag(settingsOf("a"));
    await store.createTag(settingsOf("end", { start: MAX_ID - 99n }));
    await store.createTag(settingsOf("off"));
    await store.setTagState("off", "PAUSED", NO_CHECK);
    for (const tag of ["a", "end"]) await granted(store, tag);
    const before = await store.changes({ since: 0n, watched: [], limit: 100 });
    const startedAt = BigInt(Math.floor(Date.now() / 1_000));
    expect(await store.accept(1_000n)).toEqual({ tags: 3 });
    const tags = new Map((await store.getTags(["a", "end", "off"])).map((tag) => [tag.name, tag]));
    expect(tags.get("a")).toMatchObject({ floor: 1_010n, version: 2n, state: "ACTIVE" });
    expect(tags.get("end")).toMatchObject({ floor: MAX_ID, version: 2n });
    expect(tags.get("off")).toMatchObject({ floor: 1_000n, version: 1n, state: "PAUSED" });
    for (const { epoch } of tags.values()) expect(epoch).toBeGreaterThanOrEqual(startedAt - 60n);
    const after = await store.changes({ since: before.revision, watched: [], limit: 100 });
    expect(after.incarnation).not.toBe(before.incarnation);
    expect(after.changed.map(({ name }) => name).toSorted()).toEqual(["a", "end", "off"]);
    expect(after.fenced).toBe("");
    expect((await granted(store, "a")).base).toBe(1_011n);
  });

  suite(
    "an accepted tag in Redis has a generation that no lost history gave out",
    async (store) => {
      await store.createTag(redisSequenceOf("t"));
      await store.createTag(settingsOf("a"));
      // What is lost may have counted on from the present second.
      const generationFrom = BigInt(Math.floor(Date.now() / 1_000));
      const { generation } = await raised(store, "t", {
        by: 10n,
        newGeneration: true,
        generationFrom,
      });
      await store.accept(5n);
      const [one] = await store.getTags(["t"]);
      const [other] = await store.getTags(["a"]);
      expect(one?.floor).toBe(15n);
      expect(one?.generation).toBeGreaterThan(generation + 60n);
      expect(other?.generation).toBe(0n);
    },
  );

  suite("a second accept raises epochs once more", async (store) => {
    await store.createTag(settingsOf("a"));
    await store.accept(1n);
    const epoch = (await store.getTags(["a"]))[0]?.epoch ?? 0n;
    await store.accept(1n);
    const [tag] = await store.getTags(["a"]);
    expect(tag?.epoch).toBeGreaterThan(epoch);
    expect(tag?.floor).toBe(2n);
  });

  suite("what accept changed can be polled in pages", async (store) => {
    for (let i = 0; i < 5; i++) await store.createTag(settingsOf(`t${i}`));
    const { revision } = await store.changes({ since: 0n, watched: [], limit: 100 });
    await store.accept(1n);
    const first = await store.changes({ since: revision, watched: [], limit: 3 });
    const since = nextOf(first, 0n);
    const second = await store.changes({ since, watched: [], limit: 3 });
    expect([first.more, second.more]).toEqual([true, false]);
    const names = [...first.changed, ...second.changed].map(({ name }) => name);
    expect(names.toSorted()).toEqual(["t0", "t1", "t2", "t3", "t4"]);
  });

  suite("a gap that is no gap is refused", async (store) => {
    expect(await reasonOf(store.accept(-1n))).toBe("INVALID_ARGUMENT");
    expect(await reasonOf(store.accept(MAX_ID + 1n))).toBe("INVALID_ARGUMENT");
  });

  suite("an empty store can be accepted", async (store) => {
    const before = await store.changes({ since: 0n, watched: [], limit: 1 });
    expect(await store.accept(5n)).toEqual({ tags: 0 });
    const after = await store.changes({ since: 0n, watched: [], limit: 1 });
    expect(after.incarnation).not.toBe(before.incarnation);
  });
}

export function concurrencyCases(suite: Suite): void {
  suite(
    "grants of several handles at once never overlap, and leave no gap",
    async (first, open) => {
      const handles = [first, await open(), await open()];
      const names = ["a", "b", "c", "d"];
      for (const tag of names) await first.createTag(settingsOf(tag));
      const grants: Granted[] = [];
      await Promise.all(
        handles.flatMap((handle, at) =>
          [0, 1].map(async (lane) => {
            for (let round = 0; round < 25; round++) {
              // Each lane asks for other tags in another order, which is what deadlocks would need.
              const tags = [...names.slice(at + lane), ...names.slice(0, at + lane)].slice(0, 3);
              const asked = tags.map((tag) => wish(tag, { count: 1 + ((round + at) % 7) }));
              for (const grant of await handle.grant(asked)) {
                if (grant.outcome === "granted") grants.push(grant);
                else throw new Error(outcomeOf(grant));
              }
            }
          }),
        ),
      );
      for (const tag of names) assertSeamless(grants.filter((grant) => grant.tag === tag));
    },
  );

  suite(
    "grants, give-backs and an operator at once never let an id be granted twice",
    async (first, open) => {
      const handles = [first, await open(), await open()];
      await first.createTag(settingsOf("t"));
      const kept: { from: bigint; to: bigint }[] = [];
      const lanes = handles.map(async (handle) => {
        for (let round = 0; round < 40; round++) {
          const [grant] = await handle.grant([wish("t", { count: 10 })]);
          if (grant?.outcome !== "granted") continue;
          const to = grant.base + 9n;
          const from = grant.base + BigInt(round % 10);
          const [back] = await handle.giveBack([{ tag: "t", from, to, version: grant.version }]);
          // The ids before `from` were issued in any case; those after it only where nothing was taken back.
          const end = back === 0 ? to : from - 1n;
          if (end >= grant.base) kept.push({ from: grant.base, to: end });
        }
      });
      const operator = (async (): Promise<void> => {
        for (let round = 0; round < 10; round++) {
          await first.setTagState("t", round % 2 === 0 ? "PAUSED" : "ACTIVE", NO_CHECK);
          const [tag] = await first.getTags(["t"]);
          await first.advanceTag("t", (tag?.floor ?? 0n) + 3n, FREE);
        }
      })();
      await Promise.all([...lanes, operator]);
      assertDisjoint(kept);
    },
  );

  suite(
    "revisions of changes made at once are all different, and polls miss none",
    async (first, open, { spreads = false }) => {
      const handles = [first, await open(), await open()];
      const seen = new Set<string>();
      let done = false;
      const poller = (async (): Promise<void> => {
        let since = 0n;
        for (;;) {
          const wasDone = done;
          const changes = await first.changes({ since, watched: [], limit: 4 });
          for (const { name } of changes.changed) seen.add(name);
          since = nextOf(changes, since);
          if (wasDone && !changes.more) return;
        }
      })();
      const made = await Promise.all(
        handles.map(async (handle, at) => {
          const tags: Tag[] = [];
          for (let i = 0; i < 10; i++) tags.push(await handle.createTag(settingsOf(`t${at}.${i}`)));
          return tags;
        }),
      );
      done = true;
      await poller;
      const tags = made.flat();
      if (!spreads) expect(new Set(tags.map(({ revision }) => revision)).size).toBe(30);
      expect(seen.size).toBe(30);
    },
  );

  suite(
    "of several who make the same tag at once one does, and all get it",
    async (first, open) => {
      const handles = [first, await open(), await open()];
      const tags = await Promise.all(handles.map((handle) => handle.createTag(settingsOf("t"))));
      expect(new Set(tags.map(({ revision }) => revision))).toEqual(new Set([1n]));
    },
  );

  suite("a revision can be spent once", async (first, open) => {
    const handles = [first, await open(), await open()];
    const { revision } = await first.createTag(settingsOf("t"));
    const outcomes = await Promise.allSettled(
      handles.map((handle, at) => handle.updateTag("t", { description: `by ${at}` }, revision)),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  suite("another handle sees what was granted", async (first, open) => {
    const other = await open();
    await first.createTag(settingsOf("t"));
    await granted(first, "t");
    expect(await granted(other, "t", { seenVersion: 1n })).toMatchObject({
      base: 11n,
      version: 2n,
    });
  });
}

export function closeCases(suite: Suite): void {
  suite("a closed store refuses everything", async (store) => {
    await store.createTag(settingsOf("t"));
    await store.close();
    const works = [
      store.grant([wish("t")]),
      store.giveBack([{ tag: "t", from: 1n, to: 1n, version: 1n }]),
      store.raise(raiseOf("t")),
      store.listPeriods({ tag: "t", before: "", limit: 1 }),
      store.createTag(settingsOf("t")),
      store.getTags(["t"]),
      store.changes({ since: 0n, watched: [], limit: 1 }),
    ];
    expect(new Set(await Promise.all(works.map(reasonOf)))).toEqual(new Set(["STORE_UNAVAILABLE"]));
    await store.close();
  });

  suite("what was asked before the close is answered, and stays", async (store, open) => {
    await store.createTag(settingsOf("t"));
    const grant = store.grant([wish("t")]);
    await store.close();
    expect((await grant)[0]).toMatchObject({ outcome: "granted", base: 1n });
    expect((await granted(await open(), "t")).base).toBe(11n);
  });
}
