// What a form tells while it is typed is what servers would say.
import { decode, decodeObjectId, decodeUuid, SNOWFLAKE_PRESETS, timeOf } from "@idmint/core";
import { KIND_NAMES, type KindName } from "@idmint/core/kinds";
import { zoneOffsets } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import { newTag } from "../../../../cli/src/flags/tag-flags.ts";
import { plannedTag } from "../../../../server/src/main/planned.ts";
import { periodAt, periodEnd } from "../../../../server/src/store/shared/period.ts";
import { initialValues } from "../../../src/pages/tags/model/draft.ts";
import type { FormValues } from "../../../src/pages/tags/model/fields.ts";
import { createLine } from "../../../src/pages/tags/model/lines.ts";
import { nextCut } from "../../../src/pages/tags/model/next-cut.ts";
import {
  type Preview,
  type PreviewFact,
  previewOf,
} from "../../../src/pages/tags/model/preview.ts";
import { formOf, parsedLine, RUNS } from "./lines-support.ts";

const NOW = Date.UTC(2026, 10, 23, 6);
const offsetAt = zoneOffsets();

function preview(kind: KindName, values: FormValues = {}, rate?: number): Preview {
  const all = { ...initialValues(kind), name: "t", ...values };
  return previewOf(kind, all, { nowMs: NOW, offsetAt, rate });
}

function fact({ facts }: Preview, name: string): PreviewFact | undefined {
  return facts.find((one) => one.name === name);
}

test.each(KIND_NAMES)("kind %s: what is wrong is what a server would refuse", async (kind) => {
  await fc.assert(
    fc.asyncProperty(formOf(kind), async (typed) => {
      // A description and zones beyond ASCII are the server's alone to judge.
      const values = { ...typed, description: "" };
      const found = previewOf(kind, values, { nowMs: Date.now(), offsetAt, rate: undefined });
      const { args, flags } = await parsedLine(createLine(kind, values));
      let refused: readonly string[] = [];
      let examples: readonly string[] = [];
      try {
        ({ examples } = plannedTag(newTag(args[0] ?? "", flags)));
      } catch (thrown) {
        const violations = (
          thrown as { violations: readonly { field: string; description: string }[] }
        ).violations;
        refused = violations.map(({ field, description }) => `${field} ${description}`);
      }
      const seen = found.violations.map(({ field, description }) => `${field} ${description}`);
      // Who calls may also ask for a ceiling that no tag of the kind has; only servers look at that.
      expect(seen.toSorted()).toEqual(
        refused.filter((text) => !text.startsWith("tag.ceiling must be 1 to")).toSorted(),
      );
      if (refused.length > 0) return;
      const isText = kind === "uuid" || kind === "object_id";
      if (!isText) expect(found.samples.at(-1)).toBe(examples.at(-1));
      expect(found.samples.length > 0 || examples.length === 0 || kind === "uuid").toBe(true);
    }),
    { numRuns: RUNS },
  );
});

test("a snowflake tag: its bits, life, workers, rates and an id of now", () => {
  const found = preview("snowflake");
  expect(found.bits).toEqual([
    { name: "time", bits: 41 },
    { name: "worker", bits: 10 },
    { name: "sequence", bits: 12 },
  ]);
  expect(fact(found, "life_end")).toMatchObject({ timeMs: Date.parse("2095-09-07T15:47:35.552Z") });
  expect(fact(found, "workers")).toMatchObject({ count: 1_024n });
  expect(fact(found, "ids_per_second")).toMatchObject({ count: 4_096_000n });
  expect(fact(found, "ids_per_second_in_all")).toMatchObject({ count: 4_194_304_000n });
  const layout = SNOWFLAKE_PRESETS["41-10-12"];
  expect(timeOf(layout, decode(layout, BigInt(found.samples[0] ?? "")).tick)).toBe(NOW);
});

test("too many bits are said where they are too many", () => {
  const { violations, samples } = preview("snowflake", { "snowflake.layout.sequence_bits": "30" });
  expect(violations).toMatchObject([{ field: "tag.snowflake.layout" }]);
  expect(samples).toEqual([]);
});

test("a redis_snowflake tag has 63 bits", () => {
  const { bits } = preview("redis_snowflake");
  expect(bits.map(({ bits: each }) => each)).toEqual([41, 12, 10]);
});

test("a sequence with periods: the next cut in its zone, and a text of the period", () => {
  const values = { "sequence.period": "DAY", "sequence.time_zone": "Asia/Shanghai" };
  const found = preview("sequence", values);
  expect(fact(found, "next_cut")).toMatchObject({ timeMs: Date.parse("2026-11-23T16:00:00Z") });
  expect(found.samples[0]).toBe("20260101-1");
});

test("a format: texts and their length; a bad one is told by its position", () => {
  const good = preview("segment", { ceiling: "99999999", "format.template": "INV{id:8}{luhn}" });
  expect(good.samples[0]).toBe("INV000000018");
  expect(fact(good, "text_length")).toMatchObject({ text: "12" });
  const bad = preview("segment", { "format.template": "INV{number}" });
  expect(bad.violations).toMatchObject([{ field: "tag.format.template" }]);
  expect(bad.violations[0]?.description).toContain("at position");
});

test("a segment tag: how many ids, and when they end at an expected rate", () => {
  const found = preview("segment", { ceiling: "1000000" }, 10);
  expect(fact(found, "ids")).toMatchObject({ count: 1_000_000n });
  expect(fact(found, "forecast.CEILING")).toMatchObject({ timeMs: NOW + 100_000_000 });
  expect(fact(preview("segment", { ceiling: "1000000" }), "forecast.CEILING")).toBeUndefined();
});

test.each(["1", "2", "4", "6", "7"])("a UUID of version %s", (version) => {
  const [sample = ""] = preview("uuid", { "uuid.version": version }).samples;
  expect(sample).toMatch(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u);
  const found = decodeUuid(sample);
  expect(found?.version).toBe(Number(version));
  if (version === "1" || version === "6" || version === "7") expect(found?.timeMs).toBe(NOW);
});

test("an ObjectId of now", () => {
  const [sample = ""] = preview("object_id").samples;
  expect(decodeObjectId(sample)).toBe(NOW);
});

test("the next cut is where servers cut", () => {
  const zones = [
    "UTC",
    "Asia/Shanghai",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Pacific/Apia",
  ];
  fc.assert(
    fc.property(
      fc.constantFrom("DAY", "WEEK", "MONTH", "YEAR"),
      fc.constantFrom(...zones),
      fc.integer({ min: Date.UTC(2001, 0, 1), max: Date.UTC(2035, 0, 1) }),
      (unit, timeZone, nowMs) => {
        const cut = { unit, timeZone };
        expect(nextCut(unit, timeZone, nowMs, offsetAt)).toBe(periodEnd(cut, periodAt(cut, nowMs)));
      },
    ),
    // Clocks went back from 0:01, so the day had its midnight twice.
    { numRuns: 300, examples: [["DAY", "America/St_Johns", Date.UTC(2001, 9, 27, 2, 30)]] },
  );
});
