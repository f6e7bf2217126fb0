// Tags of kind snowflake on the command line, against servers that are played.
import { decode, encode, idsOfSpan, SNOWFLAKE_PRESETS } from "@idmint/core";
import { composeId } from "@idmint/core/kinds";
import {
  ClockPolicy,
  type CreateTagRequest,
  type LeaseWorkerRequest,
  LeaseWorkerResponse,
  type ListWorkersRequest,
  PeriodUnit,
  type ReleaseWorkerLeaseRequest,
  SequenceBackend,
  type SnowflakeKind,
  type Tag,
  type UpdateTagRequest,
  Worker,
  WorkerRegistry,
} from "@idmint/proto";
import { expect, test } from "vitest";
import { against, idmint, type Play, refusal, snowflakeTag, someTag } from "../../support.ts";

const ORIGIN = new Date("2026-01-01T00:00:00Z");

/** What `tag create` asks for with these flags. */
async function asked(...flags: string[]): Promise<SnowflakeKind> {
  const { kind } = await askedTag(...flags);
  if (kind?.$case !== "snowflake") throw new Error(`asked for ${kind?.$case}`);
  return kind.value;
}

async function askedTag(...flags: string[]): Promise<Tag> {
  const requests: CreateTagRequest[] = [];
  const play: Play = {
    createTag: (request: CreateTagRequest) => {
      requests.push(request);
      return { tag: snowflakeTag("trace") };
    },
  };
  const ran = await against(play, "tag", "create", "trace", "--kind", "snowflake", ...flags);
  expect([ran.exitCode, ran.err]).toEqual([0, ""]);
  const tag = requests[0]?.tag;
  if (tag === undefined) throw new Error("asked for no tag");
  return tag;
}

test("without flags everything is the server's to choose", async () => {
  expect(await asked()).toMatchObject({ layout: undefined, clockPolicy: 0, registry: 0 });
});

test.each([
  ["41-10-12", [1, 41, 0, 10, 12]],
  ["41-5-5-12", [1, 41, 5, 5, 12]],
  ["sonyflake", [10, 39, 0, 16, 8]],
  ["js53", [1, 41, 0, 5, 7]],
  ["40-0-23", [1, 40, 0, 0, 23]],
  ["42-3-6-12", [1, 42, 3, 6, 12]],
])(
  "--layout %s",
  async (name, [unitMs = 0, timeBits, dataCenterBits, workerBits, sequenceBits]) => {
    expect((await asked("--layout", name)).layout).toEqual({
      timeUnit: { seconds: 0n, nanos: unitMs * 1_000_000 },
      timeOrigin: ORIGIN,
      timeBits,
      extensionBits: 0,
      dataCenterBits,
      workerBits,
      sequenceBits,
    });
  },
);

test("every other setting has a flag", async () => {
  const flags =
    "--layout 39-5-5-12 --time-unit 1s --time-origin 2026-06-01 --extension-bits 2 --data-center 3 --clock-policy extension --clock-wait 0ms --registry redis --allow-short-life";
  expect(await asked(...flags.split(" "))).toMatchObject({
    layout: {
      timeUnit: { seconds: 1n, nanos: 0 },
      timeOrigin: new Date("2026-06-01T00:00:00Z"),
      timeBits: 39,
      extensionBits: 2,
    },
    dataCenter: 3,
    clockPolicy: ClockPolicy.EXTENSION,
    clockWait: { seconds: 0n, nanos: 0 },
    registry: WorkerRegistry.REDIS,
    allowShortLife: true,
  });
  // A part of a layout alone goes with the standard one.
  expect((await asked("--extension-bits", "1")).layout).toMatchObject({
    timeBits: 41,
    workerBits: 10,
    extensionBits: 1,
  });
});

test.each([
  ["2026-06-01", "2026-06-01T00:00:00Z"],
  ["2026-06-01T08:30:00.250Z", "2026-06-01T08:30:00.250Z"],
  ["1288834974657", "2010-11-04T01:42:54.657Z"],
  ["946684800000", "2000-01-01T00:00:00Z"],
  ["0", "1970-01-01T00:00:00Z"],
])("time begins at %s", async (text, time) => {
  const { layout } = await asked("--time-origin", text);
  expect(layout?.timeOrigin).toEqual(new Date(time));
});

async function templateOf(...flags: string[]): Promise<string | undefined> {
  return (await askedTag(...flags)).format?.template;
}

