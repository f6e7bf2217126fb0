import { once } from "node:events";
import { expect, test } from "vitest";
import { devServer } from "../dev-server.ts";
import { cli, start, untilEnd } from "../spawn.ts";

const server = devServer();
const { idmint, json } = server;

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string;

test("a tag lives its whole life from a shell", async () => {
  const made = {
    name: "life",
    description: "",
    segment: {
      start: "1",
      min: 1_000,
      max: 100_000_000,
      holdFor: "900s",
      maxAge: "600s",
      tinyidStep: 0,
    },
    order: "ORDER_UNORDERED",
    ceiling: "9223372036854775807",
    floor: "0",
    version: "0",
    epoch: "1",
    state: "TAG_STATE_ACTIVE",
    createTime: TIME,
    updateTime: TIME,
    etag: expect.any(String) as string,
    period: "",
    format: null,
    unguessable: null,
  };
  expect(await json("tag", "create", "life")).toEqual({ tag: made });
  expect(await json("tag", "create", "life")).toEqual({ tag: made });
  expect(await json("tag", "get", "life")).toEqual({ tag: made });

  const settings = "--hold-for 30m --max-age 90s --start 5 --order per-client --description life";
  const update = ["tag", "update", "life", ...settings.split(" ")];
  const { tag: updated } = await json<{ tag: { etag: string } }>(...update);
  expect(updated).toEqual({
    ...made,
    description: "life",
    floor: "4",
    order: "ORDER_PER_CLIENT",
    segment: { ...made.segment, start: "5", holdFor: "1800s", maxAge: "90s" },
  });

  const dry = await idmint("tag", "advance", "life", "--floor", "500", "--dry-run", "--json");
  expect(JSON.parse(dry.out)).toMatchObject({ raised: true, tag: { floor: "500" } });
  expect(dry.err).toContain("nothing was changed");
  expect(await json("tag", "get", "life")).toMatchObject({ tag: { floor: "4" } });
  const advance = ["tag", "advance", "life", "--floor", "500", "--yes", "--etag", updated.etag];
  expect(await json(...advance)).toMatchObject({
    raised: true,
    effectiveTime: TIME,
    tag: { floor: "500", epoch: "2" },
  });
  expect(await json("tag", "advance", "life", "--floor", "500", "--yes")).toMatchObject({
    raised: false,
  });
  expect(await json("id", "next", "life")).toEqual({ tag: "life", ids: ["501"] });

  expect(await json("tag", "pause", "life")).toMatchObject({
    tag: { state: "TAG_STATE_PAUSED" },
    effectiveTime: TIME,
  });
  expect(await json("tag", "resume", "life")).toMatchObject({ tag: { state: "TAG_STATE_ACTIVE" } });
  expect(await json("tag", "delete", "life", "--yes")).toMatchObject({
    tag: { state: "TAG_STATE_DELETED" },
    effectiveTime: TIME,
  });
  const listed = await json<{ tags: { name: string; state: string }[] }>(
    "tag",
    "list",
    "--prefix",
    "li",
    "--show-deleted",
  );
  expect(listed.tags).toMatchObject([{ name: "life", state: "TAG_STATE_DELETED" }]);
  expect(await json("tag", "list", "--prefix", "li")).toEqual({
    tags: [],
    unreachable: [],
    nextPageToken: "",
  });
});

test("the text of a tag is rows, and of many tags a table", async () => {
  const { out } = await idmint("tag", "create", "text-a", "--ceiling", "js");
  expect(out).toMatch(/^name +text-a\nkind +segment\norder +unordered\nstate +active\n/);
  expect(out).toMatch(/^ceiling +9007199254740991$/m);
  await idmint("tag", "create", "text-b");
  const list = await idmint("tag", "list", "--prefix", "text-");
  expect(list.out.split("\n").map((line) => line.split(/ +/).slice(0, 4))).toEqual([
    ["NAME", "KIND", "ORDER", "STATE"],
    ["text-a", "segment", "unordered", "active"],
    ["text-b", "segment", "unordered", "active"],
    [""],
  ]);
});

