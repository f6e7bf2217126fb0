import type {
  EarlierRow,
  NodeInfo,
  NodeRenewal,
  NodeRow,
  Store,
  StoreChanges,
  Traffic,
} from "@idmint/core/server";
import { expect } from "vitest";
import { NO_CHECK, settingsOf, type Suite } from "./support.ts";

/** What a server says of itself, defaults filled in. */
export function nodeOf(id: string, more: Partial<NodeInfo> = {}): NodeInfo {
  return {
    id,
    instance: `instance-of-${id}`,
    address: "10.0.0.1:7600",
    version: "1.2.3",
    zone: "z",
    startedAtMs: 1_750_000_000_000,
    maxOfflineMs: 1_000,
    ...more,
  };
}

/** A renewal of that server, defaults filled in. */
export function renewalOf(id: string, more: Partial<NodeRenewal> = {}): NodeRenewal {
  const said = { count: 1n, incarnation: "", obeyed: 0n, traffic: 0n, isProved: false };
  return { node: nodeOf(id), ...said, ...more };
}

async function renewed(store: Store, renewal: NodeRenewal): Promise<StoreChanges> {
  const answer = await store.changes({ since: 0n, watched: [], limit: 100, renewal, nodes: true });
  expect(answer.parts.map(({ isRenewed }) => isRenewed)).toEqual(answer.parts.map(() => true));
  return answer;
}

/** The rows of all databases, which are the same in each unless said otherwise. */
async function rowsOf(store: Store): Promise<readonly NodeRow[]> {
  const { parts } = await store.changes({ since: 0n, watched: [], limit: 1, nodes: true });
  const [first, ...others] = parts.map(({ nodes }) =>
    (nodes ?? []).toSorted((a, b) => (a.instance < b.instance ? -1 : 1)),
  );
  for (const other of others) {
    expect(other.map(({ instance }) => instance)).toEqual(first?.map(({ instance }) => instance));
  }
  return first ?? [];
}

/** What operators said of servers, which is the same in all databases. */
async function trafficIn(store: Store): Promise<readonly Traffic[]> {
  const { parts } = await store.changes({ since: 0n, watched: [], limit: 1 });
  const [first = [], ...others] = parts.map(({ traffic }) =>
    traffic.toSorted((a, b) => (a.server < b.server ? -1 : 1)),
  );
  for (const other of others) expect(other).toEqual(first);
  return first;
}

function wish(server: string, weight: number, isDraining: boolean, revision: bigint): Traffic {
  return { server, weight, isDraining, revision };
}

/** As a server does it: whoever finds something newer adds to that. */
async function say(store: Store, more: Partial<Traffic>): Promise<void> {
  let seen = wish("s", 100, false, 0n);
  for (;;) {
    const wanted = { ...seen, ...more };
    seen = await store.setTraffic(wanted);
    if (seen.weight === wanted.weight && seen.isDraining === wanted.isDraining) return;
  }
}

/** What an earlier life of a server knows of its row in each database. */
function earlierIn({ parts }: StoreChanges): readonly EarlierRow[] {
  return parts.flatMap(({ name: part, own }) =>
    own === undefined ? [] : [{ ...own, part, agoMs: 5 }],
  );
}

function restartCases(suite: Suite): void {
  suite(
    "a server that is started again finds its row, in the same history",
    async (store, open) => {
      const first = await renewed(store, renewalOf("s"));
      expect(first.parts.map(({ hasEarlier }) => hasEarlier ?? false)).not.toContain(true);
      const earlier = earlierIn(await renewed(store, renewalOf("s", { count: 2n })));
      expect(earlier.length).toBe(first.parts.length);
      const later = async (rows: readonly EarlierRow[]): Promise<readonly boolean[]> => {
        const its = await open();
        const renewal = renewalOf("s", { count: 3n, earlier: rows });
        const { parts } = await renewed(its, renewal);
        return parts.map(({ hasEarlier }) => hasEarlier ?? false);
      };
      const all = (is: boolean): readonly boolean[] => first.parts.map(() => is);
      expect(await later(earlier)).toEqual(all(true));
      expect(await later([])).toEqual(all(false));
      expect(await later(earlier.map((row) => ({ ...row, history: "another" })))).toEqual(
        all(false),
      );
    },
  );
}

