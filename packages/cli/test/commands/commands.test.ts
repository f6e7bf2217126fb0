import {
  type CreateTagRequest,
  GenerateIdResponse,
  type GenerateIdsRequest,
  GenerateIdsResponse,
  type ListPeriodsRequest,
  type ListTagsRequest,
  type MoveTagRequest,
  Order,
  PeriodUnit,
  SequenceBackend,
  type UpdateTagRequest,
} from "@idmint/proto";
import { onTestFinished, expect, test } from "vitest";
import {
  against,
  idmint,
  type Play,
  playServer,
  refusal,
  sequenceTag,
  someTag,
} from "../support.ts";

/** A server whose next id is the next number. */
function counting(): { play: Play; requests: GenerateIdsRequest[] } {
  const requests: GenerateIdsRequest[] = [];
  let last = 2n ** 53n - 3n;
  const play: Play = {
    getTag: () => ({ tag: someTag("a") }),
    generateId: () => GenerateIdResponse.create({ id: ++last, epoch: 1n }),
    generateIds: (request: GenerateIdsRequest) => {
      requests.push(request);
      const base = last + 1n;
      last += BigInt(request.count);
      // In two segments, as when a buffer's segment ends within the answer.
      const half = Math.floor(request.count / 2);
      const segments = [
        { base, increment: 1, count: half },
        { base: base + BigInt(half), increment: 1, count: request.count - half },
      ];
      return GenerateIdsResponse.create({ segments, epoch: 1n });
    },
  };
  return { play, requests };
}

test("ids are printed exactly, one a line", async () => {
  const { play } = counting();
  expect(await against(play, "id", "next", "a")).toEqual({
    exitCode: 0,
    out: "9007199254740990\n",
    err: "",
  });
  const { out } = await against(play, "id", "next", "a", "-n", "4");
  expect(out).toBe("9007199254740991\n9007199254740992\n9007199254740993\n9007199254740994\n");
});

test("ids are strings in JSON, of the same shape for one and for many", async () => {
  const { play } = counting();
  const one = await against(play, "id", "next", "a", "--json");
  expect(one.out).toBe('{"tag":"a","ids":["9007199254740990"]}\n');
  const many = await against(play, "id", "next", "a", "--count", "2", "--format", "json");
  expect(many.out).toBe('{"tag":"a","ids":["9007199254740991","9007199254740992"]}\n');
});

test("--format text contradicts --json", async () => {
  const { exitCode, err } = await idmint(["id", "next", "a", "--json", "--format", "text"]);
  expect([exitCode, err]).toEqual([2, expect.stringContaining('"field":"--format"')]);
});

test("more than 10,000 ids are fetched in pieces, and every one is printed once", async () => {
  const { play, requests } = counting();
  const { out } = await against(play, "id", "next", "a", "--count", "25000", "--json");
  expect(requests.map(({ count }) => count)).toEqual([10_000, 10_000, 5_000]);
  const { ids } = JSON.parse(out) as { ids: string[] };
  expect(ids).toHaveLength(25_000);
  expect(new Set(ids).size).toBe(25_000);
});

/** The same, with no ids after the first piece. */
function exhausted(): Play {
  const { play, requests } = counting();
  const generateIds = (request: GenerateIdsRequest) => {
    if (requests.length === 1) {
      throw refusal(11, "TAG_EXHAUSTED", "no more", { metadata: { tag: "a" } });
    }
    return play["generateIds"]!(request as never);
  };
  return { ...play, generateIds };
}

test("a failure between pieces keeps what was printed, and cuts the JSON so that it does not parse", async () => {
  const text = await against(exhausted(), "id", "next", "a", "--count", "10001");
  expect(text.exitCode).toBe(1);
  expect(text.out.split("\n")).toHaveLength(10_001);
  expect(text.err).toContain("TAG_EXHAUSTED");
  const json = await against(exhausted(), "id", "next", "a", "--count", "10001", "--json");
  expect(() => JSON.parse(json.out) as unknown).toThrow(SyntaxError);
});

