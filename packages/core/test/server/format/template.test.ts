import { IdmintError } from "@idmint/core";
import { parseTemplate } from "@idmint/core/server";
import { expect, test } from "vitest";

function violations(template: string): string[] {
  try {
    parseTemplate(template);
  } catch (error) {
    expect(error).toBeInstanceOf(IdmintError);
    const { reason, violations: found } = error as IdmintError;
    expect(reason).toBe("INVALID_FORMAT");
    return found.map(({ field, description }) => `${field} ${description}`);
  }
  return [];
}

test("a template is its parts", () => {
  expect(parseTemplate("INV-{id:radix36:13}{mod37_36}").parts).toEqual([
    { kind: "literal", text: "INV-" },
    { kind: "number", name: "id", radix: 36, width: 13 },
    { kind: "check", check: "mod37_36", isLowerCase: true },
  ]);
});

test("decimal, and as wide as it gets, unless it says otherwise", () => {
  expect(parseTemplate("{seq}{id:7}").parts).toEqual([
    { kind: "number", name: "seq", radix: 10, width: undefined },
    { kind: "number", name: "id", radix: 10, width: 7 },
  ]);
});

test.each([
  ["{yyyyMMdd}{id}", { offsetMinutes: 0 }],
  ["{yyyyMMdd@UTC}{id}", { offsetMinutes: 0 }],
  ["{yyyyMMdd@+08:00}{id}", { offsetMinutes: 480 }],
  ["{yyyyMMdd@-0330}{id}", { offsetMinutes: -210 }],
  ["{yyyyMMddxx@Europe/Berlin}{id}", { name: "Europe/Berlin" }],
])("the zone of %s", (template, zone) => {
  expect(parseTemplate(template).parts[0]).toMatchObject({ kind: "time", zone });
});

// Each fault with the position it is named at; 0: of the whole.
test.each([
  ["", 0, "must have a part that changes"],
  ["INV", 0, "must have a part that changes"],
  ["{luhn}", 0, "must have a part that changes"],
  ["INV{id", 4, "no closing brace"],
  ["INVid}", 6, "no opening brace"],
  ["{a{id}", 2, "is not a part"],
  ["é{id}", 1, "printable ASCII"],
  ["{id}\n", 5, "printable ASCII"],
  ["INV{ID}", 5, "{ID} is not a part; the parts are {id}"],
  ["{biz:3}{id}", 2, "write the business number itself"],
  ["{id:0}", 5, "width of 1 to 63"],
  ["{id:64}", 5, "width of 1 to 63"],
  ["{id:8:9}", 7, "each once"],
  ["{id:radix16:radix10}", 13, "each once"],
  ["{id:radix64}", 5, "one of 10, 16, 32, 36, 58, 62"],
  ["{id:radix}", 5, "one of 10"],
  ["{id:}", 5, "width"],
  ["{id}{id}", 0, "must show {id} at most once"],
  ["{id}{luhn}{luhn}", 0, "one check digit"],
  ["{luhn}{id}", 0, "{luhn} must come after"],
  ["{id:radix62}{luhn}", 0, "{luhn} counts only digits, but {id} before it has radix 62"],
  ["{id:radix16}{mod11_10}", 0, "has radix 16"],
  ["{id:radix58}{mod37_36}", 0, "has radix 58"],
  ["{yyyyMMddhh}{id}", 10, "a pattern is made of"],
  ["{yyyydd}{id}", 2, "without leaving one out"],
  ["{yyyyMMyyyy}{id}", 2, "each once"],
  ["{YYYYww}{id}", 2, "ISO week"],
  ["{yyyyxxxx}{id}", 2, "the offset (xx) once"],
  ["{yyyy}{yyyy}{id}", 0, "at most one time"],
  ["{yyyyMMdd@Mars}", 11, "an hour repeats"],
  ["{yyyyMMdd@+19:00}{id}", 11, "+18:00"],
  ["{yyyyMMdd@+08:60}{id}", 11, "+18:00"],
  ["{yyyyMMdd@}{id}", 11, "after @"],
  ["{period:HHmm}{id}", 9, "the pattern of a period"],
  ["{period:yyyyMMdd@UTC}{id}", 17, "a pattern is made of"],
])("%j is refused at %i: %s", (template, at, what) => {
  const found = violations(template);
  const prefix = at === 0 ? "tag.format.template" : `tag.format.template at position ${at}: `;
  expect(found.filter((each) => each.startsWith(prefix) && each.includes(what))).toHaveLength(1);
});

test("all faults are named at once", () => {
  expect(violations("{a}-{b}-{id:radix3}")).toHaveLength(3);
});

test("a zone whose clocks are put back needs its offset shown", () => {
  expect(violations("{yyyyMMddHHmmssSSS@Europe/Berlin}{machine:4}{seq:4}")).toEqual([
    expect.stringContaining("at position 20: in Europe/Berlin an hour repeats"),
  ]);
});

test("a template is 256 characters at most", () => {
  expect(violations(`${"x".repeat(252)}{id}`)).toEqual([]);
  expect(violations(`${"x".repeat(253)}{id}`)).toEqual([
    "tag.format.template must be at most 256 characters, got 257",
  ]);
});