function trafficCases(suite: Suite): void {
  suite("what operators say of servers is kept, and every poll has it", async (store, open) => {
    const other = await open();
    expect(await trafficIn(other)).toEqual([]);
    const one = await store.setTraffic(wish("host:7600", 0, false, 0n));
    expect(one).toEqual(wish("host:7600", 0, false, 1n));
    const two = await other.setTraffic(wish("#2/ü", 1_000, true, 1n));
    expect(two).toEqual(wish("#2/ü", 1_000, true, 2n));
    expect(await trafficIn(store)).toEqual([two, one]);
    const again = await other.setTraffic(wish("host:7600", 7, true, 2n));
    expect(again.revision).toBe(3n);
    expect(await trafficIn(store)).toEqual([two, again]);
    // Nothing of it is an id's: an accepted store still has it.
    await store.accept(1n);
    expect(await trafficIn(other)).toEqual([two, again]);
  });

  suite("nothing is written over what its writer had not seen", async (store, open) => {
    const other = await open();
    const drained = await store.setTraffic(wish("a", 100, true, 0n));
    expect(await other.setTraffic(wish("a", 5, false, 0n))).toEqual(drained);
    expect(await trafficIn(other)).toEqual([drained]);
    const both = await other.setTraffic(wish("a", 5, true, drained.revision));
    expect(both).toEqual(wish("a", 5, true, 2n));
    // A revision that only another database of the store has reached counts too.
    expect((await store.setTraffic(wish("b", 1, false, 40n))).revision).toBe(41n);
    expect((await store.setTraffic(wish("c", 1, false, 0n))).revision).toBe(42n);
  });

  suite("two who say different things of a server at once are both heard", async (store, open) => {
    const other = await open();
    for (let weight = 1; weight <= 5; weight++) {
      const isDraining = weight % 2 === 1;
      await Promise.all([say(store, { isDraining }), say(other, { weight })]);
      expect(await trafficIn(store)).toMatchObject([{ server: "s", weight, isDraining }]);
    }
  });

  suite("a row says how far its server follows what operators say", async (store) => {
    await renewed(store, renewalOf("n1", { traffic: 4n }));
    expect((await rowsOf(store))[0]?.traffic).toBe(4n);
    await renewed(store, renewalOf("n1", { count: 2n, traffic: 3n }));
    expect((await rowsOf(store))[0]?.traffic).toBe(3n);
  });
}

