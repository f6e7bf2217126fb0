import type { Issuing, Store } from "@idmint/core/server";
import { expect } from "vitest";
import { NO_CHECK, settingsOf, type Suite } from "./support.ts";

/** What each database of the store says in a poll. */
async function issuingOf(store: Store): Promise<readonly Issuing[]> {
  const { parts } = await store.changes({ since: 0n, watched: [], limit: 100 });
  return parts.map(({ issuing }) => issuing);
}

async function areStopped(store: Store): Promise<boolean> {
  const stopped = (await issuingOf(store)).map(({ stoppedAtMs }) => stoppedAtMs !== undefined);
  expect(new Set(stopped).size).toBe(1);
  return stopped[0] === true;
}

export function issuingCases(suite: Suite): void {
  suite("servers issue until somebody stops them", async (store) => {
    for (const issuing of await issuingOf(store)) {
      expect(issuing).toEqual({ revision: 0n, stoppedAtMs: undefined });
    }
  });

  suite(
    "a stop is in every poll until it is undone, with the revision it took",
    async (store, open) => {
      const other = await open();
      await store.createTag(settingsOf("t"));
      const before = await other.changes({ since: 0n, watched: [], limit: 100 });
      const parts = await store.setIssuing(true);
      const after = await other.changes({ since: before.revision, watched: [], limit: 100 });
      expect(after.revision).toBeGreaterThan(before.revision);
      expect(after.changed).toEqual([]);
      expect(after.parts.map(({ name, issuing }) => ({ name, ...issuing }))).toEqual(parts);
      for (const { revision, issuing } of after.parts) {
        expect(issuing.revision).toBe(revision);
        expect(Math.abs((issuing.stoppedAtMs ?? 0) - after.nowMs)).toBeLessThan(60_000);
      }
      await store.setIssuing(false);
      expect(await areStopped(other)).toBe(false);
      const resumed = await other.changes({ since: 0n, watched: [], limit: 100 });
      for (const { revision, issuing } of resumed.parts) expect(issuing.revision).toBe(revision);
    },
  );

  suite(
    "what is so already takes no revision, and neither does what is only checked",
    async (store) => {
      const none = await issuingOf(store);
      await store.setIssuing(false);
      const [would] = await store.setIssuing(true, { validateOnly: true });
      expect(would?.stoppedAtMs).toBeDefined();
      expect(await issuingOf(store)).toEqual(none);
      await store.setIssuing(true);
      const once = await issuingOf(store);
      await store.setIssuing(true);
      await store.setIssuing(false, { validateOnly: true });
      expect(await issuingOf(store)).toEqual(once);
    },
  );

  suite("a stop leaves every tag as it is, and operators at their work", async (store) => {
    await store.createTag(settingsOf("paused"));
    await store.setTagState("paused", "PAUSED", NO_CHECK);
    const before = await store.getTags(["paused"]);
    await store.setIssuing(true);
    const made = await store.createTag(settingsOf("made-meanwhile"));
    const { tag } = await store.advanceTag("made-meanwhile", 500n, {
      maxRaise: 1_000n,
      expectedRevision: undefined,
    });
    expect([made.state, tag.floor]).toEqual(["ACTIVE", 500n]);
    await store.setIssuing(false);
    expect(await store.getTags(["paused"])).toEqual(before);
  });

  suite("a stop outlasts an accept", async (store) => {
    await store.setIssuing(true);
    const stopped = await issuingOf(store);
    await store.accept(10n);
    expect(await issuingOf(store)).toEqual(stopped);
  });

  suite("of two who stop at once, both find it stopped at one revision", async (store, open) => {
    const other = await open();
    const [one, two] = await Promise.all([store.setIssuing(true), other.setIssuing(true)]);
    expect(one.map(({ revision }) => revision)).toEqual(two.map(({ revision }) => revision));
    expect(await areStopped(other)).toBe(true);
  });
}
