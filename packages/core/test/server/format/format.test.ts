import {
  encode,
  IdmintError,
  MAX_ID,
  maxIdOf,
  paymentSerial,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
} from "@idmint/core";
import { type FormatSubject, parseTemplate, TextFormat, textFormatOf } from "@idmint/core/server";
import { expect, test } from "vitest";

const layout: SnowflakeLayout = { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 6 };

function snowflakes(of: SnowflakeLayout = layout): FormatSubject {
  return { firstId: 0n, lastId: maxIdOf(of), snowflake: of };
}

function numbers(lastId: bigint): FormatSubject {
  return { firstId: 1n, lastId };
}

function format(template: string, subject: FormatSubject): TextFormat {
  return new TextFormat(parseTemplate(template), subject);
}

function violations(act: () => unknown): string[] {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(IdmintError);
    expect((error as IdmintError).code).toBe("INVALID_ARGUMENT");
    return (error as IdmintError).violations.map((v) => `${v.field} ${v.description}`);
  }
  return [];
}

function faults(template: string, subject: FormatSubject): string[] {
  return violations(() => format(template, subject));
}

const at = Date.UTC(2026, 10, 21, 15, 30, 45, 123);
function idAt(ms: number, worker: number, sequence: number, of = layout): bigint {
  const tick = Math.floor((ms - of.timeOriginMs) / of.timeUnitMs);
  return encode(of, { tick, extension: 0, dataCenter: 0, worker, sequence });
}

test("prefixed codes", () => {
  const invoices = format("INV{id:8}{luhn}", numbers(99_999_999n));
  expect(invoices.render(1n)).toBe("INV000000018");
  expect(invoices.parse("INV000000018")).toEqual({
    id: 1n,
    period: "",
    parts: [
      { name: "", value: "INV" },
      { name: "id", value: "00000001" },
      { name: "luhn", value: "8" },
    ],
  });
  expect(invoices).toMatchObject({ shortest: 12, longest: 12, capacity: 99_999_999n });
  expect(invoices.examples()).toEqual(["INV000000018", "INV999999998"]);
});

test("type ids, as short as they can be", () => {
  const orders = format("order_{id:radix58}", numbers(MAX_ID));
  expect(orders.render(MAX_ID)).toBe("order_NQm6nKp8qFC");
  expect(orders.parse("order_NQm6nKp8qFC").id).toBe(MAX_ID);
  expect(orders).toMatchObject({ shortest: 7, longest: 17 });
});

test("the payment serial of a layout", () => {
  const template = paymentSerial("101", layout);
  expect(template).toBe("101{yyyyMMddHHmmssSSS}{machine:2}{seq:4}");
  const serials = format(template, snowflakes());
  const id = idAt(at, 42, 7);
  expect(serials.render(id)).toBe("10120261121153045123420007");
  expect(serials.parse("10120261121153045123420007").id).toBe(id);
  expect(serials.longest).toBe(26);
  for (const each of Object.values(SNOWFLAKE_PRESETS))
    expect(faults(paymentSerial("9", each), snowflakes(each))).toEqual([]);
  expect(() => paymentSerial("a1", layout)).toThrow("business must be 1 to 16 digits");
});

test("periods of sequences", () => {
  const subject: FormatSubject = { ...numbers(999_999n), period: "DAY" };
  const daily = format("{period:yyyyMMdd}{id:6}", subject);
  expect(daily.render(42n, "2026-11-21")).toBe("20261121000042");
  expect(daily.parse("20261121000042")).toMatchObject({ id: 42n, period: "2026-11-21" });
  expect(format("{period}-{id}", { ...subject, period: "WEEK" }).render(7n, "2026-11-16")).toBe(
    "2026W47-7",
  );
  expect(() => daily.render(42n, "")).toThrow(RangeError);
});

test.each<[NonNullable<FormatSubject["period"]>, string, string, string]>([
  ["WEEK", "{period}/{id}", "2026W53/1", "2026-12-28"],
  ["WEEK", "{period:yyyy-MM-dd}/{id}", "2026-12-28/1", "2026-12-28"],
  ["MONTH", "{period}/{id}", "202602/1", "2026-02-01"],
  ["MONTH", "{period:yyyyMMdd}/{id}", "20260201/1", "2026-02-01"],
  ["YEAR", "{period}/{id}", "2026/1", "2026-01-01"],
])("the period of a %s in %s: %s", (period, template, text, start) => {
  const periodic = format(template, { ...numbers(9n), period });
  expect(periodic.render(1n, start)).toBe(text);
  expect(periodic.parse(text)).toMatchObject({ id: 1n, period: start });
});