test("payment serials are a format, as wide as the layout", async () => {
  expect(await templateOf("--payment-serial", "101")).toBe(
    "101{yyyyMMddHHmmssSSS}{machine:4}{seq:4}",
  );
  expect(await templateOf("--layout", "41-6-12", "--payment-serial", "101")).toBe(
    "101{yyyyMMddHHmmssSSS}{machine:2}{seq:4}",
  );
  expect(await templateOf("--layout", "41-5-5-12", "--payment-serial", "0042")).toBe(
    "0042{yyyyMMddHHmmssSSS}{data_center:2}{machine:2}{seq:4}",
  );
  const both = ["--payment-serial", "101", "--format", "{id}"];
  const ran = await idmint(["tag", "create", "t", "--kind", "snowflake", ...both]);
  expect([ran.exitCode, ran.err]).toEqual([2, expect.stringContaining("--payment-serial")]);
  const other = await idmint(["tag", "create", "t", "--payment-serial", "101"]);
  expect([other.exitCode, other.err]).toEqual([
    2,
    expect.stringContaining("--payment-serial needs --kind snowflake"),
  ]);
});

test.each([
  [["--payment-serial", "1a"], '--payment-serial must be 1 to 16 digits, got "1a"'],
  [["--time-origin", "1288834974"], "--time-origin must be a time in UTC such as 2026-01-01, or"],
  [["--time-origin", "2026"], "or milliseconds since 1970 such as 1767225600000"],
  [["--layout", "41-10"], "--layout must be widths in bits"],
  [["--layout", "41-10-12-1-1"], "--layout must be widths in bits"],
  [["--layout", "leaf"], 'js53, got "leaf"'],
  [["--time-unit", "2s"], "--time-unit must be a time"],
  [["--extension-bits", "9"], "--extension-bits must be a whole number from 0 to 8"],
  [["--clock-policy", "hope"], "--clock-policy must be one of refuse, extension, backup-worker"],
  [["--registry", "etcd"], "--registry must be one of store, redis"],
  [["--clock-wait", "2s"], "--clock-wait must be a time such as 500ms, 90s or 15m, from 0ms to 1s"],
  [["--min", "5"], "--min is for --kind segment, and this tag is of kind snowflake"],
])("%j is refused before anything is sent", async (flags, text) => {
  const ran = await idmint(["tag", "create", "trace", "--kind", "snowflake", ...flags]);
  expect([ran.exitCode, ran.out]).toEqual([2, ""]);
  expect(ran.err).toContain(text);
});

test("flags of snowflakes are refused for other kinds", async () => {
  const ran = await idmint(["tag", "create", "orders", "--layout", "41-10-12"]);
  expect(ran.exitCode).toBe(2);
  expect(ran.err).toContain("--layout is for --kind snowflake, and this tag is of kind segment");
});

test("what a server finds wrong is told by flags", async () => {
  const description =
    "must be more: they run out in 30 days; set allow_short_life if you want that";
  const fields = [{ field: "tag.snowflake.layout.time_bits", description }];
  const play: Play = {
    createTag: () => {
      throw refusal(3, "INVALID_ARGUMENT", `INVALID_ARGUMENT: ${description}`, { fields });
    },
  };
  const args = ["tag", "create", "trace", "--kind", "snowflake", "--layout", "32-5-12"];
  const { exitCode, err } = await against(play, ...args);
  expect(exitCode).toBe(2);
  expect(err).toBe(
    "idmint: INVALID_ARGUMENT: --layout: bits of the time must be more: they run out in 30 days; set --allow-short-life if you want that\n",
  );
});

test("a snowflake tag is shown with its layout, its end and its rates", async () => {
  const redis = { registry: WorkerRegistry.REDIS, redisServer: "a", dataCenter: 0 };
  const play: Play = {
    getTag: () => ({ tag: snowflakeTag("trace", redis) }),
    listTags: () => ({ tags: [snowflakeTag("trace")], unreachable: [], nextPageToken: "" }),
  };
  const { out } = await against(play, "tag", "get", "trace");
  for (const row of [
    /^kind +snowflake$/m,
    /^layout +41-10-12$/m,
    /^time unit +1ms$/m,
    /^time origin +2026-01-01T00:00:00\.000Z$/m,
    /^ends at +2095-09-07T15:47:35\.552Z$/m,
    /^workers +1024$/m,
    /^ids per second and worker +4096000$/m,
    /^clock policy +refuse$/m,
    /^clock wait +5ms$/m,
    /^worker registry +redis a$/m,
  ]) {
    expect(out).toMatch(row);
  }
  expect((await against(play, "tag", "list")).out).toMatch(/layout:41-10-12/);
  const json = await against(play, "tag", "get", "trace", "--json");
  expect(JSON.parse(json.out)).toMatchObject({
    tag: {
      snowflake: {
        layout: { timeUnit: "0.001s", timeOrigin: ORIGIN.toISOString(), timeBits: 41 },
        clockPolicy: "CLOCK_POLICY_REFUSE",
        clockWait: "0.005s",
        registry: "WORKER_REGISTRY_REDIS",
        redisServer: "a",
        endTime: "2095-09-07T15:47:35.552Z",
        idsPerSecond: "4096000",
      },
    },
  });
});

