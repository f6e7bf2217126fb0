import { readdirSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { en } from "../../src/text/en.ts";
import { fill } from "../../src/text/fill.ts";
import { zh } from "../../src/text/zh.ts";

const source = path.resolve(import.meta.dirname, "../../src/text");
const files = readdirSync(path.join(source, "en"));

function holesOf(text: string): readonly string[] {
  return [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "").toSorted();
}

test("both languages have the same texts, with the same values in them", () => {
  expect(Object.keys(zh).toSorted()).toEqual(Object.keys(en).toSorted());
  for (const key of Object.keys(en) as (keyof typeof en)[]) {
    expect(holesOf(zh[key]), key).toEqual(holesOf(en[key]));
    expect(zh[key].trim(), key).not.toBe("");
  }
});

test("each file of texts is in both languages, and no text is in two files", async () => {
  expect(readdirSync(path.join(source, "zh"))).toEqual(files);
  const keys = new Map<string, string>();
  for (const file of files) {
    const all = (await import(path.join(source, "en", file))) as Record<string, object>;
    for (const key of Object.values(all).flatMap(Object.keys)) {
      expect(keys.get(key), key).toBeUndefined();
      keys.set(key, file);
    }
  }
  expect([...keys.keys()].toSorted()).toEqual(Object.keys(en).toSorted());
});

test("values are put in as they are, and only once", () => {
  expect(fill("{a} and {b}", { a: "{b}", b: "$&" })).toBe("{b} and $&");
  expect(fill("{missing}", {})).toBe("{missing}");
});
