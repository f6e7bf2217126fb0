import {
  type Accepted,
  type CallArgs,
  type ClaimStore,
  ClaimTally,
  type HeardClaimant,
  type Hearing,
} from "@idmint/core/server";
import type { PostgresStore } from "../postgres/store.ts";
import { settledAll } from "./answers.ts";
import { pointEverywhere } from "./fleet.ts";
import type { Locator } from "./locator.ts";

type In = <T>(member: string, work: (store: PostgresStore) => Promise<T>) => Promise<T>;

/** Asks in all databases, each of which hears of the tags that are in it, and that a server speaks. */
export function spreadClaims(
  members: readonly string[],
  locator: Pick<Locator, "placeOf">,
  inMember: In,
): ClaimStore {
  const inAll = async <T>(work: (store: PostgresStore, name: string) => Promise<T>): Promise<T[]> =>
    settledAll(members.map((name) => inMember(name, (store) => work(store, name))));
  const withdrawAsk = async (nonce: string): Promise<void> => {
    await inAll((store) => store.withdrawAsk(nonce));
  };
  return {
    // In one order, so that of two who ask at once the first database decides.
    askForClaims: async (nonce, forMs) => {
      const hearings: Hearing[] = [];
      for (const name of members) {
        const asked = await inMember(name, (store) => store.askForClaims(nonce, forMs));
        if (asked.outcome !== "asked") {
          await withdrawAsk(nonce);
          return asked;
        }
        hearings.push(asked.hearing);
      }
      return { outcome: "asked", hearing: mergedHearings(hearings) };
    },
    hearClaims: async (nonce, look) =>
      mergedHearings(await inAll((store) => store.hearClaims(nonce, look))),
    claim: async ({ claims, ...said }) => {
      const places = Map.groupBy(claims, ({ tag }) => locator.placeOf(tag));
      const answers = await inAll((store, name) =>
        store.claim({ ...said, claims: places.get(name) ?? [] }),
      );
      // An accept begins with the first database: where that asks, the others are about to.
      if (answers[0] === "not-asked") return "not-asked";
      return answers.every((answer) => answer === "heard") ? "heard" : "busy";
    },
    withdrawAsk,
  };
}

/** Accepts one database after the other, and tells each which tags it gave away. */
export async function acceptAll(
  stores: ReadonlyMap<string, PostgresStore>,
  args: CallArgs["accept"],
): Promise<Accepted> {
  const accepted: Accepted[] = [];
  for (const [name, store] of stores) {
    await pointEverywhere(stores, [name]);
    accepted.push(await store.accept(...args));
  }
  return mergedAccepts(accepted);
}

/** What all databases heard. Each has a row of every server; a server has spoken when it has in all of them. */
function mergedHearings(hearings: readonly Hearing[]): Hearing {
  const nodes = new Map<string, Hearing["nodes"][number]>();
  for (const node of hearings.flatMap((hearing) => hearing.nodes)) {
    const known = nodes.get(node.id);
    // A sum moves when one of its parts does.
    nodes.set(node.id, { ...node, renewals: node.renewals + (known?.renewals ?? 0n) });
  }
  return {
    isStanding: hearings.every(({ isStanding }) => isStanding),
    isEarlier: hearings.some(({ isEarlier }) => isEarlier),
    nodes: [...nodes.values()],
    claimants: mergedClaimants(hearings.map(({ claimants }) => claimants)),
  };
}

function mergedClaimants(all: readonly (readonly HeardClaimant[])[]): readonly HeardClaimant[] {
  const byId = Map.groupBy(all.flat(), ({ id }) => id);
  const merged = [...byId.values()].flatMap((its) => {
    const [first] = its;
    if (first === undefined) return [];
    const pages = Math.min(...its.map((one) => one.pages));
    const hasSpoken = its.length === all.length && its.every((one) => one.hasSpoken);
    return [{ ...first, pages, hasSpoken }];
  });
  return merged.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** What accepting all databases did. */
function mergedAccepts(accepted: readonly Accepted[]): Accepted {
  const tags = accepted.reduce((sum, one) => sum + one.tags, 0);
  const taken = accepted.flatMap(({ claims }) => (claims === undefined ? [] : [claims]));
  if (taken.length === 0) return { tags };
  const tally = new ClaimTally();
  for (const one of taken) tally.add(one);
  const claimants = mergedClaimants(taken.map((one) => one.claimants));
  return { tags, claims: { ...tally.taken, claimants } };
}