test("a period that is no first day, or no day at all, is none", () => {
  const weekly = format("{period:yyyyMMdd}/{id}", { ...numbers(9n), period: "WEEK" });
  const daily = format("{period}/{id}", { ...numbers(9n), period: "DAY" });
  expect(violations(() => weekly.parse("20261229/1"))).toEqual([
    "text at position 8: {period} does not fit the rest",
  ]);
  expect(violations(() => daily.parse("20260231/1"))).toHaveLength(1);
  expect(violations(() => daily.parse("20261301/1"))).toHaveLength(1);
  expect(violations(() => daily.parse("20260100/1"))).toHaveLength(1);
});

test.each<[string, string, FormatSubject]>([
  ["must show the period", "{id:6}", { ...numbers(9n), period: "DAY" }],
  ["down to the day", "{period:yyyyMM}{id:6}", { ...numbers(9n), period: "DAY" }],
  ["down to the week", "{period:yyyyMM}{id:6}", { ...numbers(9n), period: "WEEK" }],
  ["down to the day", "{period:YYYYww}{id:6}", { ...numbers(9n), period: "DAY" }],
  ["only a sequence with periods", "{period}{id:6}", numbers(9n)],
  ["shows {yyyy…}, which only kind snowflake has", "{yyyyMMdd}{id}", numbers(9n)],
  ["shows {machine}, which only kind snowflake has", "{machine}-{id}", numbers(9n)],
  ["must show {id}", "A{seq}", numbers(9n)],
  ["widen it to 6, or set a ceiling of at most 99999", "{id:5}", numbers(100_000n)],
  ["widen it to 4, or choose a layout with fewer bits", "{id}-{seq:3}", snowflakes()],
  ["{id} without a width before another", "{id}{seq}", snowflakes()],
  ["no digit of radix 62", "{id:radix62}x{seq}", snowflakes()],
  ["{machine} is missing", "{yyyyMMddHHmmssSSS}{seq:4}", snowflakes()],
  ["{seq} is missing", "{yyyyMMddHHmmssSSS}{machine:2}", snowflakes()],
  ["{yyyyMMddHHmmssSSS}, {seq} are missing", "{yyyyMMddHHmmss}{machine:2}", snowflakes()],
  ["{yyyyMMddHHmmssSSS} is missing", "{machine:2}{seq:4}", snowflakes()],
  [
    "{data_center} is missing",
    "{yyyyMMddHHmmssSSS}{machine:2}{seq:4}",
    snowflakes(SNOWFLAKE_PRESETS["41-5-5-12"]),
  ],
  [
    "{extension} is missing",
    "{yyyyMMddHHmmssSSS}{machine:2}{seq:4}",
    snowflakes({ ...layout, extensionBits: 2 }),
  ],
  ["this system does not know", "{yyyyMMddxx@Mars/Olympus}{id}", snowflakes()],
  [
    "past the year 9999",
    "{yyyy}-{id}",
    snowflakes({ ...layout, timeUnitMs: 1_000, timeBits: 38, workerBits: 0 }),
  ],
  ["texts of 257 characters", `${"x".repeat(238)}{id:19}`, numbers(MAX_ID)],
])("refused: %s", (what, template, subject) => {
  const found = faults(template, subject);
  expect(found.filter((each) => each.includes(what))).toHaveLength(1);
});

test("two numbers without a width are told apart by what is no digit of the first", () => {
  const codes = format("{machine}-{seq}.{id:radix16}", snowflakes());
  const id = idAt(at, 42, 7);
  expect(codes.render(id)).toBe(`42-7.${id.toString(16)}`);
  expect(codes.parse(codes.render(id)).id).toBe(id);
});