test("a refusal of the first call prints no data", async () => {
  const play: Play = {
    generateId: () => {
      throw refusal(14, "SEGMENT_NOT_READY", "SEGMENT_NOT_READY: none", { retryAfterMs: 50 });
    },
  };
  expect(await against(play, "id", "next", "a")).toEqual({
    exitCode: 4,
    out: "",
    err: "idmint: SEGMENT_NOT_READY: none\n  try again in 50 ms\n",
  });
  const { err } = await against(play, "id", "next", "a", "--json");
  expect(JSON.parse(err)).toMatchObject({
    error: { reason: "SEGMENT_NOT_READY", retryAfterMs: 50 },
  });
});

test("a list is paged until its limit, and says when there is more", async () => {
  const sizes: number[] = [];
  const play: Play = {
    listTags: ({ pageSize, pageToken }: ListTagsRequest) => {
      sizes.push(pageSize);
      const first = Number(pageToken === "" ? 0 : pageToken);
      const tags = Array.from({ length: pageSize }, (_, index) => someTag(`t${first + index}`));
      return { tags, unreachable: [], nextPageToken: String(first + pageSize) };
    },
  };
  const { out, err } = await against(play, "tag", "list", "--limit", "2500", "--json");
  expect(sizes).toEqual([1_000, 1_000, 500]);
  const answer = JSON.parse(out) as { tags: { name: string }[]; nextPageToken: string };
  expect(answer.tags).toHaveLength(2_500);
  expect(answer.tags.at(-1)?.name).toBe("t2499");
  expect(answer.nextPageToken).toBe("2500");
  expect(err).toContain("--page-token 2500");
});

test("a list whose pages are empty ends", async () => {
  const play: Play = { listTags: () => ({ tags: [], unreachable: [], nextPageToken: "again" }) };
  expect(await against(play, "tag", "list")).toMatchObject({ exitCode: 0, err: "" });
});

test("a list names the tags that cannot be read", async () => {
  const play: Play = {
    listTags: ({ pageToken }: ListTagsRequest) =>
      pageToken === ""
        ? { tags: [someTag("a")], unreachable: ["b"], nextPageToken: "b" }
        : { tags: [], unreachable: ["c"], nextPageToken: "" },
  };
  const { exitCode, out, err } = await against(play, "tag", "list", "--json");
  expect(exitCode).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ tags: [{ name: "a" }], unreachable: ["b", "c"] });
  expect(err).toBe('idmint: these tags cannot be read, and "idmint tag get" says why: b, c\n');
});

test("update sends only what was given", async () => {
  const requests: UpdateTagRequest[] = [];
  const play: Play = {
    updateTag: (request: UpdateTagRequest) => {
      requests.push(request);
      return { tag: request.tag };
    },
  };
  await against(
    play,
    "tag",
    "update",
    "a",
    "--hold-for",
    "1500ms",
    "--description",
    "",
    "--etag",
    "e",
  );
  expect(requests[0]?.updateMask).toEqual(["description", "segment.hold_for"]);
  expect(requests[0]?.tag).toMatchObject({
    name: "a",
    etag: "e",
    kind: { value: { holdFor: { seconds: 1n, nanos: 500_000_000 } } },
  });
});

/** What `tag create` or `tag update` sent, and what it ended with. */
async function sent(line: string, tag = someTag("a")) {
  const requests: Partial<CreateTagRequest & UpdateTagRequest>[] = [];
  const note = (request: CreateTagRequest | UpdateTagRequest) => {
    requests.push(request);
    return { tag: request.tag };
  };
  const play: Play = { createTag: note, updateTag: note, getTag: () => ({ tag }) };
  const { exitCode, err } = await against(play, ...line.split(" "));
  return { exitCode, err, requests };
}