export function nodeCases(suite: Suite): void {
  restartCases(suite);
  trafficCases(suite);

  suite(
    "a renewal makes a server's row, which others see with what it says",
    async (store, open) => {
      const other = await open();
      await other.createTag(settingsOf("t"));
      const node = nodeOf("n1", { maxOfflineMs: undefined, zone: "" });
      await renewed(store, renewalOf("n1", { node }));
      const [row, ...rest] = await rowsOf(other);
      expect(rest).toEqual([]);
      const said = { incarnation: "", obeyed: 0n, traffic: 0n, isProved: false };
      expect(row).toEqual({ ...node, renewals: 1n, ...said });
    },
  );

  suite("a row says whether its server took the store for proved", async (store) => {
    await renewed(store, renewalOf("n1", { isProved: true }));
    expect((await rowsOf(store))[0]?.isProved).toBe(true);
    await renewed(store, renewalOf("n2"));
    expect((await rowsOf(store)).map(({ isProved }) => isProved)).toEqual([true, false]);
    await renewed(store, renewalOf("n2", { count: 2n, isProved: true }));
    expect((await rowsOf(store)).map(({ isProved }) => isProved)).toEqual([true, true]);
    await store.accept(0n);
    const lost = (await rowsOf(store)).filter(({ isProved }) => !isProved);
    expect(lost.map(({ id }) => id.startsWith("before-"))).toEqual([true]);
  });

  suite("a poll without a renewal writes no row, and answers none unasked", async (store) => {
    const { parts } = await store.changes({ since: 0n, watched: [], limit: 1 });
    expect(parts.length).toBeGreaterThan(0);
    for (const part of parts) {
      expect(part).toMatchObject({ isRenewed: false });
      expect(part.nodes).toBe(undefined);
    }
    expect(await rowsOf(store)).toEqual([]);
  });

  suite("each renewal moves the row's number, also one that is carried out late", async (store) => {
    const numbers: bigint[] = [];
    for (const count of [7n, 8n, 3n]) {
      await renewed(store, renewalOf("n1", { count }));
      numbers.push((await rowsOf(store))[0]?.renewals ?? 0n);
    }
    expect(numbers).toEqual([7n, 8n, 9n]);
  });

  suite("what a row says was obeyed never falls within a history", async (store) => {
    await store.createTag(settingsOf("a"));
    const first = await renewed(store, renewalOf("n1"));
    const { incarnation, revision } = first;
    await store.setTagState("a", "PAUSED", NO_CHECK);
    const second = await renewed(
      store,
      renewalOf("n1", { count: 2n, incarnation, obeyed: revision }),
    );
    const later = { incarnation, obeyed: second.revision };
    await renewed(store, renewalOf("n1", { count: 3n, ...later }));
    const [before] = await rowsOf(store);
    await renewed(store, renewalOf("n1", { count: 2n, incarnation, obeyed: revision }));
    const [after] = await rowsOf(store);
    expect(before?.obeyed).toBeGreaterThan(0n);
    expect(after?.obeyed).toBe(before?.obeyed);
    expect(after?.incarnation).toBe(before?.incarnation);
    // Of another history nothing is carried over.
    await renewed(store, renewalOf("n1", { count: 4n }));
    expect((await rowsOf(store))[0]).toMatchObject({ incarnation: "", obeyed: 0n });
  });

  suite("a row is forgotten under its number only, or whatever it is", async (store) => {
    const { parts } = await renewed(store, renewalOf("n1", { count: 5n }));
    await renewed(store, renewalOf("n2"));
    const keys = (id: string, renewals: bigint | undefined) =>
      parts.map(({ name: part }) => ({ part, id, renewals }));
    expect(await store.forgetNodes(keys("n1", 4n))).toBe(0);
    expect(await store.forgetNodes(keys("n0", undefined))).toBe(0);
    expect((await rowsOf(store)).map(({ id }) => id)).toEqual(["n1", "n2"]);
    expect(await store.forgetNodes(keys("n1", 5n))).toBe(parts.length);
    expect(await store.forgetNodes(keys("n2", undefined))).toBe(parts.length);
    expect(await rowsOf(store)).toEqual([]);
    // Who was forgotten and renews again has a number that it never had.
    await renewed(store, renewalOf("n1", { count: 6n }));
    expect((await rowsOf(store))[0]?.renewals).toBe(6n);
  });

  suite("an accept leaves a row for the servers whose rows may be lost", async (store) => {
    await renewed(store, renewalOf("n1", { node: nodeOf("n1", { maxOfflineMs: 5_000_000 }) }));
    await store.accept(1n, 3_000);
    const lost = (await rowsOf(store)).filter(({ id }) => id !== "n1");
    expect(lost).toHaveLength(1);
    expect(lost[0]).toMatchObject({ maxOfflineMs: 5_000_000, obeyed: 0n, incarnation: "" });
    await store.accept(1n, null);
    const all = await rowsOf(store);
    expect(all).toHaveLength(3);
    expect(all.filter(({ maxOfflineMs }) => maxOfflineMs === undefined)).toHaveLength(1);
  });

  suite("a row remembers for how long callers were allowed to hold ids", async (store) => {
    const { kind, order, ceiling } = settingsOf("t", { maxAgeMs: 600_000 });
    await store.createTag({ ...settingsOf("t"), kind });
    const withAge = async (maxAgeMs: number, isEarlierOver = false) => {
      const next = { ...settingsOf("t", { maxAgeMs }).kind };
      const settings = { kind: next, order, ceiling };
      return store.updateTag("t", { settings, isEarlierOver }, NO_CHECK);
    };
    const lowered = await withAge(5_000);
    expect(lowered.earlier).toEqual({ memoryMs: 600_000, revision: lowered.revision });
    const again = await withAge(1_000);
    expect(again.earlier).toEqual({ memoryMs: 600_000, revision: again.revision });
    expect((await store.getTags(["t"]))[0]?.earlier).toEqual(again.earlier);
    const raised = await withAge(2_000);
    expect(raised.earlier).toEqual(again.earlier);
    const over = await withAge(1_500, true);
    expect(over.earlier).toEqual({ memoryMs: 2_000, revision: over.revision });
    expect((await withAge(600_000)).earlier).toBe(undefined);
    await store.setTagState("t", "DELETED", NO_CHECK);
    const made = await store.createTag(settingsOf("t", { maxAgeMs: 1_000 }));
    expect(made.earlier).toEqual({ memoryMs: 600_000, revision: made.revision });
  });
}
