// The console shows a button if, and only if, the server would do what it asks.
import { decide, type Right, Rights, ROLES, rolesOf } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import { accessOf, mayIn } from "../../src/state/access.ts";

const names = fc.constantFrom("orders", "orders.eu", "orders.eu.x", "order", "invoices", "o");
const rights = fc.array(
  fc.record({
    role: fc.constantFrom(...ROLES),
    tags: fc.oneof(
      names,
      names.map((name) => `${name}*`),
      fc.constant("*"),
    ),
  }),
  { maxLength: 4 },
);

function told(list: readonly Right[]): ReturnType<typeof accessOf> {
  const sent = list.map(({ role, tags }) => ({ role: `ROLE_${role.toUpperCase()}`, tags }));
  return accessOf({ principal: "somebody", rights: sent });
}

test("rights are read as the server reads them", () => {
  fc.assert(
    fc.property(rights, fc.constantFrom(...ROLES), fc.option(names), (list, role, name) => {
      const isBeginning = name === null;
      const subject = { roles: rolesOf(role), isBeginning };
      const verdict = decide({ rights: new Rights(list) }, subject, name ?? "");
      expect(mayIn(told(list), role, name ?? undefined)).toBe(verdict === "allowed");
    }),
    { numRuns: 2_000 },
  );
});

test("a role of a newer server gives nothing", () => {
  const access = accessOf({ principal: "x", rights: [{ role: "ROLE_OWNER", tags: "*" }] });
  expect(ROLES.filter((role) => mayIn(access, role))).toEqual([]);
});
