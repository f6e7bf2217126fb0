// A form, the request that it makes, and the line that is shown beside it.
import { KIND_NAMES, type KindName } from "@idmint/core/kinds";
import { Tag } from "@idmint/proto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { newTag } from "../../../../cli/src/flags/tag-flags.ts";
import { protoJson } from "../../../../cli/src/text/proto-json.ts";
import { draftOf, initialValues, tagJson } from "../../../src/pages/tags/model/draft.ts";
import { commonFields, type FormValues } from "../../../src/pages/tags/model/fields.ts";
import { createLine } from "../../../src/pages/tags/model/lines.ts";
import { formOf, parsedLine, RUNS } from "./lines-support.ts";

/** A request as a server reads it: every field is there, and an empty one has its default. */
function complete(json: Readonly<Record<string, unknown>>, full: unknown): unknown {
  if (typeof full !== "object" || full === null) return full;
  return Object.fromEntries(
    Object.entries(full).map(([name, value]) => {
      const asked = json[name];
      if (asked === undefined) return [name, EMPTY];
      const isMessage = typeof asked === "object" && asked !== null;
      return [
        name,
        isMessage ? complete(asked as Readonly<Record<string, unknown>>, value) : asked,
      ];
    }),
  );
}

const EMPTY = "(empty)";

/** The same of what the command line sends. */
function withoutDefaults(full: unknown): unknown {
  if (full === null || full === 0 || full === "" || full === "0" || full === false) return EMPTY;
  if (typeof full === "string" && full.endsWith("_UNSPECIFIED")) return EMPTY;
  if (typeof full !== "object") return full;
  return Object.fromEntries(
    Object.entries(full).map(([name, value]) => [name, withoutDefaults(value)]),
  );
}

async function typedTag(line: string): Promise<unknown> {
  const { command, args, flags } = await parsedLine(line);
  expect(command).toBe("create");
  return protoJson(Tag, newTag(args[0] ?? "", flags));
}

function requestOf(kind: KindName, values: FormValues): Readonly<Record<string, unknown>> {
  return tagJson(values["name"] ?? "", draftOf(kind, values));
}

test.each(KIND_NAMES)("kind %s: the line asks for what the form asks for", async (kind) => {
  await fc.assert(
    fc.asyncProperty(formOf(kind), async (values) => {
      const typed = await typedTag(createLine(kind, values));
      const sent = complete(requestOf(kind, values), typed);
      expect(withoutDefaults(sent)).toEqual(withoutDefaults(typed));
    }),
    { numRuns: RUNS },
  );
});

test("what is not typed is left to the server", () => {
  for (const kind of KIND_NAMES) {
    const json = requestOf(kind, { ...initialValues(kind), name: "t" });
    expect(Object.values(json)).toEqual(["t", {}]);
    expect(createLine(kind, { ...initialValues(kind), name: "t" })).toBe(
      `idmint tag create t --kind ${kind.replace("_", "-")}`,
    );
  }
});

test("one changed width sends the whole layout", () => {
  const values = { ...initialValues("snowflake"), "snowflake.layout.worker_bits": "5", name: "t" };
  const layout = { timeUnit: "0.001s", timeBits: 41, timeOrigin: "2026-01-01T00:00:00.000Z" };
  const rest = { workerBits: 5, sequenceBits: 12 };
  expect(requestOf("snowflake", values)).toEqual({
    name: "t",
    snowflake: { layout: { ...layout, ...rest } },
  });
  expect(createLine("snowflake", values)).toContain("--layout 41-5-12");
});

test("ids stay text, to the last digit", () => {
  const values = { name: "t", ceiling: "9007199254740993", "segment.start": "9007199254740993" };
  expect(requestOf("segment", values)).toEqual({
    name: "t",
    ceiling: "9007199254740993",
    segment: { start: "9007199254740993" },
  });
});

test("a 0 is nothing to the API, and so it is to a form", () => {
  const values = { name: "t", ceiling: "0", "segment.start": "0", "segment.min": "0" };
  expect(requestOf("segment", values)).toEqual({ name: "t", segment: {} });
});

test("what is no value is kept back, and named", () => {
  const values = {
    "segment.start": "one",
    "segment.min": "99999999999",
    "segment.hold_for": "15",
    "segment.max_age": " 15m ",
  };
  const { faults, kind } = draftOf("segment", values);
  expect(Object.fromEntries(faults)).toEqual({
    "segment.start": "number",
    "segment.min": "number",
    "segment.hold_for": "duration",
  });
  expect(kind).toMatchObject({ max_age: 900_000 });
  const origin = draftOf("redis_snowflake", { "redis_snowflake.time_origin": "2026-02-30" });
  expect([...origin.faults]).toEqual([["redis_snowflake.time_origin", "time"]]);
});

function paths(kind: KindName): string[] {
  return commonFields(kind).map(({ path }) => path);
}

test("only fields that a kind has are asked", () => {
  expect(paths("segment")).toEqual([
    "description",
    "order",
    "ceiling",
    "format.template",
    "unguessable.key_id",
    "unguessable.key_digits",
  ]);
  expect(paths("sequence")).toEqual(["description", "ceiling", "format.template"]);
  expect(paths("snowflake")).toEqual(["description", "format.template"]);
  expect(paths("uuid")).toEqual(["description"]);
  expect(paths("ticket")).toContain("unguessable.key_id");
});
