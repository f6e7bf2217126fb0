// Two ids never have the same text: templates that were accepted, with ids at their edges, in real time zones.
import {
  decode,
  encode,
  endOf,
  IdmintError,
  MAX_ID,
  maxIdOf,
  type SnowflakeLayout,
} from "@idmint/core";
import { type FormatSubject, parseTemplate, TextFormat } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";

const RADIXES = [10, 16, 32, 36, 58, 62];
const ZONES = [
  "UTC",
  "+08:00",
  "-03:30",
  "Europe/Berlin",
  "Australia/Lord_Howe",
  "America/New_York",
];

/** The offset by the runtime's own database of zones. */
function offsetAt(zone: string, ms: number): number | undefined {
  try {
    const parts = new Intl.DateTimeFormat("en", {
      timeZone: zone,
      hourCycle: "h23",
      era: "short",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    }).formatToParts(ms);
    const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = (
      ["year", "month", "day", "hour", "minute", "second"] as const
    ).map((type) => Number(parts.find((part) => part.type === type)?.value));
    const local = Date.UTC(year, month - 1, day, hour, minute, second);
    return (local - Math.floor(ms / 1_000) * 1_000) / 60_000;
  } catch {
    return undefined;
  }
}

const radix = fc.constantFrom("", ...RADIXES.map((each) => `:radix${each}`));
const width = fc.oneof(
  fc.constant(""),
  fc.integer({ min: 1, max: 20 }).map((n) => `:${n}`),
);
const number = (name: string) => fc.tuple(radix, width).map(([r, w]) => `{${name}${r}${w}}`);
const literal = fc.constantFrom("", "-", "A", "x", "7", "00", "_");
const time = fc
  .tuple(
    fc.constantFrom("yyyyMMdd", "yyyyMMddHHmmss", "yyyyMMddHHmmssSSS", "yyyy-MM-dd HH:mm:ss.SSS"),
    fc.boolean(),
    fc.constantFrom(...ZONES),
  )
  .map(([pattern, offset, zone]) => `{${pattern}${offset ? "xx" : ""}@${zone}}`);
const check = fc.constantFrom("{luhn}", "{mod11_10}", "{mod97_10}", "{mod37_36}", "");

/** Parts of snowflakes in any order, fixed text between them. */
const templates = fc
  .tuple(
    fc.shuffledSubarray(["id", "machine", "seq", "time"], { minLength: 1 }),
    ...["id", "machine", "seq"].map(number),
    time,
    fc.array(literal, { minLength: 5, maxLength: 5 }),
    check,
  )
  .map(([names, id, machine, seq, when, literals, last]) => {
    const parts: Record<string, string> = { id, machine, seq, time: when } as never;
    return names.map((name, at) => (literals as string[])[at]! + parts[name]!).join("") + last;
  });

const layouts = fc.record({
  timeUnitMs: fc.constantFrom(1, 10, 1_000),
  timeOriginMs: fc.constantFrom(0, 1_767_225_600_000, 1_767_225_600_777),
  timeBits: fc.constantFrom(20, 38),
  extensionBits: fc.constant(0),
  dataCenterBits: fc.constant(0),
  workerBits: fc.constantFrom(0, 2, 10),
  sequenceBits: fc.constantFrom(1, 12),
});

/** Ids in a layout: any, at its ends, and pairs an hour apart where clocks are put back. */
function ids(layout: SnowflakeLayout): fc.Arbitrary<bigint> {
  const lastId = maxIdOf(layout);
  const hours = fc
    .tuple(
      // Clocks are put back in Berlin, in New York, on Lord Howe Island (half an hour).
      fc.constantFrom(Date.UTC(2026, 9, 25, 1), Date.UTC(2026, 10, 1, 6), Date.UTC(2026, 3, 4, 15)),
      fc.integer({ min: -4, max: 4 }),
      fc.nat(1),
    )
    .map(([back, halfHours, sequence]) => {
      const ms = Math.min(back + halfHours * 1_800_000, endOf(layout) - 1);
      const tick = Math.max(0, Math.floor((ms - layout.timeOriginMs) / layout.timeUnitMs));
      return encode(layout, { tick, extension: 0, dataCenter: 0, worker: 0, sequence });
    });
  return fc.oneof(
    hours,
    fc.bigInt({ min: 0n, max: lastId }),
    fc.constantFrom(0n, 1n, lastId, lastId - 1n),
  );
}

