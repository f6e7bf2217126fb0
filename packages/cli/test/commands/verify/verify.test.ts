import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ListPeriodsResponse, ListTagsResponse } from "@idmint/proto";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { Budget, has, type IdRange, IdRanges } from "../../../src/commands/verify/ranges.ts";
import { against, idmint, refusal, sequenceTag, snowflakeTag, someTag } from "../../support.ts";

const MAX_ID = 2n ** 63n - 1n;

function idsOf({ base, count, increment }: IdRange): bigint[] {
  return Array.from({ length: Number(count) }, (_, at) => base + BigInt(at) * increment);
}

function summaryOf(ranges: readonly IdRange[]): ReturnType<IdRanges["summary"]> {
  const all = new IdRanges(new Budget());
  for (const range of ranges) all.add(range);
  return all.summary();
}

// Few ids, so that many of them are there twice, and both ends of what an id may be.
const RANGE = fc
  .record({
    base: fc.oneof(fc.bigInt(0n, 60n), fc.bigInt(MAX_ID - 400n, MAX_ID - 300n)),
    count: fc.bigInt(1n, 12n),
    increment: fc.constantFrom(1n, 1n, 1n, 2n, 3n, 4n, 6n, 16n),
  })
  .map((range): IdRange => range);

test("an id is told exactly when two ranges have it, whatever their increments", () => {
  fc.assert(
    fc.property(fc.array(RANGE, { maxLength: 8 }), (ranges) => {
      const times = new Map<bigint, number>();
      for (const id of ranges.flatMap(idsOf)) times.set(id, (times.get(id) ?? 0) + 1);
      const twice = [...times].filter(([, count]) => count > 1).map(([id]) => id);
      const { overlaps, overlapCount, ids, highest, lowest } = summaryOf(ranges);
      expect(overlapCount === 0).toBe(twice.length === 0);
      for (const { first, last } of overlaps) {
        expect(twice).toContain(first);
        expect(twice).toContain(last);
        expect(ranges.filter((range) => has(range, first)).length).toBeGreaterThan(1);
      }
      expect(ids).toBe(BigInt(ranges.flatMap(idsOf).length));
      if (ranges.length === 0) return;
      const sorted = [...times.keys()].toSorted((a, b) => (a < b ? -1 : 1));
      expect([lowest, highest]).toEqual([sorted[0], sorted.at(-1)]);
    }),
    { numRuns: 3_000 },
  );
});

test("slots of a ticket tag lie between each other without sharing an id", () => {
  const slots = Array.from({ length: 48 }, (_, slot) => ({
    base: BigInt(slot + 1),
    count: 1_000n,
    increment: 48n,
  }));
  expect(summaryOf(slots).overlapCount).toBe(0);
  const planted = { base: 48n * 500n + 7n, count: 2n, increment: 48n };
  expect(summaryOf([...slots, planted]).overlaps).toEqual([{ first: 24_007n, last: 24_055n }]);
});

test("what takes too much memory is refused, and neighbours take none", () => {
  const ranges = new IdRanges(new Budget(2));
  for (let id = 1n; id <= 1_000n; id++) ranges.add({ base: id, count: 1n, increment: 1n });
  ranges.add({ base: 5_000n, count: 1n, increment: 1n });
  expect(() => ranges.add({ base: 7_000n, count: 1n, increment: 1n })).toThrow("--tag");
});

function files(...contents: readonly (readonly object[])[]): string[] {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-verify-"));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return contents.map((rows, at) => {
    const file = path.join(folder, `${at}.ndjson`);
    writeFileSync(file, rows.map((row) => JSON.stringify(row)).join("\n"));
    return file;
  });
}

const segment = (base: number, count: number): object => ({
  base: String(base),
  count,
  increment: "1",
});

test("it shows who has an id twice, with file, line and what they say of themselves", async () => {
  const [one = "", two = ""] = files(
    [
      { tag: "orders", segments: [segment(1, 1_000)], who: "shop-1", time: "08:00", epoch: "1" },
      { tag: "orders", ids: ["2001", "2002"] },
    ],
    [
      { tag: "orders", id: "3000" },
      // Of a later epoch, which makes it no other id.
      { tag: "orders", id: 707, who: "shop-2\u001b[2J", time: "09:00", epoch: "2" },
      { tag: "other", id: "707" },
    ],
  );
  const { exitCode, out, err } = await idmint(["verify", one, two]);
  expect(exitCode).toBe(5);
  expect(out).toBe(
    `5 rows with 1005 ids of 2 tags
orders: id 707 held more than once
  ${one}:1  1 to 1000  shop-1           08:00
  ${two}:2  707        shop-2\\u001b[2J  09:00
`,
  );
  expect(err).toContain("UNHEALTHY");
  const json = JSON.parse((await idmint(["verify", one, two, "--json"])).out) as {
    ok: boolean;
    faults: { kind: string; holders: { line: number; who: string }[] }[];
  };
  expect([json.ok, json.faults.map(({ kind, holders }) => [kind, holders.length])]).toEqual([
    false,
    [["overlap", 2]],
  ]);
  const other = await idmint(["verify", "--tag", "other", one, two]);
  expect([other.exitCode, other.out]).toEqual([
    0,
    "no id is there twice in 1 rows with 1 ids of 1 tags\n",
  ]);
});

