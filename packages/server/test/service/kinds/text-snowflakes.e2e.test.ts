// Snowflakes as text, through a server: serials of business number, time, machine and counter.
import { encode, paymentSerial, SNOWFLAKE_PRESETS } from "@idmint/core";
import {
  CreateTagRequest,
  type DecodeIdResponse,
  GenerateIdsRequest,
  IdServiceService,
  TagServiceService,
} from "@idmint/proto";
import { MemoryDatabase, MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import { call, generateId, refusalOf, startTest, type TestServer } from "../../support.ts";

const LAYOUT = { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 6 };
const BITS = { timeBits: 41, workerBits: 6, sequenceBits: 12 };
const HOUR_MS = 3_600_000;
/** Digits of a time to the millisecond. */
const TIME = /^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\d{3})$/;

async function create(it: TestServer, name: string, template: string): Promise<void> {
  const kind = { $case: "snowflake" as const, value: { layout: BITS } };
  const request = CreateTagRequest.fromPartial({ tag: { name, kind, format: { template } } });
  await call(it.tags, TagServiceService.createTag, request);
}

async function texts(it: TestServer, tag: string, count: number): Promise<string[]> {
  const request = GenerateIdsRequest.fromPartial({ tag, count, asList: true });
  const answer = await call(it.ids, IdServiceService.generateIds, request);
  expect([answer.ids, answer.segments]).toEqual([[], []]);
  return answer.texts;
}

function decode(it: TestServer, tag: string, text: string): Promise<DecodeIdResponse> {
  const value = { $case: "text", value: text } as const;
  return call(it.ids, IdServiceService.decodeId, { tag, value });
}

/** What 17 digits say, as if they were at UTC. */
function msOf(digits: string): number {
  const [year = 0, month = 1, ...rest] = (TIME.exec(digits) ?? []).slice(1).map(Number);
  return Date.UTC(year, month - 1, ...rest);
}

test("payment serials: business number, time, machine and counter, and back", async () => {
  const database = new MemoryDatabase();
  const first = await startTest({ store: new MemoryStore({ database }) });
  const second = await startTest({ store: new MemoryStore({ database }) });
  const template = paymentSerial("101", LAYOUT);
  expect(template).toBe("101{yyyyMMddHHmmssSSS}{machine:2}{seq:4}");
  await create(first, "payments", template);
  const began = Date.now();
  const serials = [
    (await generateId(first, "payments")).text,
    ...(await texts(first, "payments", 500)),
  ];
  const others = await texts(second, "payments", 500);
  expect(serials).toEqual(serials.toSorted());
  expect(new Set([...serials, ...others]).size).toBe(1_001);
  for (const serial of [...serials, ...others]) expect(serial).toMatch(/^101\d{23}$/);
  // Each server leased a machine number of its own.
  const machines = [serials, others].map((of) => [
    ...new Set(of.map((each) => each.slice(20, 22))),
  ]);
  expect(machines).toEqual([["00"], ["01"]]);

  const serial = others.at(-1) ?? "";
  const shown = msOf(serial.slice(3, 20));
  expect(shown).toBeGreaterThanOrEqual(began);
  expect(shown).toBeLessThanOrEqual(Date.now() + 50);
  const sequence = Number(serial.slice(22));
  const decoded = await decode(first, "payments", serial);
  expect(decoded).toMatchObject({
    time: new Date(shown),
    snowflake: { extension: 0, dataCenter: 0, worker: 1, sequence },
    parts: [
      { name: "", value: "101" },
      { name: "time", value: serial.slice(3, 20) },
      { name: "machine", value: "01" },
      { name: "seq", value: serial.slice(22) },
    ],
  });
  const tick = shown - LAYOUT.timeOriginMs;
  const parts = { tick, extension: 0, dataCenter: 0, worker: 1, sequence };
  expect(decoded.id).toBe(encode(LAYOUT, parts));
});

test("a fixed offset is what is shown, and is gone back from", async () => {
  const it = await startTest();
  await create(it, "east", "{yyyyMMddHHmmssSSS@+08:00}-{machine}-{seq:4}");
  const { text } = await generateId(it, "east");
  const { time, id } = await decode(it, "east", text);
  expect(Math.abs((time?.getTime() ?? 0) - Date.now())).toBeLessThan(5_000);
  expect(msOf(text.slice(0, 17)) - (time?.getTime() ?? 0)).toBe(8 * HOUR_MS);
  const [again = ""] = await texts(it, "east", 1);
  expect((await decode(it, "east", again)).id).toBeGreaterThan(id);
});

test("the time of a zone that puts clocks back is refused, unless its offset is shown", async () => {
  const it = await startTest();
  const zone = "Europe/Berlin";
  for (const local of ["yyyyMMddHHmmssSSS@Europe/Berlin", "yyyyMMddHHmmssSSS@local"]) {
    const refused = await refusalOf(create(it, "berlin", `{${local}}{machine:2}{seq:4}`));
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", reason: "INVALID_FORMAT" });
    expect(refused.fields).toHaveLength(1);
    expect(refused.fields[0]?.field).toBe("tag.format.template");
    expect(refused.fields[0]?.description).toMatch(/^at position 20: .* an hour repeats .*\+08/);
  }
  await create(it, "berlin", `{yyyyMMddHHmmssSSSxx@${zone}}{machine:2}{seq:4}`);
  const { text } = await generateId(it, "berlin");
  const { time } = await decode(it, "berlin", text);
  const [, hours = "", minutes = ""] = /^\d{17}\+(\d{2})(\d{2})\d{6}$/.exec(text) ?? [];
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
  expect(offsetMs === HOUR_MS || offsetMs === 2 * HOUR_MS).toBe(true);
  expect(msOf(text.slice(0, 17)) - offsetMs).toBe(time?.getTime());
});

test.each([
  ["without its machine", "{yyyyMMddHHmmssSSS}{seq:4}", "{machine}"],
  ["without its counter", "{yyyyMMddHHmmssSSS}{machine:2}", "{seq}"],
  ["of seconds, for a layout of milliseconds", "{yyyyMMddHHmmss}{machine:2}{seq:4}", "SSS"],
  ["whose machine outgrows its width", "{yyyyMMddHHmmssSSS}{machine:1}{seq:4}", "widen it to 2"],
])("a serial %s is refused, since two ids would have it", async (_, template, what) => {
  const it = await startTest();
  const refused = await refusalOf(create(it, "t", template));
  expect(refused.fields[0]?.field).toBe("tag.format.template");
  expect(refused.fields.map(({ description }) => description).join("; ")).toContain(what);
});
