// What docs/regions.md says to type, typed in two regions with a store each.
import { expect, onTestFinished, test } from "vitest";
import { devServer } from "./dev-server.ts";
import { cli, type Served, serve, temporaryFolder } from "./process.ts";
import { shell, snippets } from "./snippets.ts";

const FILE = "docs/regions.md";
const MAX_ID = 2n ** 63n - 1n;

const eu = devServer();
const us = devServer();

type Region = typeof eu;

/** Types lines in a region, and answers the last one printed. */
async function type(region: Region, lines: string): Promise<string> {
  const env = { IDMINT_ADDRESS: region.grpcAddress };
  const { exitCode, out, err } = await shell(lines, { env });
  expect([exitCode, err]).toEqual([0, ""]);
  return out.trimEnd().split("\n").at(-1) ?? "";
}

/** What the two blocks of a chapter print last. */
async function bothOf(chapter: string): Promise<[string, string]> {
  const [inEu = "", inUs = "", ...others] = snippets(FILE, chapter, "sh");
  expect(others).toEqual([]);
  return [await type(eu, inEu), await type(us, inUs)];
}

/** Ids of many calls in a region. */
async function idsOf(region: Region, tag: string): Promise<readonly string[]> {
  const { ids } = await region.json<{ ids: string[] }>("id", "next", tag, "--count", "1000");
  return ids;
}

function shared(one: readonly string[], other: readonly string[]): readonly string[] {
  const known = new Set(one);
  return other.filter((id) => known.has(id));
}

test("without any of it two stores give the same ids", async () => {
  for (const region of [eu, us]) await region.out("tag", "create", "plain");
  expect(shared(await idsOf(eu, "plain"), await idsOf(us, "plain"))).toHaveLength(1_000);
});

test("ranges: each region counts in its own, and nothing leads out of it", async () => {
  const [first, last] = await bothOf("Ranges");
  expect([first, last]).toEqual(["1", String(2n ** 62n)]);
  expect(shared(await idsOf(eu, "orders"), await idsOf(us, "orders"))).toEqual([]);
  const beyond = String(2n ** 62n);
  const refused = await eu.idmint("tag", "advance", "orders", "--floor", beyond, "--yes");
  expect([refused.exitCode, refused.err.includes("floor")]).toEqual([2, true]);
  const ceiling = ["tag", "update", "orders", "--ceiling", beyond];
  expect((await eu.idmint(...ceiling)).err).toContain("FIELD_IMMUTABLE");
});

test("odd and even: made of the numbers, and below 2^63 at the ceiling", async () => {
  expect(await bothOf("Odd and even")).toEqual(["2", "3"]);
  const [block = ""] = snippets(FILE, "Odd and even", "sh");
  const ceiling = BigInt(/--ceiling (\d+)/.exec(block)?.[1] ?? "");
  expect(ceiling * 2n + 1n).toBe(MAX_ID);
});

test("snowflakes: the data centre tells the regions apart", async () => {
  const [inEu = "", inUs = ""] = snippets(FILE, "Snowflake data centres", "sh");
  await type(eu, inEu);
  await type(us, inUs);
  for (const [region, dataCenter] of [
    [eu, 1n],
    [us, 2n],
  ] as const) {
    const ids = await idsOf(region, "clicks");
    // Layout 41-5-5-12.
    expect(new Set(ids.map((id) => (BigInt(id) >> 17n) & 31n))).toEqual(new Set([dataCenter]));
  }
});

test("with one store, data centres follow the zone as servers are configured", async () => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const [, , exports = ""] = snippets(FILE, "Snowflake data centres", "sh");
  const env = Object.fromEntries(
    [...exports.matchAll(/^export (\w+)=(\S+)$/gm)].map(([, name = "", value = ""]) => [
      name,
      value,
    ]),
  );
  expect(Object.keys(env)).toEqual(["IDMINT_NODE_ZONE", "IDMINT_SNOWFLAKE_DATA_CENTER"]);
  const store = { IDMINT_STORE_URL: `sqlite:${folder}/idmint.db` };
  expect((await cli(["migrate"], { env: store })).exitCode).toBe(0);
  const inUs = { IDMINT_NODE_ZONE: "us", IDMINT_SNOWFLAKE_DATA_CENTER: "2" };
  const servers: Served[] = [];
  for (const zone of [env, inUs])
    servers.push(await serve(["serve"], { env: { ...store, ...zone } }));
  onTestFinished(async () => {
    for (const server of servers) await server.stop();
  });
  const [one, two] = servers.map(({ grpcAddress }) => ({ IDMINT_ADDRESS: grpcAddress }));
  const create = ["tag", "create", "hits", "--kind", "snowflake", "--layout", "41-5-5-12"];
  expect((await cli(create, { env: one ?? {} })).exitCode).toBe(0);
  const centres: bigint[] = [];
  for (const place of [one, two]) {
    const { out } = await cli(["id", "next", "hits"], { env: place ?? {} });
    centres.push((BigInt(out.trim()) >> 17n) & 31n);
  }
  expect(centres).toEqual([1n, 2n]);
});

test("prefixes: the texts differ, though the numbers in them do not", async () => {
  const [one, other] = await bothOf("Prefixes");
  expect([one.slice(0, 2), other.slice(0, 2)]).toEqual(["EU", "US"]);
  expect(one.slice(2)).toBe(other.slice(2));
});

test("a switch by hand: the other region begins above all that was issued", async () => {
  await eu.out("tag", "create", "bookings", "--max-age", "1s");
  const before = await idsOf(eu, "bookings");
  const [stop = "", begin = "", ...others] = snippets(FILE, "A switch by hand", "sh");
  expect(others).toEqual([]);
  const env = { IDMINT_ADDRESS: eu.grpcAddress };
  const { exitCode, out } = await shell(stop, { env });
  expect(exitCode).toBe(0);
  const [, floor = ""] = /"floor":\s*"(\d+)"[^]*$/.exec(out) ?? [];
  expect(begin).toContain("FLOOR");
  const first = await shell(begin.replace("FLOOR", floor), {
    env: { IDMINT_ADDRESS: us.grpcAddress },
  });
  expect(first.exitCode).toBe(0);
  const id = BigInt(first.out.trimEnd().split("\n").at(-1) ?? "");
  expect(id).toBe(BigInt(floor) + 1n);
  expect(before.every((each) => BigInt(each) <= BigInt(floor))).toBe(true);
  expect((await eu.idmint("id", "next", "bookings")).err).toContain("TAG_PAUSED");
});