const row = (period: string): object => ({ tag: "invoices", period, id: "1" });

test("the same number in two periods is two ids, in one period it is one", async () => {
  const good = files([row("2026-11-21"), row("2026-11-22"), row("")]);
  expect((await idmint(["verify", ...good])).exitCode).toBe(0);
  const bad = files([row("2026-11-21"), row("2026-11-22")], [row("2026-11-22")]);
  const { exitCode, out } = await idmint(["verify", ...bad]);
  expect([exitCode, out]).toEqual([
    5,
    expect.stringContaining("invoices, period 2026-11-22: id 1 "),
  ]);
});

test.each([
  [`{"tag":"a","id":"1"`, "is not JSON"],
  [`[]`, "must be an object"],
  [`{"id":"1"}`, "needs the field tag"],
  [`{"tag":"a"}`, "exactly one of the fields id, ids and segments"],
  [`{"tag":"a","id":"1","ids":["1"]}`, "exactly one of"],
  [`{"tag":"a","ids":"1"}`, "not a list"],
  [`{"tag":"a","id":"0x10"}`, `got "0x10"`],
  [`{"tag":"a","id":"9223372036854775808"}`, "from 0 to 9223372036854775807"],
  [`{"tag":"a","id":9007199254740993}`, "as a text above 2^53"],
  [`{"tag":"a","id":1.5}`, "not a whole number"],
  [`{"tag":"a","segments":[{"base":"1","count":0}]}`, "below 1"],
  [`{"tag":"a","segments":[{"base":"9223372036854775807","count":2}]}`, "goes past"],
  [`{"tag":"a","segments":[7]}`, "no object"],
  [`{"tag":"a","id":"1","period":7}`, "field period"],
])("a line that proves nothing is refused: %s", async (line, told) => {
  const [file = ""] = files([]);
  writeFileSync(file, `{"tag":"a","id":"5"}\n\n${line}\n`);
  const { exitCode, err } = await idmint(["verify", file]);
  expect([exitCode, err]).toEqual([2, expect.stringContaining(told)]);
  expect(err).toContain(`${file}:3`);
});

test("any text is read as rows or refused with its line, and never taken for something else", async () => {
  const [file = ""] = files([]);
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.json(), fc.string()), async (text) => {
      const line = text.replaceAll(/[\r\n]/g, " ");
      writeFileSync(file, line);
      const { exitCode, err } = await idmint(["verify", file]);
      // No text of these names a tag and ids.
      expect([0, 2]).toContain(exitCode);
      if (exitCode === 2) expect(err).toContain(`${file}:1`);
      else expect(line.trim()).toBe("");
    }),
    { numRuns: 100 },
  );
});

test("ids above the floor of their tag or period are told; kinds that have none are not compared", async () => {
  const history = files([
    { tag: "orders", segments: [segment(1, 100)] },
    { tag: "gone", id: "40" },
    { tag: "unknown", id: "1" },
    { tag: "clicks", id: "123456789012345" },
    { tag: "invoices", period: "2026-11-22", id: "9" },
    { tag: "invoices", period: "2026-11-21", id: "500" },
    { tag: "invoices", period: "2020-01-01", id: "500" },
  ]);
  const notFound = refusal(5, "TAG_NOT_FOUND", "no tag");
  const tags = new Map([
    ["orders", someTag("orders", 99n)],
    ["clicks", snowflakeTag("clicks")],
    ["invoices", { ...sequenceTag("invoices"), period: "2026-11-22", floor: 9n }],
  ]);
  const play = {
    getTag: ({ name }: { name: string }) => {
      if (!tags.has(name)) throw notFound;
      return { tag: tags.get(name) };
    },
    listTags: ({ prefix }: { prefix: string }) =>
      ListTagsResponse.create({ tags: prefix === "gone" ? [someTag("gone", 40n)] : [] }),
    listPeriods: () =>
      ListPeriodsResponse.create({
        periods: [{ period: "2026-11-21", lastId: 499n, endTime: new Date(0) }],
      }),
  };
  const { exitCode, out } = await against(play, "verify", ...history, "--json");
  const { faults } = JSON.parse(out) as {
    faults: { tag: string; period: string; kind: string; first: string; floor: string }[];
  };
  expect(exitCode).toBe(5);
  expect(
    faults.map(({ tag, period, kind, first, floor }) => [tag, period, kind, first, floor]),
  ).toEqual([
    ["orders", "", "above the floor", "100", "99"],
    ["unknown", "", "above the floor", "1", "0"],
    ["invoices", "2026-11-21", "above the floor", "500", "499"],
  ]);
});

test("a file that is not there is told", async () => {
  const { exitCode, err } = await idmint(["verify", "/nowhere/h.ndjson"]);
  expect([exitCode, err]).toEqual([2, expect.stringContaining("ENOENT")]);
});