test("policy, wait and data center can be changed, the layout cannot", async () => {
  const requests: UpdateTagRequest[] = [];
  const play: Play = {
    updateTag: (request: UpdateTagRequest) => {
      requests.push(request);
      return { tag: snowflakeTag("trace") };
    },
  };
  const flags = ["--clock-policy", "backup-worker", "--clock-wait", "20ms", "--data-center", "0"];
  expect((await against(play, "tag", "update", "trace", ...flags)).exitCode).toBe(0);
  const [request] = requests;
  expect(request?.updateMask?.toSorted()).toEqual([
    "snowflake.clock_policy",
    "snowflake.clock_wait",
    "snowflake.data_center",
  ]);
  expect(request?.tag?.kind?.value).toMatchObject({ clockPolicy: ClockPolicy.BACKUP_WORKER });
  const { exitCode, err } = await idmint(["tag", "update", "trace", "--layout", "41-10-12"]);
  expect([exitCode, err]).toEqual([2, expect.stringContaining("--layout")]);
});

function showing(tag: Tag): Play {
  return { getTag: () => ({ tag }) };
}

test("a span of time has a smallest and a largest id", async () => {
  const layout = SNOWFLAKE_PRESETS["41-10-12"];
  const span = ["--from", "2026-11-21", "--to", "2026-11-21T23:59:59.999Z"];
  const args = ["id", "range", "trace", ...span];
  const { exitCode, out } = await against(showing(snowflakeTag("trace")), ...args);
  const [from, to] = [Date.UTC(2026, 10, 21), Date.UTC(2026, 10, 22) - 1];
  const { min, max } = idsOfSpan(layout, from, to);
  expect([exitCode, out]).toEqual([0, `smallest  ${min}\nlargest   ${max}\n`]);
  expect(decode(layout, min)).toMatchObject({ worker: 0, sequence: 0 });
  expect(decode(layout, max + 1n).tick).toBe(decode(layout, max).tick + 1);
  const json = await against(showing(snowflakeTag("trace")), ...args, "--json");
  expect(JSON.parse(json.out)).toEqual({
    tag: "trace",
    from: "2026-11-21T00:00:00.000Z",
    to: "2026-11-21T23:59:59.999Z",
    smallest: String(min),
    largest: String(max),
  });
});

function redisSnowflakeTag(name: string): Tag {
  const value = { shard: 60, timeOrigin: ORIGIN, endTime: undefined, redisServer: "a" };
  return { ...someTag(name), kind: { $case: "redisSnowflake", value } };
}

test("ids of redis-snowflakes are composed and spanned too", async () => {
  const play = showing(redisSnowflakeTag("m"));
  const at = "2026-11-21T15:30:45.123Z";
  const encoded = await against(play, "id", "encode", "m", "--time", at, "--sequence", "7");
  const id = composeId({ shard: 60, timeOriginMs: ORIGIN.getTime() }, Date.parse(at), 7);
  expect(encoded.out).toBe(`${id}\n`);
  const { out } = await against(play, "id", "range", "m", "--from", at, "--to", at);
  const first = composeId({ shard: 0, timeOriginMs: ORIGIN.getTime() }, Date.parse(at), 0);
  expect(out).toBe(`smallest  ${first}\nlargest   ${first + 2n ** 22n - 1n}\n`);
});

test.each([
  [["--from", "2026-11-21"], "--to"],
  [["--from", "yesterday", "--to", "2026-11-21"], "--from must be a time in UTC such as"],
  [["--from", "2026-11-22", "--to", "2026-11-21"], "--to must not be before --from"],
  [
    ["--from", "2025-12-31", "--to", "2026-11-21"],
    "--from must be from 2026-01-01T00:00:00.000Z to 2095-09-07T15:47:35.551Z, what the tag's ids have room for",
  ],
  [["--from", "2026-11-21", "--to", "2096-01-01"], "--to must be from 2026-01-01T00:00:00.000Z"],
])("id range %j is refused", async (flags, text) => {
  const ran = await against(showing(snowflakeTag("trace")), "id", "range", "trace", ...flags);
  expect([ran.exitCode, ran.out]).toEqual([2, ""]);
  expect(ran.err).toContain(text);
});