test("a sequence of days is made, drawn from, looked at and updated from a shell", async () => {
  const settings = "--kind sequence --period day --time-zone Asia/Shanghai --keep-for 400d";
  const { tag: made } = await json<{ tag: Record<string, unknown> }>(
    "tag",
    "create",
    "daily",
    ...settings.split(" "),
  );
  expect(made).toMatchObject({
    order: "ORDER_STRICT",
    period: "",
    sequence: {
      start: "1",
      period: "PERIOD_UNIT_DAY",
      timeZone: "Asia/Shanghai",
      keepFor: "34560000s",
      backend: "SEQUENCE_BACKEND_STORE",
      step: 0,
      redisServer: "",
    },
  });
  const { out } = await idmint("id", "next", "daily");
  expect(out).toMatch(/^20\d{6}-\d+\n$/);
  const { periodIds } = await json<{ periodIds: { period: string; id: string; text: string }[] }>(
    "id",
    "next",
    "daily",
    "-n",
    "3",
  );
  for (const { period, id, text } of periodIds) {
    expect(text).toBe(`${period.replaceAll("-", "")}-${id}`);
  }
  const { tag } = await json<{ tag: { period: string } }>("tag", "get", "daily");
  expect(tag.period).toBe(periodIds.at(-1)?.period);
  const updated = await idmint("tag", "update", "daily", "--keep-for", "800d");
  expect(updated.out).toMatch(/^keep for +800d$/m);
  expect(await json("tag", "periods", "daily")).toEqual({ periods: [], nextPageToken: "" });
  expect((await idmint("tag", "periods", "daily")).out).toBe("PERIOD  LAST ID  ENDED\n");
});

test("a sequence without periods counts one by one", async () => {
  await json("tag", "create", "strict", "--kind", "sequence", "--start", "7");
  expect(await json("id", "next", "strict", "-n", "3")).toEqual({
    tag: "strict",
    ids: ["7", "8", "9"],
  });
  const { exitCode, err } = await idmint("tag", "update", "strict", "--start", "50");
  expect([exitCode, err.includes("FIELD_IMMUTABLE")]).toEqual([1, true]);
});

test.each([
  ["2^53", 2n ** 53n - 50n],
  ["2^63", 2n ** 63n - 50n],
])("ids around %s are exact, and at the ceiling they end", async (name, floor) => {
  const ceiling = name === "2^63" ? 2n ** 63n - 1n : 2n ** 53n + 50n;
  const tag = `edge-${name.slice(2)}`;
  await json("tag", "create", tag, "--start", String(floor + 1n), "--ceiling", String(ceiling));
  const count = Number(ceiling - floor);
  const { ids } = await json<{ ids: string[] }>("id", "next", tag, "-n", String(count - 1));
  const { out } = await idmint("id", "next", tag);
  const wanted = Array.from({ length: count }, (_, offset) => String(floor + 1n + BigInt(offset)));
  expect([...ids, out.trimEnd()].toSorted()).toEqual(wanted.toSorted());
  const over = await idmint("id", "next", tag, "--json");
  expect([over.exitCode, over.out]).toEqual([1, ""]);
  expect(over.err).toContain('"reason":"TAG_EXHAUSTED"');
});

test("a hundred thousand ids come in pieces, each once", async () => {
  const { out, err } = await idmint("id", "next", "demo", "--count", "100000");
  const ids = out.trimEnd().split("\n");
  expect([err, ids.length, new Set(ids).size]).toEqual(["", 100_000, 100_000]);
});

test("a reader that has seen enough ends the command quietly", async () => {
  const child = start(["id", "next", "demo", "--count", "10000000"], {
    env: { IDMINT_ADDRESS: server.grpcAddress },
  });
  child.stdout?.once("data", () => child.stdout?.destroy());
  const { exitCode, err } = await untilEnd(child);
  expect([exitCode, err]).toEqual([0, ""]);
});

test("Ctrl-C ends a long command at once, with 130 and one line", async () => {
  const child = start(["id", "next", "demo", "--count", "10000000"], {
    env: { IDMINT_ADDRESS: server.grpcAddress },
  });
  const ended = untilEnd(child);
  await once(child.stdout!, "data");
  child.kill("SIGINT");
  const { exitCode, out, err } = await ended;
  expect([exitCode, err]).toEqual([130, "idmint: CALL_CANCELLED: interrupted\n"]);
  // No line is cut in two: every id that stands there is whole, and issued.
  expect(out).toMatch(/\n$/);
});

test("status says how the server is", async () => {
  expect(await json("status")).toMatchObject({
    health: "SERVING",
    node: {
      state: "NODE_STATE_SERVING",
      store: {
        backend: "STORE_BACKEND_SQLITE",
        state: "STORE_STATE_GRANTING",
        schemaVersion: expect.any(Number) as number,
        fenceReason: "",
        place: expect.stringMatching(/^sqlite:\//) as string,
      },
      issuedIds: expect.stringMatching(/^\d+$/) as string,
    },
  });
  const { out } = await idmint("status");
  expect(out).toMatch(/^health +SERVING\nstate +SERVING\n/);
});

test("version needs no server", async () => {
  const { exitCode, out } = await cli(["version", "--json"]);
  expect(exitCode).toBe(0);
  expect(JSON.parse(out)).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/) as string,
    node: process.versions.node,
  });
});