test.each([
  [
    "--kind sequence --period day --time-zone Asia/Shanghai --keep-for 400d",
    {
      $case: "sequence",
      value: {
        start: 0n,
        period: PeriodUnit.DAY,
        timeZone: "Asia/Shanghai",
        keepFor: { seconds: 34_560_000n, nanos: 0 },
        backend: SequenceBackend.UNSPECIFIED,
        step: 0,
        maxSkip: 0,
        redisServer: "",
      },
    },
  ],
  [
    "--kind sequence --backend redis --step 500 --start 7",
    {
      $case: "sequence",
      value: {
        start: 7n,
        period: PeriodUnit.UNSPECIFIED,
        timeZone: "",
        keepFor: undefined,
        backend: SequenceBackend.REDIS,
        step: 500,
        maxSkip: 0,
        redisServer: "",
      },
    },
  ],
  [
    "--kind redis-snowflake --shard 60 --time-origin 2026-01-01",
    {
      $case: "redisSnowflake",
      value: {
        shard: 60,
        timeOrigin: new Date("2026-01-01T00:00:00Z"),
        endTime: undefined,
        redisServer: "",
      },
    },
  ],
  ["--kind ticket --slots 60", { $case: "ticket", value: { start: 0n, slots: 60 } }],
])("tag create %s sends a tag of that kind", async (line, kind) => {
  const { exitCode, err, requests } = await sent(`tag create a ${line}`);
  expect([exitCode, err]).toEqual([0, ""]);
  expect(requests[0]?.tag?.kind).toEqual(kind);
  expect(requests[0]?.tag?.order).toBe(Order.UNSPECIFIED);
});

test.each([
  ["tag create a --period day", "--period", "--kind sequence"],
  ["tag create a --kind sequence --hold-for 5m", "--hold-for", "--kind segment"],
  ["tag create a --kind sequence --shard 3", "--shard", "--kind redis-snowflake"],
  [
    "tag create a --kind redis-snowflake --start 3",
    "--start",
    "--kind segment or --kind sequence or --kind ticket",
  ],
  ["tag create a --kind ticket --time-zone UTC", "--time-zone", "--kind sequence"],
  ["tag create a --slots 4", "--slots", "--kind ticket"],
])("%s is refused before any call, with the flag and the kind that has it", async (...row) => {
  const [line, flag, wayOut] = row;
  const { exitCode, err, requests } = await sent(line);
  expect([exitCode, requests]).toEqual([2, []]);
  expect(err).toContain(`${flag} is for ${wayOut}, and this tag is of kind`);
});

test("update of a sequence names its fields, and --start is that of the tag's kind", async () => {
  const keep = await sent("tag update a --keep-for 800d --description x");
  expect(keep.requests[0]).toMatchObject({
    updateMask: ["description", "sequence.keep_for"],
    tag: { kind: { $case: "sequence", value: { keepFor: { seconds: 69_120_000n } } } },
  });
  const segment = await sent("tag update a --start 5");
  expect(segment.requests[0]?.updateMask).toEqual(["segment.start"]);
  const sequence = await sent("tag update a --start 5", sequenceTag("a"));
  expect(sequence.requests[0]).toMatchObject({
    updateMask: ["sequence.start"],
    tag: { kind: { $case: "sequence", value: { start: 5n } } },
  });
  const both = await sent("tag update a --min 5 --step 7");
  expect([both.exitCode, both.requests]).toEqual([2, []]);
  expect(both.err).toContain("--step cannot be changed together with --min");
  const ticket = { $case: "ticket", value: { start: 1n, slots: 60 } } as const;
  const other = await sent("tag update a --start 5", { ...someTag("a"), kind: ticket });
  expect([other.exitCode, other.requests]).toEqual([2, []]);
  expect(other.err).toContain("--start cannot be changed for tags of kind ticket");
});