test("a tag whose ids hold no time has no spans", async () => {
  const span = ["--from", "2026-11-21", "--to", "2026-11-22"];
  const ran = await against(showing(someTag("orders")), "id", "range", "orders", ...span);
  expect([ran.exitCode, ran.out]).toEqual([1, ""]);
  expect(ran.err).toContain('WRONG_KIND: tag "orders" is of kind segment');
});

const AT = ["--time", "2026-11-21T15:30:45.123Z"];

test("an id is composed of its fields, as a text too", async () => {
  const layout = { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 6 };
  const id = encode(layout, {
    tick: Date.parse("2026-11-21T15:30:45.123Z") - ORIGIN.getTime(),
    extension: 0,
    dataCenter: 0,
    worker: 42,
    sequence: 7,
  });
  const { timeUnitMs: _, timeOriginMs: __, ...bits } = layout;
  const its = {
    layout: { ...bits, timeUnit: { seconds: 0n, nanos: 1_000_000 }, timeOrigin: ORIGIN },
  };
  const tag = { ...snowflakeTag("pay", its), ceiling: 2n ** 59n - 1n };
  const args = ["id", "encode", "pay", ...AT, "--worker", "42", "--sequence", "7"];
  expect(await against(showing(tag), ...args)).toEqual({ exitCode: 0, out: `${id}\n`, err: "" });
  const format = { template: "101{yyyyMMddHHmmssSSS@+08:00}{machine:2}{seq:4}" };
  const written = await against(showing({ ...tag, format }), ...args);
  expect(written.out).toBe("10120261121233045123420007\n");
  const json = await against(showing({ ...tag, format }), ...args, "--json");
  expect(JSON.parse(json.out)).toEqual({
    tag: "pay",
    id: String(id),
    text: "10120261121233045123420007",
  });
});

test("a number is written by the format of its tag", async () => {
  const tag = { ...someTag("inv"), ceiling: 99_999_999n, format: { template: "INV{id:8}{luhn}" } };
  const { out } = await against(showing(tag), "id", "encode", "inv", "--number", "42");
  expect(out).toMatch(/^INV00000042\d\n$/);
  const none = await against(showing(tag), "id", "encode", "inv");
  expect([none.exitCode, none.err]).toEqual([2, expect.stringContaining("--number is required")]);
  const past = await against(showing(tag), "id", "encode", "inv", "--number", "100000000");
  expect(past.exitCode).not.toBe(0);
  expect(past.out).toBe("");
});

test.each([
  ["DAY", PeriodUnit.DAY, "{period:yyyyMMdd}{id:6}", "2026-11-21", "20261121000042", undefined],
  ["WEEK", PeriodUnit.WEEK, "{period}-{id}", "2026-11-16", "2026W47-42", "2026-11-21"],
  ["MONTH", PeriodUnit.MONTH, "{period}-{id}", "2026-11-01", "202611-42", "2026-11-21"],
  ["YEAR", PeriodUnit.YEAR, "{period}-{id}", "2026-01-01", "2026-42", "2026-11-01"],
])("numbers of a period of a %s", async (_unit, period, template, day, text, wrong) => {
  const value = {
    start: 1n,
    period,
    timeZone: "UTC",
    keepFor: undefined,
    backend: SequenceBackend.STORE,
    step: 0,
    maxSkip: 0,
    redisServer: "",
  };
  const tag: Tag = {
    ...someTag("r"),
    ceiling: 999_999n,
    kind: { $case: "sequence", value },
    format: { template },
  };
  const args = ["id", "encode", "r", "--number", "42"];
  expect((await against(showing(tag), ...args, "--period", day)).out).toBe(`${text}\n`);
  for (const bad of [
    [],
    ["--period", "x"],
    ...(wrong === undefined ? [] : [["--period", wrong]]),
  ]) {
    const ran = await against(showing(tag), ...args, ...bad);
    expect([ran.exitCode, ran.out]).toEqual([2, ""]);
    expect(ran.err).toContain("--period");
  }
});