test("texts that no id has are refused by the position in which they are wrong", () => {
  const invoices = format("INV{id:8}{luhn}", numbers(99_999_998n));
  const parse = (text: string) => violations(() => invoices.parse(text));
  expect(parse("")).toEqual(['text at position 1: expected "INV"']);
  expect(parse("inv000000018")).toEqual(['text at position 1: expected "INV"']);
  expect(parse("INV0000")).toEqual(["text at position 8: the text ends within {id}"]);
  expect(parse("INV00000001")).toEqual(["text at position 12: the text ends within {luhn}"]);
  expect(parse("INV0000x0018")).toEqual(['text at position 8: "x" is no digit of radix 10']);
  expect(parse("INV0000000188")).toEqual(["text at position 13: must end here"]);
  expect(parse("INV000000019")).toEqual([
    "text at position 12: the check digit does not fit the text before it",
  ]);
  expect(parse("INV000000000")).toEqual(["text means id 0, which is not within 1 … 99999998"]);
  expect(parse("INV999999991")).toEqual([
    "text means id 99999999, which is not within 1 … 99999998",
  ]);
  expect(parse("x".repeat(257))).toEqual(["text must be at most 256 characters, got 257"]);
  const orders = format("order_{id:radix58}", numbers(MAX_ID));
  expect(violations(() => orders.parse("order_"))).toEqual([
    "text at position 7: expected digits of {id}",
  ]);
  expect(violations(() => orders.parse("order_12"))).toEqual([
    "text at position 7: {id} does not fit the rest",
  ]);
});

test("a time and fields that the layout has not are refused by their position", () => {
  const serials = format("{yyyyMMddHHmmssSSS}{machine:2}{seq:4}", snowflakes());
  const parse = (text: string) => violations(() => serials.parse(text));
  expect(parse("20261121153045123990007")).toEqual([
    "text at position 18: {machine} must be at most 63",
  ]);
  expect(parse("19691121153045123420007")).toEqual([
    "text at position 1: the tag has no ids of this time",
  ]);
  expect(parse("20261121153075123420007")).toEqual([
    "text at position 12: {time} does not fit the rest",
  ]);
  expect(parse("2026112115304512x420007")).toEqual([
    'text at position 17: "x" does not fit the date\'s pattern',
  ]);
});

test("an id beyond the tag's is refused, never wrapped", () => {
  const codes = format("{id:3}", numbers(999n));
  expect(codes.render(999n)).toBe("999");
  for (const id of [0n, 1_000n, 1_001n])
    expect(() => codes.render(id)).toThrow(/^TAG_EXHAUSTED: id \d+ is not within 1 … 999/);
});

test("fixed offsets, and ticks that begin within what is shown", () => {
  const seconds = { ...layout, timeUnitMs: 1_000, timeBits: 36, timeOriginMs: 1_767_225_600_500 };
  const serials = format("{yyyyMMddHHmmss@+08:00}{machine:2}{seq:4}", snowflakes(seconds));
  const id = idAt(at, 1, 2, seconds);
  expect(serials.render(id)).toBe("20261121233044010002");
  expect(serials.parse("20261121233044010002").id).toBe(id);
});

test("a tag's template is checked against its kind, ceiling and key", () => {
  const kind = { kind: "segment", start: 1n, min: 1, max: 1, holdForMs: 1, maxAgeMs: 1 } as const;
  const tag = { kind, ceiling: 9_999_999n, format: { template: "C{id:7}" } };
  expect(textFormatOf(tag)?.render(12n)).toBe("C0000012");
  expect(textFormatOf({ kind, ceiling: 9n })).toBeUndefined();
  expect(violations(() => textFormatOf({ ...tag, ceiling: 10_000_000n }))).toHaveLength(1);
  // With a key ids are longer.
  const unguessable = { keyId: 1, keyDigits: 1 };
  expect(violations(() => textFormatOf({ ...tag, unguessable }))).toEqual([
    expect.stringContaining("it can grow to 99999999: widen it to 8"),
  ]);
  const uuid = { kind: "uuid", version: 4 } as const;
  expect(violations(() => textFormatOf({ ...tag, kind: uuid }))).toEqual([
    "tag.format must be empty for kind uuid: its ids are text",
  ]);
});

test("a check digit's letters have the case of the numbers before it", () => {
  for (const [template, form] of [
    ["{id:radix36:13}{mod37_36}", /^[0-9a-z]{14}$/],
    ["{id:radix16:16}{mod37_36}", /^[0-9a-z]{17}$/],
    ["{id:radix32:13}{mod37_36}", /^[0-9A-Z]{14}$/],
    ["INV{id:19}{mod37_36}", /^INV\d{19}[0-9A-Z]$/],
  ] as const) {
    const codes = format(template, numbers(MAX_ID));
    const texts = Array.from({ length: 200 }, (_, at) => codes.render(BigInt(at + 1) * 7_919n));
    for (const text of texts) expect(text).toMatch(form);
    expect(texts.some((text) => /[A-Za-z]$/.test(text))).toBe(true);
    for (const text of texts) expect(codes.render(codes.parse(text).id)).toBe(text);
  }
});
