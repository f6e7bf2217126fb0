import { assertRights } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import { expiryOf, idOfToken, isReplaced } from "../../src/pages/tokens/expiry.ts";
import { problemsOf, requestOf, ROLES, type TokenForm } from "../../src/pages/tokens/token-form.ts";

const DAY = 86_400_000;
const GOOD: TokenForm = {
  principal: "ops",
  rights: [{ role: "admin", tags: "*" }],
  lifetime: "90d",
};

test("a form becomes a request", () => {
  expect(problemsOf(GOOD)).toEqual([]);
  expect(requestOf({ ...GOOD, lifetime: "90s" })).toEqual({
    principal: "ops",
    rights: [{ role: "ROLE_ADMIN", tags: "*" }],
    lifetime: "90s",
  });
});

test.for([
  [{ principal: "" }, "principal"],
  [{ principal: "-x" }, "principal"],
  [{ lifetime: "59s" }, "lifetime"],
  [{ lifetime: "367d" }, "lifetime"],
  [{ lifetime: "soon" }, "lifetime"],
  [{ rights: [{ role: "issue", tags: "" }] }, "rights[0].tags"],
  [{ rights: [...GOOD.rights, { role: "issue", tags: "a*b" }] }, "rights[1].tags"],
] as const)("%j cannot be sent", ([change, field]) => {
  expect(problemsOf({ ...GOOD, ...change })).toEqual([field]);
});

test("the same rights can be sent as the server takes", () => {
  const tags = fc.oneof(fc.string({ maxLength: 6 }), fc.stringMatching(/^[a-zA-Z0-9.*:_-]{0,6}$/));
  const right = fc.record({ role: fc.constantFrom(...ROLES), tags });
  fc.assert(
    fc.property(right, (one) => {
      const isTaken = problemsOf({ ...GOOD, rights: [one] }).length === 0;
      if (isTaken) assertRights([one], "rights");
      else expect(() => assertRights([one], "rights")).toThrow(/rights\[0\]\.tags/);
    }),
  );
});

test("a token ends soon in the last part of its time, unless a newer one is there", () => {
  const old = { tokenId: "1", principal: "p", createdAtMs: 0, expiresAtMs: 90 * DAY };
  expect(expiryOf(old, [old], 74 * DAY)).toBe("valid");
  expect(expiryOf(old, [old], 75 * DAY)).toBe("soon");
  expect(expiryOf(old, [old], 90 * DAY)).toBe("expired");
  const newer = { ...old, tokenId: "2", createdAtMs: 75 * DAY, expiresAtMs: 165 * DAY };
  expect(expiryOf(old, [old, newer], 80 * DAY)).toBe("valid");
  expect(expiryOf(old, [old, { ...newer, principal: "other" }], 80 * DAY)).toBe("soon");
  expect(isReplaced(newer, [old, newer])).toBe(false);
  expect(isReplaced(old, [old, { ...newer, expiresAtMs: 80 * DAY }])).toBe(false);
});

test("the public part of a token is read, and of nothing else", () => {
  expect(idOfToken(`idm_0123456789abcdef_${"A".repeat(43)}`)).toBe("0123456789abcdef");
  expect(idOfToken("")).toBeUndefined();
  expect(idOfToken("0123456789abcdef")).toBeUndefined();
});
