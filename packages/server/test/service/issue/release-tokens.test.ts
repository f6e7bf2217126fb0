import { expect, test } from "vitest";
import { ReleaseTokens } from "../../../src/service/issue/release-tokens.ts";

function tokens(limit = 10): ReleaseTokens {
  let made = 0;
  return new ReleaseTokens(limit, () => `token-${++made}`);
}

const IDS = {
  segments: [
    { base: 1n, increment: 1, count: 3 },
    { base: 101n, increment: 1, count: 2 },
  ],
  epoch: 7n,
  generation: Symbol("generation"),
};

test("a token gives its last ids, over segments too", () => {
  const all = tokens();
  const token = all.make("t", IDS);
  expect(all.countOf(token, "t")).toBe(5);
  expect(all.use(token, "t", 3)).toEqual({
    ...IDS,
    segments: [
      { base: 3n, increment: 1, count: 1 },
      { base: 101n, increment: 1, count: 2 },
    ],
  });
});

test("a token is good once, and only for its tag", () => {
  const all = tokens();
  const token = all.make("t", IDS);
  expect(all.use(token, "other", 1)).toBeUndefined();
  expect(all.use(token, "t", 1)).toBeDefined();
  expect(all.use(token, "t", 1)).toBeUndefined();
  expect(all.countOf(token, "t")).toBeUndefined();
});

test("too many tokens push the oldest out", () => {
  const all = tokens(2);
  const [first, second, third] = [1, 2, 3].map(() => all.make("t", IDS));
  expect(all.use(first ?? "", "t", 1)).toBeUndefined();
  expect(all.use(second ?? "", "t", 1)).toBeDefined();
  expect(all.use(third ?? "", "t", 1)).toBeDefined();
});
