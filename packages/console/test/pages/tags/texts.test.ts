import { flatFields, KIND_NAMES, KINDS } from "@idmint/core/kinds";
import { expect, test } from "vitest";
import { commonFields, formFields, groupsOf } from "../../../src/pages/tags/model/fields.ts";
import { en } from "../../../src/text/en.ts";
import { kindFieldsZh } from "../../../src/text/kind-fields.ts";

/** What callers see of a kind: messages and the fields in them, and not what only rows have. */
const paths = KIND_NAMES.flatMap((kind) => [
  ...groupsOf(kind),
  ...flatFields(KINDS[kind].fields)
    .filter(([, { role }]) => role !== "row-only")
    .map(([path]) => `${kind}.${path}`),
]);

test("every field of a kind has its words in Chinese, and in English by its table", () => {
  expect(Object.keys(kindFieldsZh).toSorted()).toEqual(paths.toSorted());
  for (const [path, [label, help]] of Object.entries(kindFieldsZh)) {
    expect(label, path).not.toBe("");
    expect(help, path).not.toBe("");
  }
  for (const kind of KIND_NAMES) {
    for (const { path, field } of formFields(kind)) {
      const isCommon = commonFields(kind).some((one) => one.path === path);
      const known = isCommon
        ? `field.${path}` in en && `field.${path}.help` in en
        : field.help !== "";
      expect(known, path).toBe(true);
    }
  }
});

test("every kind is explained", () => {
  for (const kind of KIND_NAMES) expect(en).toHaveProperty([`kind.${kind}`]);
});
