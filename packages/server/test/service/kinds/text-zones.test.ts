// Times of named zones whose offset changes in the middle of an hour, or is no whole number of minutes.
import { encode, maxIdOf, SNOWFLAKE_PRESETS, type SnowflakeLayout } from "@idmint/core";
import { type FormatSubject, parseTemplate, TextFormat, zoneOffsets } from "@idmint/core/server";
import { expect, test } from "vitest";

const layout: SnowflakeLayout = {
  ...SNOWFLAKE_PRESETS["41-10-12"],
  timeOriginMs: 0,
  workerBits: 2,
  sequenceBits: 4,
};
const subject: FormatSubject = {
  firstId: 0n,
  lastId: maxIdOf(layout),
  snowflake: layout,
  offsetAt: zoneOffsets(),
};

function formatIn(zone: string): TextFormat {
  const template = `{yyyyMMdd HHmmssSSSxx@${zone}} {machine:1}{seq:2}`;
  return new TextFormat(parseTemplate(template), subject);
}

function idAt(ms: number): bigint {
  return encode(layout, { tick: ms, extension: 0, dataCenter: 0, worker: 1, sequence: 7 });
}

const ST_JOHNS = Date.UTC(2010, 2, 14, 3, 31);
const ST_JOHNS_BACK = Date.UTC(2010, 10, 7, 2, 31);
const MONROVIA = Date.UTC(1972, 0, 7, 0, 44, 30);

/** Each text is that of one moment, whatever was written before it: every id is written and read in turns. */
test.each([
  ["America/St_Johns", ST_JOHNS - 1, "20100314 000059999-0330 107"],
  ["America/St_Johns", ST_JOHNS, "20100314 010100000-0230 107"],
  ["America/St_Johns", ST_JOHNS_BACK - 1, "20101107 000059999-0230 107"],
  ["America/St_Johns", ST_JOHNS_BACK, "20101106 230100000-0330 107"],
  ["Africa/Monrovia", 0, "19691231 231600000-0044 107"],
  ["Africa/Monrovia", MONROVIA - 1, "19720107 000029999-0044 107"],
  ["Africa/Monrovia", MONROVIA, "19720107 004430000+0000 107"],
])("in %s at %i", (zone, ms, text) => {
  for (const before of [ms - 1, ms + 1, ms - 900_000, ms + 900_000]) {
    const format = formatIn(zone);
    if (before >= 0) format.render(idAt(before));
    expect(format.render(idAt(ms))).toBe(text);
    if (before >= 0) format.render(idAt(before));
    expect(format.parse(text).id).toBe(idAt(ms));
  }
});

test("the examples of a tag whose time begins in 1970", () => {
  expect(formatIn("Africa/Monrovia").examples()[0]).toBe("19691231 231600000-0044 000");
});