/** The format, or undefined when the template is refused; never another error. */
function formatOf(template: string, subject: FormatSubject): TextFormat | undefined {
  try {
    return new TextFormat(parseTemplate(template), subject);
  } catch (error) {
    if (error instanceof IdmintError && error.code === "INVALID_ARGUMENT") return undefined;
    throw error;
  }
}

test("what was accepted for snowflakes is read back, and no two ids have the same text", () => {
  let accepted = 0;
  const cases = layouts.chain((layout) =>
    fc.record({
      layout: fc.constant(layout),
      template: templates,
      some: fc.array(ids(layout), { minLength: 2, maxLength: 12 }),
    }),
  );
  fc.assert(
    fc.property(cases, ({ layout, template, some }) => {
      const lastId = maxIdOf(layout);
      const format = formatOf(template, { firstId: 0n, lastId, snowflake: layout, offsetAt });
      if (format === undefined) return;
      accepted++;
      const texts = new Map<string, bigint>();
      for (const id of new Set(some)) {
        const text = format.render(id);
        expect([template, text, texts.get(text)]).toEqual([template, text, undefined]);
        texts.set(text, id);
        expect(text.length).toBeGreaterThanOrEqual(format.shortest);
        expect(text.length).toBeLessThanOrEqual(format.longest);
        expect(decode(layout, format.parse(text).id)).toEqual(decode(layout, id));
      }
    }),
    { numRuns: 20_000 },
  );
  expect(accepted).toBeGreaterThan(1_000);
});

test("a serial of the hour that is repeated is told apart by its offset", () => {
  const layout = {
    timeUnitMs: 1,
    timeOriginMs: 0,
    timeBits: 41,
    extensionBits: 0,
    dataCenterBits: 0,
    workerBits: 0,
    sequenceBits: 4,
  };
  const subject = { firstId: 0n, lastId: maxIdOf(layout), snowflake: layout, offsetAt };
  const format = formatOf("{yyyyMMddHHmmssSSSxx@Europe/Berlin}{seq:2}", subject);
  const texts = [0, 3_600_000].map((later) => {
    const tick = Date.UTC(2026, 9, 25, 0, 30) + later;
    return format?.render(
      encode(layout, { tick, extension: 0, dataCenter: 0, worker: 0, sequence: 3 }),
    );
  });
  expect(texts).toEqual(["20261025023000000+020003", "20261025023000000+010003"]);
  expect(formatOf("{yyyyMMddHHmmssSSS@Europe/Berlin}{seq:2}", subject)).toBeUndefined();
});

test("any text is read as an id that has this very text, or refused", () => {
  const characters = fc.string({
    unit: fc.constantFrom(..."0123456789aAzZ-_é".split("")),
    maxLength: 24,
  });
  const cases = fc.record({
    template: fc.constantFrom("A-{id}", "{id:radix62:11}", "{id:radix58}{id:4}", "{id:8}{luhn}"),
    text: fc.oneof(
      characters,
      characters.map((each) => `A-${each}`),
    ),
  });
  fc.assert(
    fc.property(cases, ({ template, text }) => {
      const lastId = template === "{id:8}{luhn}" ? 99_999_999n : MAX_ID;
      const format = formatOf(template, { firstId: 1n, lastId });
      if (format === undefined) return;
      try {
        expect(format.render(format.parse(text).id)).toBe(text);
      } catch (error) {
        expect(error).toMatchObject({ reason: "INVALID_ID" });
      }
    }),
    { numRuns: 20_000 },
  );
});

test("padded texts of a radix sort as their ids do", () => {
  const cases = fc.record({
    base: fc.constantFrom(...RADIXES),
    a: fc.bigInt({ min: 1n, max: MAX_ID }),
    b: fc.bigInt({ min: 1n, max: MAX_ID }),
  });
  fc.assert(
    fc.property(cases, ({ base, a, b }) => {
      const format = formatOf(`{id:radix${base}:19}`, { firstId: 1n, lastId: MAX_ID });
      expect(format!.render(a) < format!.render(b)).toBe(a < b);
    }),
  );
});
