import { type Claims, type ClaimsAnswer, MAX_CLAIMS, VersionGuard } from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import { Speaker } from "../../../src/service/upstream/speaker.ts";

const CLAIMANT = { id: "n", instance: "n", address: "", sinceMs: 1, isWhole: true };

/** A server, and a store that answers what the test says, `heard` at first. */
function setUp() {
  const guard = new VersionGuard();
  const said: Claims[] = [];
  const next: { answer: ClaimsAnswer | Error } = { answer: "heard" };
  const time = new FakeTime();
  const speaker = new Speaker({
    store: {
      claim: async (claims) => {
        said.push(claims);
        if (next.answer instanceof Error) throw next.answer;
        return next.answer;
      },
    },
    guard,
    claimant: () => CLAIMANT,
    timers: time,
    storeTimeoutMs: 1_000,
  });
  const grant = (tag: string, first: bigint, last: bigint, period = "") =>
    guard.admitIds(tag, { epoch: 1n, first, last, period });
  return { guard, said, next, time, speaker, grant };
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 100; i++) await Promise.resolve();
};

test("all that was granted and not given back is said, once for each ask", async () => {
  const { guard, said, speaker, grant } = setUp();
  grant("b", 1n, 50n, "2026-01-01");
  grant("b", 1n, 9n, "2026-01-02");
  grant("a", 1n, 100n);
  grant("gone", 1n, 10n);
  guard.giveBack("a", { from: 61n, to: 100n });
  guard.giveBack("gone", { from: 1n, to: 10n });
  speaker.saw(undefined);
  await settled();
  expect(said).toEqual([]);
  speaker.saw("x");
  await settled();
  const claims = [
    { tag: "a", period: "", last: 60n },
    { tag: "b", period: "2026-01-01", last: 50n },
    { tag: "b", period: "2026-01-02", last: 9n },
  ];
  const rest = { claimant: CLAIMANT, claims, page: 0, isLast: true };
  expect(said).toEqual([{ nonce: "x", ...rest }]);
  speaker.saw("x");
  speaker.saw("y");
  await settled();
  expect(said.slice(1)).toEqual([{ nonce: "y", ...rest }]);
});

test("a server that was granted nothing says so", async () => {
  const { said, speaker } = setUp();
  speaker.saw("x");
  await settled();
  expect(said).toMatchObject([{ claims: [], page: 0, isLast: true }]);
});

test("many claims come in pages, in the order of their tags", async () => {
  const { said, speaker, grant } = setUp();
  for (let at = 0; at < MAX_CLAIMS + 5; at++) grant(`t${at}`, 1n, 1n);
  speaker.saw("x");
  await settled();
  expect(said.map(({ claims, page, isLast }) => [claims.length, page, isLast])).toEqual([
    [MAX_CLAIMS, 0, false],
    [5, 1, true],
  ]);
  const tags = said.flatMap(({ claims }) => claims.map(({ tag }) => tag));
  expect(tags).toEqual(tags.toSorted());
});

test("a page that was not heard is said again: soon, or with the next poll that shows the ask", async () => {
  const { said, next, time, speaker, grant } = setUp();
  grant("a", 1n, 9n);
  next.answer = "busy";
  speaker.saw("x");
  await settled();
  expect(said).toHaveLength(1);
  // One speech at a time.
  speaker.saw("x");
  time.advance(50);
  await settled();
  expect(said).toHaveLength(2);
  next.answer = new Error("away");
  time.advance(50);
  await settled();
  next.answer = "heard";
  time.advance(5_000);
  await settled();
  expect(said).toHaveLength(3);
  speaker.saw("x");
  await settled();
  expect(said).toHaveLength(4);
  expect(new Set(said.map(({ page }) => page))).toEqual(new Set([0]));
});

test("whoever asks no more is told nothing more", async () => {
  const { said, next, speaker, grant } = setUp();
  for (let at = 0; at < MAX_CLAIMS + 5; at++) grant(`t${at}`, 1n, 1n);
  next.answer = "not-asked";
  speaker.saw("x");
  await settled();
  speaker.saw("x");
  await settled();
  expect(said).toHaveLength(1);
});
