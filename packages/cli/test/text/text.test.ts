import { SequenceKind, Tag } from "@idmint/proto";
import { expect, test } from "vitest";
import { plain } from "../../src/process/plain.ts";
import { columns } from "../../src/text/table.ts";
import { tagJson, tagTable, tagText } from "../../src/text/tag-text.ts";
import { sequenceTag, someTag } from "../support.ts";

test("columns are as wide as their widest cell, and lines end without spaces", () => {
  expect(
    columns([
      ["NAME", "FLOOR", "TEXT"],
      ["a", "12345678", ""],
      ["orders", "1", "x"],
    ]),
  ).toBe("NAME    FLOOR     TEXT\na       12345678\norders  1         x\n");
});

test("a cell is one line, whoever wrote what is in it", () => {
  expect(columns([["a\nb\u2028", "c\td"]])).toBe("a\\u000ab\\u2028  c\\u0009d\n");
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

const KINDS: readonly Tag[] = [
  sequenceTag("redis"),
  {
    ...someTag("days"),
    order: 3,
    period: "2026-11-21",
    kind: {
      $case: "sequence",
      value: SequenceKind.create({
        start: 1n,
        period: 1,
        timeZone: "Asia/Shanghai",
        keepFor: { seconds: 34_560_000n, nanos: 0 },
        backend: 1,
      }),
    },
  },
  {
    ...someTag("flake"),
    kind: {
      $case: "redisSnowflake",
      value: {
        shard: 60,
        timeOrigin: new Date("2026-01-01T00:00:00Z"),
        endTime: new Date("2095-09-07T15:47:35.551Z"),
        redisServer: "a",
      },
    },
  },
  { ...someTag("ticket"), kind: { $case: "ticket", value: { start: 1n, slots: 60 } } },
];

test("each kind shows its own settings, in the words that are typed", () => {
  const [redis = "", days = "", flake = "", ticket = ""] = KINDS.map((tag) => tagText(tag));
  expect(redis).toMatch(/^kind +sequence\norder +strict\n/m);
  expect(redis).toMatch(/^start +1\nbackend +redis\nstep +10000\nredis server +a\nepoch /m);
  expect(days).toMatch(
    /^backend +store\nperiod +day\ntime zone +Asia\/Shanghai\nkeep for +400d\npresent period +2026-11-21\nepoch /m,
  );
  expect(flake).toMatch(/^kind +redis-snowflake$/m);
  expect(flake).toMatch(
    /^shard +60\ntime origin +2026-01-01T00:00:00.000Z\nends at +2095-09-07T15:47:35.551Z\nredis server +a\nepoch /m,
  );
  expect(ticket).toMatch(/^kind +ticket$/m);
  expect(ticket).toMatch(/^start +1\nslots +60\nepoch /m);
});

test("a list says in one word what tells tags of a kind apart", () => {
  const lines = tagTable([someTag("plain"), ...KINDS])
    .trimEnd()
    .split("\n")
    .slice(1);
  expect(lines.map((line) => line.split(/ +/)).map((cells) => [cells[1], cells[7]])).toEqual([
    ["segment", "-"],
    ["sequence", "redis:a"],
    ["sequence", "day:Asia/Shanghai"],
    ["redis-snowflake", "shard:60"],
    ["ticket", "slots:60"],
  ]);
});

test("the JSON of every kind is proto3 JSON: reading it back gives the same tag", () => {
  for (const tag of KINDS) {
    const json = tagJson(tag) as { sequence?: { keepFor: unknown } };
    if (json.sequence !== undefined) {
      expect(json.sequence.keepFor).toBe(tag.name === "days" ? "34560000s" : null);
      json.sequence.keepFor = tag.name === "days" ? { seconds: "34560000" } : null;
    }
    expect(Tag.fromJSON(json)).toEqual(tag);
  }
});

test("the list of no tags is its heading", () => {
  expect(tagTable([])).toBe(
    "NAME  KIND  ORDER  STATE  FLOOR  CEILING  EPOCH  SETTINGS  DESCRIPTION\n",
  );
});