test.each([
  [[], 2, "--time is required"],
  [[...AT], 2, "--worker is required: 0 to 1023"],
  [[...AT, "--worker", "1024"], 2, "--worker must be 0 to 1023, got 1024"],
  [[...AT, "--worker", "1", "--sequence", "4096"], 2, "--sequence must be 0 to 4095, got 4096"],
  [[...AT, "--worker", "1", "--data-center", "1"], 2, "--data-center must be 0 to 0, got 1"],
  [[...AT, "--worker", "1", "--extension", "1"], 2, "--extension must be 0 to 0, got 1"],
  [["--time", "2025-01-01", "--worker", "1"], 2, "--time must be from 2026-01-01"],
  [[...AT, "--worker", "1", "--period", "2026-11-21"], 2, "--period is for tags with periods"],
  [["--number", "7"], 1, "WRONG_KIND"],
  [["--number", "7", "--worker", "1"], 2, "--worker is a field of a snowflake"],
])("id encode %j is refused", async (flags, exitCode, text) => {
  const ran = await against(showing(snowflakeTag("trace")), "id", "encode", "trace", ...flags);
  expect([ran.exitCode, ran.out]).toEqual([exitCode, ""]);
  expect(ran.err).toContain(text);
});

test("what is not composed, or only with a key, is not encoded", async () => {
  const number = ["--number", "42"];
  const plain = await against(showing(someTag("orders")), "id", "encode", "orders", ...number);
  expect([plain.exitCode, plain.err]).toEqual([1, expect.stringContaining("WRONG_KIND")]);
  const keyed = { ...someTag("codes"), unguessable: { keyId: 2, keyDigits: 1 } };
  const { exitCode, err } = await against(showing(keyed), "id", "encode", "codes", ...number);
  expect([exitCode, err]).toEqual([
    1,
    expect.stringContaining("made with key 2, which only servers"),
  ]);
  const uuid: Tag = {
    ...someTag("u"),
    kind: { $case: "uuid", value: { version: 7, namespace: "", domain: 0, number: 0 } },
  };
  expect((await against(showing(uuid), "id", "encode", "u", ...number)).exitCode).toBe(1);
  const field = await against(
    showing(someTag("orders")),
    "id",
    "encode",
    "orders",
    "--data-center",
    "1",
  );
  expect([field.exitCode, field.err]).toEqual([
    2,
    expect.stringContaining("--data-center is a field"),
  ]);
});

function worker(workerId: number, more: Partial<Worker> = {}): Worker {
  return Worker.create({
    workerId,
    instance: `pod-${workerId}`,
    reservedUntilTime: new Date("2026-11-21T00:00:03Z"),
    expireTime: new Date("2026-11-21T00:00:30Z"),
    leased: true,
    ...more,
  });
}

/** A registry with these workers, in pages of two; and what was asked of it. */
function registry(workers: readonly Worker[], answer: Partial<LeaseWorkerResponse> = {}) {
  const leases: LeaseWorkerRequest[] = [];
  const releases: ReleaseWorkerLeaseRequest[] = [];
  const sizes: number[] = [];
  const play: Play = {
    listWorkers: ({ pageToken, pageSize, workerId }: ListWorkersRequest) => {
      sizes.push(pageSize);
      const meant = workers.filter((each) => (workerId ?? each.workerId) === each.workerId);
      const first = Number(pageToken === "" ? 0 : pageToken);
      const page = meant.slice(first, first + Math.min(2, pageSize));
      const next = first + page.length;
      return { workers: page, nextPageToken: next < meant.length ? String(next) : "" };
    },
    leaseWorker: (request: LeaseWorkerRequest) => {
      leases.push(request);
      const held = workers.find(({ instance }) => instance === request.instance);
      const { workerId = 0, dataCenter = 0 } = held ?? {};
      return LeaseWorkerResponse.create({ workerId, dataCenter, token: 77n, ...answer });
    },
    releaseWorkerLease: (request: ReleaseWorkerLeaseRequest) => {
      releases.push(request);
      return {};
    },
  };
  return { play, leases, releases, sizes };
}

