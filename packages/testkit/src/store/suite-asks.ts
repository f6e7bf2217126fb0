// What a store must do for an accept that asks, and how servers speak.
import {
  ASK_MS,
  type Claim,
  type Claimant,
  type Claims,
  type ClaimsAnswer,
  type Hearing,
  type Store,
  type Tag,
} from "@idmint/core/server";
import { expect } from "vitest";
import { nodeOf, renewalOf } from "./suite-nodes.ts";
import { reasonOf, settingsOf, type Suite } from "./support.ts";

/** A server that speaks, defaults filled in. */
export function claimantOf(id: string, more: Partial<Claimant> = {}): Claimant {
  const { instance, address } = nodeOf(id);
  return { id, instance, address, sinceMs: 1_750_000_000_000, isWhole: true, ...more };
}

export async function say(
  store: Store,
  nonce: string,
  claims: readonly Claim[],
  more: Partial<Claims> = {},
): Promise<ClaimsAnswer> {
  const said = { nonce, claimant: claimantOf("n1"), claims, page: 0, isLast: true, ...more };
  for (;;) {
    // As a server does it: the store's row may be locked for a moment.
    const answer = await store.claim(said);
    if (answer !== "busy") return answer;
  }
}

export function of(tag: string, last: bigint, period = ""): Claim {
  return { tag, period, last };
}

export async function ask(store: Store, nonce: string): Promise<void> {
  expect(await store.askForClaims(nonce, ASK_MS)).toMatchObject({ outcome: "asked" });
}

export async function take(
  store: Store,
  nonce: string,
  gap = 0n,
  isTrusted = false,
): ReturnType<Store["accept"]> {
  return store.accept(gap, undefined, undefined, undefined, { nonce, look: 0, isTrusted });
}

/** What the polls of all databases say is asked. */
export async function askedIn(store: Store): Promise<readonly (string | undefined)[]> {
  const { parts } = await store.changes({ since: 0n, watched: [], limit: 1 });
  return [...new Set(parts.map((part) => part.ask))];
}

export async function tagOf(store: Store, name: string): Promise<Tag> {
  const [tag] = await store.getTags([name]);
  if (tag === undefined) throw new Error(`there is no ${name}`);
  return tag;
}

/** Looks before anybody was answered. */
async function hear(store: Store, nonce: string): Promise<Hearing> {
  return store.hearClaims(nonce, { number: 0, answered: 0 });
}

