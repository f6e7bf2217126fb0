import { IdmintError } from "@idmint/core";
import {
  assertRights,
  decide,
  type Right,
  Rights,
  ROLES,
  rolesOf,
  rolesText,
} from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";

const names = fc.stringMatching(/^[abo][ab.]{0,3}$/);
const patterns = fc.oneof(
  names,
  names.map((name) => `${name}*`),
  fc.constant("*"),
);
const rights = fc.array(fc.record({ role: fc.constantFrom(...ROLES), tags: patterns }), {
  maxLength: 6,
});

/** What docs/access.md says, word by word. */
function isFor({ tags }: Right, name: string): boolean {
  return tags.endsWith("*") ? name.startsWith(tags.slice(0, -1)) : name === tags;
}

test("a role is held for a name if and only if one of the rights says so", () => {
  fc.assert(
    fc.property(rights, names, fc.constantFrom(...ROLES), (list, name, role) => {
      const wanted = { roles: rolesOf(role), isBeginning: false };
      const held = list
        .filter((right) => isFor(right, name))
        .flatMap((right) => (right.role === "admin" ? ["admin", "observe"] : [right.role]));
      expect(decide({ rights: new Rights(list) }, wanted, name)).toBe(
        held.includes(role) ? "allowed" : "PERMISSION_DENIED",
      );
    }),
  );
});

test("two roles for one exact name are both held, in whichever order they stand", () => {
  const roles = ["issue", "observe"] as const;
  for (const order of [roles, roles.toReversed()]) {
    const held = new Rights(order.map((role) => ({ role, tags: "orders" }))).on("orders");
    expect(held).toBe(rolesOf(...roles));
  }
});

test("a right for all names that begin alike covers every one of them", () => {
  fc.assert(
    fc.property(rights, names, names, (list, beginning, rest) => {
      const all = { roles: rolesOf("observe"), isBeginning: true };
      if (decide({ rights: new Rights(list) }, all, beginning) !== "allowed") return;
      const one = { ...all, isBeginning: false };
      expect(decide({ rights: new Rights(list) }, one, beginning + rest)).toBe("allowed");
    }),
  );
});

const rightsOf = (tags: string): { rights: Rights } => ({
  rights: new Rights([{ role: "observe", tags }]),
});

test("the right for one name is no right for the names that begin like it", () => {
  const under = { roles: rolesOf("observe"), isBeginning: true };
  expect(decide(rightsOf("orders"), under, "orders")).toBe("PERMISSION_DENIED");
  expect(decide(rightsOf("orders*"), under, "")).toBe("PERMISSION_DENIED");
  expect(decide(rightsOf("*"), under, "")).toBe("allowed");
});

test("a caller who is not known is asked who they are, and one who is known may what needs no role", () => {
  const known = { roles: 0, isBeginning: false };
  expect(decide(undefined, known, "")).toBe("UNAUTHENTICATED");
  expect(decide({ rights: new Rights([]) }, known, "")).toBe("allowed");
  expect(decide({ rights: new Rights([]) }, { ...known, roles: rolesOf("issue") }, "a")).toBe(
    "PERMISSION_DENIED",
  );
});

test("roles are told to people in one order", () => {
  expect(rolesText(rolesOf("admin", "issue"))).toBe("issue or admin");
  expect(rolesText(rolesOf("observe"))).toBe("observe");
});

test("bad rights are refused with the field, all of them at once", () => {
  const bad = [
    { role: "issue", tags: "a*b" },
    { role: "root" as "admin", tags: "*" },
    { role: "observe", tags: "" },
  ] as const;
  try {
    assertRights(bad, "rights");
    expect.unreachable();
  } catch (error) {
    expect((error as IdmintError).violations.map(({ field }) => field)).toEqual([
      "rights[0].tags",
      "rights[1].role",
      "rights[2].tags",
    ]);
  }
  const many = Array.from({ length: 33 }, () => ({ role: "issue" as const, tags: "a" }));
  expect(() => assertRights(many, "rights")).toThrow("rights must be 1 to 32 rights");
  expect(() => assertRights([], "rights")).toThrow(IdmintError);
  assertRights([{ role: "issue", tags: "orders.*" }], "rights");
  assertRights(many.slice(1), "rights");
});