test("workers are listed by pages, with who has them", async () => {
  const workers = [worker(0), worker(1, { leased: false, instance: "a\u001Bb" }), worker(2)];
  const { out } = await against(registry(workers).play, "worker", "list", "trace");
  expect(out.split("\n")).toEqual([
    "DATA CENTER  WORKER  LEASE   EXTENSION  RESERVED UNTIL            EXPIRES                   INSTANCE",
    "0            0       leased  0          2026-11-21T00:00:03.000Z  2026-11-21T00:00:30.000Z  pod-0",
    "0            1       ended   0          2026-11-21T00:00:03.000Z  2026-11-21T00:00:30.000Z  a\\u001bb",
    "0            2       leased  0          2026-11-21T00:00:03.000Z  2026-11-21T00:00:30.000Z  pod-2",
    "",
  ]);
  const { play, sizes } = registry(workers);
  const some = await against(play, "worker", "list", "trace", "--limit", "2", "--json");
  expect(sizes).toEqual([2]);
  expect(some.err).toBe("idmint: there are more workers: --page-token 2\n");
  expect(JSON.parse(some.out)).toMatchObject({
    workers: [{ workerId: 0, leased: true, expireTime: "2026-11-21T00:00:30.000Z" }, {}],
    nextPageToken: "2",
  });
  const rest = await against(play, "worker", "list", "trace", "--page-token", "2", "--json");
  expect(JSON.parse(rest.out)).toMatchObject({ workers: [{ workerId: 2 }], nextPageToken: "" });
});

test("a lease is ended by leasing for the same instance, and releasing that", async () => {
  const { play, leases, releases } = registry([worker(0), worker(1), worker(2)]);
  const args = ["worker", "release", "trace", "2", "--yes"];
  const { exitCode, out } = await against(play, ...args);
  expect(exitCode).toBe(0);
  expect(out).toMatch(/^instance +pod-2$/m);
  expect(out).toMatch(/^released +yes$/m);
  expect(leases).toMatchObject([{ tag: "trace", instance: "pod-2", dataCenter: 0 }]);
  expect(leases[0]?.reserveAhead).toEqual({ seconds: 1n, nanos: 0 });
  expect(releases).toEqual([{ tag: "trace", dataCenter: 0, workerId: 2, token: 77n }]);
  const json = await against(registry([worker(2)]).play, ...args, "--json");
  const answer = { tag: "trace", dataCenter: 0, workerId: 2, released: true };
  expect(JSON.parse(json.out)).toEqual(answer);
});

test("a lease that has ended is left alone", async () => {
  const { play, leases } = registry([worker(0, { leased: false })]);
  const { exitCode, out } = await against(play, "worker", "release", "trace", "0", "--yes");
  expect([exitCode, leases]).toEqual([0, []]);
  expect(out).toMatch(/^released +no, its lease had ended$/m);
});

test("a worker id that somebody else leased meanwhile is left alone, and what was leased instead is released", async () => {
  const { play, releases } = registry([worker(0)], { workerId: 5 });
  const { exitCode, out, err } = await against(play, "worker", "release", "trace", "0", "--yes");
  expect([exitCode, out]).toEqual([1, ""]);
  expect(err).toContain("WORKER_LEASE_LOST: somebody else leased worker id 0 in the meantime");
  expect(releases).toMatchObject([{ workerId: 5, token: 77n }]);
});

test("which worker is meant is not guessed", async () => {
  const both = [worker(3, { dataCenter: 1 }), worker(3, { dataCenter: 2, instance: "other" })];
  const args = ["worker", "release", "trace", "3", "--yes"];
  const open = await against(registry(both).play, ...args);
  expect([open.exitCode, open.err]).toEqual([
    2,
    expect.stringContaining("--data-center is required: worker 3 exists in data centers 1, 2"),
  ]);
  const { play, leases } = registry(both);
  expect((await against(play, ...args, "--data-center", "2")).exitCode).toBe(0);
  expect(leases).toMatchObject([{ instance: "other", dataCenter: 2 }]);
  const none = await against(registry(both).play, "worker", "release", "trace", "4", "--yes");
  expect([none.exitCode, none.err]).toEqual([
    2,
    expect.stringContaining(
      "WORKER must be a worker id that was leased, got 4; idmint worker list trace",
    ),
  ]);
});

test.each([
  [["worker", "release", "trace", "3"], "--yes is required"],
  [["worker", "release", "trace", "x", "--yes"], "WORKER must be a whole number from 0 to 4194303"],
  [["worker", "release", "trace"], "worker"],
  [["worker", "list"], "tag"],
  [["worker", "list", "trace", "--limit", "0"], "--limit must be a whole number from 1 to 100000"],
])("%j is refused before anything is sent", async (args, text) => {
  const { exitCode, out, err } = await idmint(args);
  expect([exitCode, out]).toEqual([2, ""]);
  expect(err).toContain(text);
});
