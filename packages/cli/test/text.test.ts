import { Tag } from "@idmint/proto";
import { expect, test } from "vitest";
import { columns, plain } from "../src/table.ts";
import { tagJson, tagTable, tagText } from "../src/tag-text.ts";
import { someTag } from "./support.ts";

test("columns are as wide as their widest cell, and lines end without spaces", () => {
  expect(
    columns([
      ["NAME", "FLOOR", "TEXT"],
      ["a", "12345678", ""],
      ["orders", "1", "x"],
    ]),
  ).toBe("NAME    FLOOR     TEXT\na       12345678\norders  1         x\n");
});

test("control characters of others never reach the terminal", () => {
  expect(plain("a\u001B[2Jb\nc\u009Bd")).toBe("a\\u001b[2Jb\\u000ac\\u009bd");
});

test("the JSON of a tag is proto3 JSON: reading it back gives the same tag", () => {
  const tag = { ...someTag("orders", 2n ** 62n), description: "ü" };
  const json = tagJson(tag) as { segment: object };
  // The generated reader takes a duration as an object; proto3 JSON, which grpcurl speaks, has "900s".
  const durations = { holdFor: { seconds: "900" }, maxAge: { nanos: 500_000_000 } };
  const readable = { ...json, segment: { ...json.segment, ...durations } };
  expect(json.segment).toMatchObject({ holdFor: "900s", maxAge: "0.500s" });
  expect(Tag.fromJSON(readable)).toEqual(tag);
});

test("the JSON of a tag has every field, also those at their default", () => {
  const keys = Object.keys(Tag.create({}))
    .filter((key) => key !== "kind")
    .concat("createTime", "updateTime", "segment");
  expect(Object.keys(tagJson(someTag("orders")) as object)).toEqual(expect.arrayContaining(keys));
  expect(tagJson(someTag("orders"))).toMatchObject({
    floor: "0",
    version: "0",
    ceiling: "9223372036854775807",
    segment: { start: "1", holdFor: "900s", maxAge: "0.500s" },
    state: "TAG_STATE_ACTIVE",
  });
});

test("the text of a tag uses the words that are typed", () => {
  const text = tagText({ ...someTag("orders", 7n), description: "a\u001Bb" }, [["raised", "yes"]]);
  expect(text).toContain("\norder        per-client\nstate        active\nfloor        7\n");
  expect(text).toContain("\nhold for     15m\nmax age      500ms\n");
  expect(text).toContain("\ndescription  a\\u001bb\nraised       yes\n");
});

test("the list of no tags is its heading", () => {
  expect(tagTable([])).toBe("NAME  KIND  ORDER  STATE  FLOOR  CEILING  EPOCH  DESCRIPTION\n");
});
