import type { Tag, TagSettings, Unguessable } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createdTag, updatedTag } from "../../../src/store/shared/change.ts";
import { columnFrom, columnOf } from "../../../src/store/shared/text-settings.ts";

const kind = {
  kind: "segment",
  start: 1n,
  min: 1,
  max: 2,
  holdForMs: 1_000,
  maxAgeMs: 1_000,
} as const;
const checks = (...keyIds: number[]) =>
  keyIds.map((keyId) => ({ keyId, check: `check of ${keyId}` }));
const by = (keyId: number, ...more: number[]): Unguessable => ({
  keyId,
  keyDigits: 1,
  keys: checks(...[...more, keyId].toSorted((a, b) => a - b)),
});
const settings: TagSettings = {
  name: "t",
  description: "",
  order: "UNORDERED",
  ceiling: 10n ** 9n,
  kind,
};
const stamp = { revision: 9n, nowMs: 9 };

function rowOf(more: Partial<Tag> = {}): Tag {
  return { ...createdTag(undefined, settings, stamp).tag, version: 1n, ...more };
}

const writing = fc.record(
  {
    format: fc.record({ template: fc.string() }),
    unguessable: fc.record({
      keyId: fc.integer({ min: 1, max: 999 }),
      keyDigits: fc.integer({ min: 1, max: 3 }),
      keys: fc.array(fc.record({ keyId: fc.integer({ min: 1, max: 999 }), check: fc.string() })),
    }),
  },
  { requiredKeys: [] },
);

test("a format and a key are read as they were written; without them the column is that of the kind", () => {
  fc.assert(
    fc.property(writing, (written) => {
      const column = columnOf({ kind, ...written });
      expect(columnFrom("t", "segment", column)).toEqual({ kind, ...written });
    }),
  );
  expect(columnOf({ kind })).toBe('{"start":"1","min":1,"max":2,"holdForMs":1000,"maxAgeMs":1000}');
});

const good = columnOf({ kind, format: { template: "A{id}" }, unguessable: by(1) });
test.each([
  ["a format of another type", good.replace('"A{id}"', "7")],
  ["no format", good.replace('"A{id}"', "null")],
  [
    "fields in another order",
    good.replace('"format":"A{id}",', "").replace(/\}$/, ',"format":"A{id}"}'),
  ],
  ["a key of another type", good.replace('"keyId":1', '"keyId":"1"')],
  ["a field too many", good.replace('"keyDigits"', '"more":1,"keyDigits"')],
  ["a check of another type", good.replace('"check of 1"', "1")],
  ["no keys", good.replace(/"keys":.*\]\]/, '"keys":{}')],
  ["no object", "[]"],
])("a column with %s is refused", (_, text) => {
  expect(text).not.toBe(good);
  expect(() => columnFrom("t", "segment", text)).toThrow(/SCHEMA_MISMATCH.*tag "t"/);
});

test("what was read before is read again, of its own kind alone, and what is refused is refused again", () => {
  const text = columnOf({ kind });
  for (let turn = 0; turn < 3; turn++) {
    expect(columnFrom("t", "segment", text)).toEqual({ kind });
    expect(columnOf(columnFrom("t", "segment", text))).toBe(text);
    for (const other of ["sequence", "ticket", "segment ", ""]) {
      expect(() => columnFrom(`t${turn}`, other, text)).toThrow(`tag "t${turn}"`);
    }
    expect(() => columnFrom(`t${turn}`, "segment", ` ${text}`)).toThrow(`tag "t${turn}"`);
  }
  // More than are remembered.
  for (let max = 1; max <= 2_500; max++) {
    const its = { kind: { ...kind, min: 1, max } };
    expect(columnFrom("t", "segment", columnOf(its))).toEqual(its);
  }
  expect(columnFrom("t", "segment", text)).toEqual({ kind });
});

test("how ids are written never changes, before the first id as little as after it", () => {
  const format = { template: "A{id}" };
  for (const version of [0n, 1n]) {
    const row = rowOf({ format, version });
    const update = (texts: { format?: { template: string }; unguessable?: Unguessable }) => () =>
      updatedTag("t", row, { texts }, undefined, stamp);
    expect(update({})).toThrow("FIELD_IMMUTABLE");
    expect(update({ format: { template: "B{id}" } })).toThrow("FIELD_IMMUTABLE");
    expect(update({ format, unguessable: by(1) })).toThrow("FIELD_IMMUTABLE");
    expect(update({ format })().changed).toBe(false);
    const ceiling = { settings: { ...settings, ceiling: 5n } };
    expect(() => updatedTag("t", row, ceiling, undefined, stamp)).toThrow("FIELD_IMMUTABLE");
    const { tag } = updatedTag("t", row, { description: "x" }, undefined, stamp);
    expect(tag).toMatchObject({ description: "x", format });
  }
});

test("a key may follow another one, and none is forgotten or becomes another", () => {
  const row = rowOf({ unguessable: by(1) });
  const update = (unguessable: Unguessable) => () =>
    updatedTag("t", row, { texts: { unguessable } }, undefined, stamp);
  expect(update(by(2, 1))().tag.unguessable).toEqual(by(2, 1));
  expect(update(by(2))).toThrow("FIELD_IMMUTABLE");
  expect(update({ ...by(2, 1), keyDigits: 2 })).toThrow("FIELD_IMMUTABLE");
  expect(update({ ...by(1), keys: [{ keyId: 1, check: "another" }] })).toThrow("FIELD_IMMUTABLE");
});

test("over a tombstone that issued ids only the same can be made, with the keys it had", () => {
  const tombstone = rowOf({
    state: "DELETED",
    unguessable: by(1, 2),
    format: { template: "A{id}" },
  });
  const same = { ...settings, format: { template: "A{id}" } };
  const made = (wanted: TagSettings) => () => createdTag(tombstone, wanted, stamp);
  expect(made({ ...same, unguessable: by(3) })().tag.unguessable).toEqual(by(3, 1, 2));
  const field = /INVALID_ARGUMENT: tag\.(format|unguessable) must be that of the deleted tag/;
  expect(made(same)).toThrow(field);
  expect(made({ ...settings, unguessable: by(1) })).toThrow(field);
  expect(made({ ...same, format: { template: "B{id}" }, unguessable: by(1) })).toThrow(field);
  expect(made({ ...same, unguessable: by(1), ceiling: 10n ** 8n })).toThrow(field);
  expect(made({ ...same, unguessable: { ...by(1), keys: [{ keyId: 1, check: "x" }] } })).toThrow(
    field,
  );
  const plain = { ...rowOf({ state: "DELETED" }) };
  expect(() => createdTag(plain, { ...settings, format: { template: "{id}" } }, stamp)).toThrow(
    field,
  );
  const unissued = { ...tombstone, version: 0n };
  expect(createdTag(unissued, settings, stamp).tag).toMatchObject({ epoch: unissued.epoch + 1n });
});

test("making a tag once more finds it, whatever keys it had before", () => {
  const row = rowOf({ unguessable: by(2, 1) });
  expect(createdTag(row, { ...settings, unguessable: by(2) }, stamp).changed).toBe(false);
  expect(() => createdTag(row, { ...settings, unguessable: by(1) }, stamp)).toThrow("TAG_EXISTS");
  expect(() => createdTag(row, settings, stamp)).toThrow("TAG_EXISTS");
  expect(() => createdTag(row, { ...settings, format: { template: "{id}" } }, stamp)).toThrow(
    "TAG_EXISTS",
  );
});
