import fc from "fast-check";
import { expect, test } from "vitest";
import { differencesOf } from "../../src/pages/audit/differences.ts";
import { filtersOf, requestOf, resourceOf } from "../../src/pages/audit/filters.ts";
import { fieldTimeOf, instantOfField } from "../../src/pages/audit/zone-time.ts";

test("only what differs is told, with the names of nested settings", () => {
  const before = JSON.stringify({
    floor: "0",
    same: 1,
    settings: { min: "5", layout: { unit: "ms" } },
  });
  const after = JSON.stringify({
    floor: "500",
    same: 1,
    settings: { min: "5", layout: { unit: "s" } },
    x: "",
  });
  expect(differencesOf(before, after)).toEqual([
    { name: "floor", before: "0", after: "500" },
    { name: "settings.layout.unit", before: "ms", after: "s" },
    { name: "x", before: undefined, after: '""' },
  ]);
  expect(differencesOf("", '{"a":[1,{"b":null}]}')).toEqual([
    { name: "a", before: undefined, after: '[1,{"b":null}]' },
  ]);
  expect(differencesOf("", "")).toEqual([]);
  expect(differencesOf("{", "{}")).toBeUndefined();
  expect(differencesOf("{}", "[1]")).toBeUndefined();
});

test("names that every object has are names like others", () => {
  const hostile = '{"__proto__":{"polluted":"yes"},"constructor":"c","toString":"t"}';
  expect(differencesOf("{}", hostile)).toEqual([
    { name: "__proto__.polluted", before: undefined, after: "yes" },
    { name: "constructor", before: undefined, after: "c" },
    { name: "toString", before: undefined, after: "t" },
  ]);
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

test("any two objects: what is equal is left out, what is told differs, and nothing that differs is lost", () => {
  const value = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(fc.string()),
  );
  const object = fc.dictionary(fc.string(), value, { maxKeys: 6 });
  fc.assert(
    fc.property(object, object, (a, b) => {
      const told = differencesOf(JSON.stringify(a), JSON.stringify(b)) ?? [];
      for (const one of told) expect(one.before).not.toBe(one.after);
      const differing = new Set(
        [...Object.keys(a), ...Object.keys(b)].filter(
          (key) =>
            Object.hasOwn(a, key) !== Object.hasOwn(b, key) ||
            JSON.stringify(a[key]) !== JSON.stringify(b[key]),
        ),
      );
      // An empty text and the two quotes that stand for it look the same, as a number and its digits do.
      for (const { name } of told) expect(differing).toContain(name);
      expect(differencesOf(JSON.stringify(a), JSON.stringify(a))).toEqual([]);
    }),
  );
});

test("the conditions of the URL become a request, and what means nothing is named", () => {
  const query = {
    since: "2026-11-22T10:31:04+01:00",
    until: "never",
    principal: " ops ",
    about: "orders",
    outcome: "PERMISSION_DENIED",
    page: "abc",
  };
  const { filters, unread } = filtersOf(query);
  expect(unread).toEqual(["until"]);
  expect(requestOf(filters)).toEqual({
    pageSize: 50,
    pageToken: "abc",
    kind: "AUDIT_KIND_REFUSAL",
    outcome: "PERMISSION_DENIED",
    principal: "ops",
    resource: "tag/orders",
    startTime: "2026-11-22T09:31:04.000Z",
  });
  const changes = filtersOf({ outcome: "change" }).filters;
  expect(requestOf(changes)).toMatchObject({ kind: "AUDIT_KIND_CHANGE", outcome: "" });
  expect(filtersOf({ outcome: "toString" }).unread).toEqual(["outcome"]);
  expect(filtersOf({})).toMatchObject({ unread: [], filters: { outcome: "", principal: "" } });
});

test.for([
  ["orders", "tag/orders"],
  [" a.b:c ", "tag/a.b:c"],
  ["tag/orders", "tag/orders"],
  ["token/0123456789abcdef", "token/0123456789abcdef"],
  ["store", "store"],
  ["issuing", "issuing"],
  ["", ""],
])("%s is the resource %s", ([typed = "", resource]) => {
  expect(resourceOf(typed)).toBe(resource);
});

test("a time comes back as it was, in both zones", () => {
  const seconds = fc.integer({ min: 0, max: 4_000_000_000 });
  fc.assert(
    fc.property(seconds, (second) => {
      const instant = new Date(second * 1_000).toISOString();
      expect(instantOfField(fieldTimeOf(instant, "utc"), "utc")).toBe(instant);
      const local = fieldTimeOf(instant, "local");
      // An hour that the clocks repeat has one name for two moments.
      expect(fieldTimeOf(instantOfField(local, "local"), "local")).toBe(local);
    }),
  );
  expect(fieldTimeOf("2026-11-22T10:31:04Z", "utc")).toBe("2026-11-22T10:31:04");
  expect(fieldTimeOf("", "utc")).toBe("");
  expect(fieldTimeOf("rubbish", "local")).toBe("");
  expect(instantOfField("", "local")).toBe("");
  expect(instantOfField("rubbish", "utc")).toBe("");
});