/** Registers what a store must do of asks. */
export function askCases(suite: Suite): void {
  suite(
    "one ask stands at a time, and every poll has it until it is withdrawn",
    async (store, open) => {
      const other = await open();
      expect(await askedIn(other)).toEqual([undefined]);
      await ask(store, "one");
      expect(await askedIn(other)).toEqual(["one"]);
      const second = await other.askForClaims("two", ASK_MS);
      expect(second).toMatchObject({ outcome: "busy" });
      const forMs = second.outcome === "busy" ? second.forMs : 0;
      expect(forMs).toBeGreaterThan(ASK_MS / 2);
      expect(forMs).toBeLessThanOrEqual(ASK_MS);
      // Another one's is not to be ended.
      await other.withdrawAsk("two");
      expect(await askedIn(store)).toEqual(["one"]);
      await store.withdrawAsk("one");
      expect(await askedIn(other)).toEqual([undefined]);
      expect((await hear(store, "one")).isStanding).toBe(false);
      await ask(other, "two");
    },
  );

  suite("an ask whose time is over is asked no more, and gives way", async (store, open) => {
    const other = await open();
    await store.createTag(settingsOf("t"));
    expect(await store.askForClaims("one", 1)).toMatchObject({ outcome: "asked" });
    await say(store, "one", [of("t", 50n)]);
    await expect.poll(async () => askedIn(other), { timeout: 10_000 }).toEqual([undefined]);
    await ask(other, "two");
    expect(await say(store, "one", [of("t", 60n)])).toBe("not-asked");
    expect((await hear(other, "two")).claimants).toEqual([]);
    expect(await reasonOf(take(store, "one"))).toBe("STORE_UNAVAILABLE");
    await take(other, "two");
    expect((await tagOf(store, "t")).floor).toBe(0n);
  });

  suite(
    "an ask without the look that was answered is one of before that look",
    async (store, open) => {
      const other = await open();
      await ask(store, "a");
      await say(other, "a", []);
      const looked = (number: number, answered: number) =>
        store.hearClaims("a", { number, answered });
      expect(await looked(1, 0)).toMatchObject({ isStanding: true, isEarlier: false });
      // One that nobody waited for comes late, or comes again.
      expect(await looked(3, 1)).toMatchObject({ isStanding: true, isEarlier: false });
      for (let again = 0; again < 2; again++) {
        expect(await looked(2, 1)).toMatchObject({ isStanding: true, isEarlier: false });
      }
      expect(await looked(4, 3)).toMatchObject({ isStanding: true, claimants: [{ id: "n1" }] });
      // It leaves nothing in what stands there.
      for (let again = 0; again < 2; again++) {
        const earlier = { isStanding: false, isEarlier: true };
        expect(await looked(6, 5)).toMatchObject(earlier);
      }
      expect(await store.hearClaims("b", { number: 6, answered: 5 })).toMatchObject({
        isStanding: false,
        isEarlier: false,
      });
      const asked = { nonce: "a", isTrusted: false };
      const accept = (look: number) =>
        other.accept(0n, undefined, undefined, undefined, { ...asked, look });
      expect(await reasonOf(accept(5))).toBe("STORE_UNAVAILABLE");
      expect((await accept(4)).claims).toMatchObject({ claimants: [{ id: "n1" }] });
    },
  );

  suite("who asks hears the rows of servers, and how far each has spoken", async (store, open) => {
    const other = await open();
    await ask(store, "a");
    const poll = (count: bigint) =>
      other.changes({ since: 0n, watched: [], limit: 1, renewal: renewalOf("n1", { count }) });
    await poll(1n);
    const before = (await hear(store, "a")).nodes.find(({ id }) => id === "n1");
    expect(before).toMatchObject({
      instance: nodeOf("n1").instance,
      address: nodeOf("n1").address,
    });
    await poll(2n);
    const after = (await hear(store, "a")).nodes.find(({ id }) => id === "n1");
    expect(after?.renewals).toBeGreaterThan(before?.renewals ?? 99n);
    const claimant = claimantOf("n1", { isWhole: false, sinceMs: 7 });
    const heard = async () => (await hear(store, "a")).claimants;
    expect(await say(other, "a", [], { claimant, isLast: false })).toBe("heard");
    expect(await heard()).toEqual([{ ...claimant, pages: 1, hasSpoken: false }]);
    // A page whose answer was lost is sent again.
    expect(await say(other, "a", [], { claimant, isLast: false })).toBe("heard");
    expect(await say(other, "a", [], { claimant, page: 1 })).toBe("heard");
    await say(other, "a", [], { claimant: claimantOf("n0") });
    expect(await heard()).toEqual([
      { ...claimantOf("n0"), pages: 1, hasSpoken: true },
      { ...claimant, pages: 2, hasSpoken: true },
    ]);
    const { claims } = await take(store, "a");
    expect(claims?.claimants).toHaveLength(2);
    expect(claims?.claimants[1]).toEqual({ ...claimant, pages: 2, hasSpoken: true });
  });

  suite(
    "a server that runs again while it speaks takes nothing back of what was heard",
    async (store) => {
      for (const name of ["a", "b"]) await store.createTag(settingsOf(name));
      await ask(store, "x");
      const known = [of("a", 900n), of("b", 500n)];
      // One goes on under its row in the middle of its speech, the other one after the end of it.
      const [half, whole] = [
        claimantOf("half", { sinceMs: 5 }),
        claimantOf("whole", { sinceMs: 5 }),
      ];
      await say(store, "x", known, { claimant: half, isLast: false });
      await say(store, "x", [], { claimant: whole });
      const again = { sinceMs: 9, isWhole: false };
      await say(store, "x", [of("b", 600n)], { claimant: { ...half, ...again } });
      await say(store, "x", [], { claimant: { ...whole, ...again } });
      const claimants = [
        { ...half, ...again, pages: 1, hasSpoken: true },
        { ...whole, pages: 1, hasSpoken: true },
      ];
      expect((await hear(store, "x")).claimants).toEqual(claimants);
      expect((await take(store, "x")).claims).toMatchObject({ raised: 2, claimants });
      const [a, b] = [await tagOf(store, "a"), await tagOf(store, "b")];
      expect([a.floor, b.floor]).toEqual([900n, 600n]);
    },
  );
}
