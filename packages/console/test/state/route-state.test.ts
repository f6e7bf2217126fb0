import fc from "fast-check";
import { expect, test } from "vitest";
import { hrefOf, routeOf } from "../../src/state/route-state.ts";

const PAGES = ["", "nodes", "tags", "tags/:tag", "tags/:tag/edit"] as const;

function read(href: string): ReturnType<typeof routeOf> {
  return routeOf(new URL(href, "http://localhost"), PAGES);
}

test.each([
  ["/console/", ""],
  ["/console/nodes", "nodes"],
  ["/console/nodes/", "nodes"],
  ["/console/tags/orders", "tags/:tag"],
  ["/console/tags/orders/edit", "tags/:tag/edit"],
])("%s is the page %j", (href, page) => {
  expect(read(href).page).toBe(page);
});

test.each(["/", "/other/nodes", "/console/none", "/console/tags/a/b/c", "/console/tags/%E0%A4%A"])(
  "%s is no page",
  (href) => {
    expect(read(href).page).toBeUndefined();
  },
);

test("whatever a view remembers comes back out of its address", () => {
  const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 });
  const names = fc.stringMatching(/^[a-z]{1,8}$/);
  fc.assert(
    fc.property(text, fc.dictionary(names, text), (tag, query) => {
      // A URL takes "." and ".." for folders; no tag is called so.
      fc.pre(tag !== "." && tag !== "..");
      expect(read(hrefOf("tags/:tag", { tag }, query))).toEqual({
        page: "tags/:tag",
        params: { tag },
        query: { ...query },
      });
    }),
  );
});

test("what is empty is left out of an address", () => {
  expect(hrefOf("nodes", {}, { q: "", zone: undefined })).toBe("/console/nodes");
  expect(hrefOf("")).toBe("/console/");
});