test("ids of a tag with periods are printed with their period", async () => {
  let last = 0n;
  const period = "2026-11-21";
  const play: Play = {
    getTag: () => ({ tag: sequenceTag("a") }),
    generateId: () => GenerateIdResponse.create({ id: ++last, period, text: `20261121-${last}` }),
    generateIds: ({ count }: GenerateIdsRequest) => {
      const segments = [{ base: last + 1n, increment: 1, count }];
      last += BigInt(count);
      return GenerateIdsResponse.create({ segments, period });
    },
  };
  expect((await against(play, "id", "next", "a")).out).toBe("20261121-1\n");
  expect((await against(play, "id", "next", "a", "-n", "2")).out).toBe("20261121-2\n20261121-3\n");
  const { out } = await against(play, "id", "next", "a", "-n", "2", "--json");
  expect(JSON.parse(out)).toEqual({
    tag: "a",
    periodIds: [
      { period, id: "4", text: "20261121-4" },
      { period, id: "5", text: "20261121-5" },
    ],
  });
});

test("ended periods are paged until the limit", async () => {
  const sizes: number[] = [];
  const play: Play = {
    listPeriods: ({ name, pageSize, pageToken }: ListPeriodsRequest) => {
      expect(name).toBe("invoice");
      sizes.push(pageSize);
      const first = Number(pageToken === "" ? 0 : pageToken);
      const periods = Array.from({ length: pageSize }, (_, index) => ({
        period: `p${first + index}`,
        lastId: 2n ** 53n + 1n,
        endTime: new Date("2026-11-21T16:00:00Z"),
      }));
      return { periods, nextPageToken: String(first + pageSize) };
    },
  };
  const text = await against(play, "tag", "periods", "invoice", "--limit", "1");
  expect(text.out).toBe(
    "PERIOD  LAST ID           ENDED\np0      9007199254740993  2026-11-21T16:00:00.000Z\n",
  );
  expect(text.err).toContain("--page-token 1");
  sizes.length = 0;
  const json = await against(play, "tag", "periods", "invoice", "--limit", "1500", "--json");
  expect(sizes).toEqual([1_000, 500]);
  const { periods, nextPageToken } = JSON.parse(json.out) as {
    periods: unknown[];
    nextPageToken: string;
  };
  expect([periods.length, nextPageToken]).toEqual([1_500, "1500"]);
  expect(periods[0]).toEqual({
    period: "p0",
    lastId: "9007199254740993",
    endTime: "2026-11-21T16:00:00.000Z",
  });
});

test("a move names the Redis server, and forces only when told to", async () => {
  const requests: MoveTagRequest[] = [];
  const play: Play = {
    moveTag: (request: MoveTagRequest) => {
      requests.push(request);
      return { tag: sequenceTag("a") };
    },
  };
  const { exitCode, out } = await against(play, "tag", "move", "a", "--to", "b");
  expect([exitCode, out]).toEqual([0, expect.stringMatching(/^redis server +a$/m)]);
  await against(play, "tag", "move", "a", "--to", "b", "--force", "--etag", "e");
  expect(requests).toEqual([
    { name: "a", redisServer: "b", force: false, etag: "", validateOnly: false },
    { name: "a", redisServer: "b", force: true, etag: "e", validateOnly: false },
  ]);
});

const HEALTHY = {
  nodeId: "n1",
  version: "0.0.0",
  state: 1,
  stateReason: "",
  startTime: new Date(0),
  store: { backend: 1, state: 1, schemaVersion: 1, fenceReason: "", place: "sqlite:/x.db" },
  bufferedTags: 2,
  issuedIds: 3n,
  wastedIds: 0n,
  ticketDatabases: [],
};

test("status of a healthy server is data and exit code 0", async () => {
  const play: Play = { check: () => ({ status: 1 }), getNodeStatus: () => HEALTHY };
  const { exitCode, out, err } = await against(play, "status", "--json");
  expect([exitCode, err]).toEqual([0, ""]);
  expect(JSON.parse(out)).toEqual({
    health: "SERVING",
    node: {
      ...HEALTHY,
      state: "NODE_STATE_SERVING",
      stoppedTime: null,
      store: {
        ...HEALTHY.store,
        backend: "STORE_BACKEND_SQLITE",
        state: "STORE_STATE_GRANTING",
      },
      startTime: "1970-01-01T00:00:00.000Z",
      issuedIds: "3",
      wastedIds: "0",
    },
  });
});

