import { expect, test } from "vitest";
import { namesOn, type Tag, type TagPage, upTo } from "../../../src/server/index.ts";

const page: TagPage = {
  tags: ["a", "b", "d"].map((name) => ({ name }) as Tag),
  unreadable: ["b", "c", "e"].map((tag) => ({ tag, detail: "it is nonsense" })),
};

test("tags that cannot be read have their place among the names on a page", () => {
  expect(namesOn(page)).toEqual(["a", "b", "c", "d", "e"]);
});

function first(limit: number): string[][] {
  const { tags, unreadable } = upTo(page, namesOn(page)[limit - 1]);
  return [tags.map(({ name }) => name), unreadable.map(({ tag }) => tag)];
}

test("the first names of a page are those that can be read and those that cannot", () => {
  expect(first(1)).toEqual([["a"], []]);
  expect(first(2)).toEqual([["a", "b"], ["b"]]);
  expect(first(3)).toEqual([
    ["a", "b"],
    ["b", "c"],
  ]);
  expect(first(9)).toEqual([
    ["a", "b", "d"],
    ["b", "c", "e"],
  ]);
});
