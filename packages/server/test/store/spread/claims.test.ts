// What a server says to several databases, of which not all are asked at the same moment.
import type { Claims, ClaimsAnswer } from "@idmint/core/server";
import { expect, test } from "vitest";
import type { PostgresStore } from "../../../src/store/postgres/store.ts";
import { spreadClaims } from "../../../src/store/spread/merged-claims.ts";

const SAID: Claims = {
  nonce: "n",
  claimant: { id: "s", instance: "s", address: "", sinceMs: 0, isWhole: true },
  claims: [{ tag: "t", period: "", last: 5n }],
  page: 0,
  isLast: true,
};

const placeOf = (): string => "m0";

/** What a server hears when the databases answer this, in the order in which an accept asks them. */
async function answerOf(...answers: readonly ClaimsAnswer[]): Promise<ClaimsAnswer> {
  const members = answers.map((_, at) => `m${at}`);
  const stores = new Map(
    answers.map((answer, at) => [
      `m${at}`,
      { claim: async () => answer } as unknown as PostgresStore,
    ]),
  );
  const store = spreadClaims(members, { placeOf }, async (name, work) => {
    const its = stores.get(name);
    if (its === undefined) throw new Error(`there is no ${name}`);
    return work(its);
  });
  return store.claim(SAID);
}

test("a page that comes before all databases were asked is said again", async () => {
  expect(await answerOf("heard", "not-asked")).toBe("busy");
  expect(await answerOf("busy", "not-asked")).toBe("busy");
  expect(await answerOf("heard", "busy")).toBe("busy");
  expect(await answerOf("heard", "heard")).toBe("heard");
  // An accept begins, and ends, with the first of them.
  expect(await answerOf("not-asked", "heard")).toBe("not-asked");
  expect(await answerOf("not-asked", "not-asked")).toBe("not-asked");
});