test("health asks one question and answers in its exit code", async () => {
  const serving = await against({ check: () => ({ status: 1 }) }, "health");
  expect(serving).toEqual({ exitCode: 0, out: "SERVING\n", err: "" });
  const draining = await against({ check: () => ({ status: 2 }) }, "health", "--json");
  expect([draining.exitCode, draining.out]).toEqual([5, '{"health":"NOT_SERVING"}\n']);
  expect(draining.err).toContain("its health is NOT_SERVING");
});

test("health asks about a part when it is named", async () => {
  const play: Play = {
    check: ({ service }: { readonly service: string }) => ({
      status: service === "liveness" ? 1 : 2,
    }),
  };
  expect((await against(play, "health", "liveness")).exitCode).toBe(0);
  expect((await against(play, "health")).exitCode).toBe(5);
});

test("health does not wait for longer than it is told", async () => {
  const silent = await against({}, "health", "--timeout", "50ms");
  expect([silent.exitCode, silent.out]).toEqual([4, ""]);
});

test.each([
  ["health is NOT_SERVING", { status: 2 }, HEALTHY],
  ["it is DRAINING", { status: 1 }, { ...HEALTHY, state: 2 }],
  ["store does not answer", { status: 1 }, { ...HEALTHY, store: { ...HEALTHY.store, state: 2 } }],
  [
    "store refuses: went back",
    { status: 1 },
    { ...HEALTHY, store: { ...HEALTHY.store, state: 3, fenceReason: "went back" } },
  ],
])("status answers 5 and shows the data when %s", async (illness, health, node) => {
  const play: Play = { check: () => health, getNodeStatus: () => node };
  const { exitCode, out, err } = await against(play, "status");
  expect(exitCode).toBe(5);
  expect(err).toContain(illness);
  expect(out).toContain("issued ids");
});

test("a server that does not answer in time is unavailable, and the message names the way out", async () => {
  const { exitCode, err } = await against({}, "tag", "get", "a", "--timeout", "50ms");
  expect(exitCode).toBe(4);
  expect(err).toMatch(
    /^idmint: DEADLINE_EXCEEDED: no answer from 127.0.0.1:\d+ within 50ms; --timeout/,
  );
});

test("Ctrl-C cancels the call under way", async () => {
  const { address, stop } = await playServer({});
  onTestFinished(stop);
  const interrupt = new AbortController();
  setTimeout(() => {
    interrupt.abort();
  }, 50);
  const { exitCode, err } = await idmint(["tag", "get", "a", "--address", address], interrupt);
  expect([exitCode, err]).toEqual([130, "idmint: CALL_CANCELLED: interrupted\n"]);
});

test("a reason of a newer server is shown as it came", async () => {
  const play: Play = {
    getTag: () => {
      throw refusal(9, "TOO_MODERN", "not yet");
    },
  };
  const { exitCode, err } = await against(play, "tag", "get", "a");
  expect([exitCode, err]).toEqual([1, "idmint: TOO_MODERN: not yet\n"]);
});

test("flags mean the same before and behind the command, and the nearest one wins", async () => {
  const { play } = counting();
  const { address, stop } = await playServer(play);
  onTestFinished(stop);
  const before = await idmint(["--json", "--address", address, "id", "next", "a"]);
  expect(before.out).toContain('{"tag":"a"');
  const nearest = await idmint(["--address", "nowhere:1", "id", "next", "a", "--address", address]);
  expect(nearest.exitCode).toBe(0);
});

test("a value that looks like a flag of another level is a value", async () => {
  const descriptions: string[] = [];
  const play: Play = {
    createTag: (request: { tag: { description: string } }) => {
      descriptions.push(request.tag.description);
      return { tag: someTag("a") };
    },
  };
  const { out } = await against(play, "tag", "create", "a", "--description", "--json");
  expect(descriptions).toEqual(["--json"]);
  expect(out).toMatch(/^name /);
});
