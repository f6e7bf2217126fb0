// `idmint tag create --dry-run`: what a tag would be, without a server.
import { decode, SNOWFLAKE_PRESETS } from "@idmint/core";
import { expect, test } from "vitest";
import { idmint } from "../../support.ts";

const SILENT = "idmint: dry run, no server was asked and nothing was created\n";
/** Nobody listens there. */
const NOWHERE = ["--address", "127.0.0.1:1"];

async function plan(...flags: readonly string[]): Promise<string> {
  const ran = await idmint(["tag", "create", "t", ...flags, "--dry-run", ...NOWHERE]);
  expect([ran.exitCode, ran.err]).toEqual([0, SILENT]);
  return ran.out;
}

interface Plan {
  readonly tag: Readonly<Record<string, unknown>>;
  readonly endTime: string | null;
  readonly daysLeft: number | null;
  readonly capacity: Readonly<Record<string, string>>;
  readonly textLength: unknown;
  readonly examples: readonly string[];
}

async function planned(...flags: readonly string[]): Promise<Plan> {
  return JSON.parse(await plan(...flags, "--json")) as Plan;
}

test("layout, life, room and examples of a snowflake tag", async () => {
  const out = await plan("--kind", "snowflake", "--layout", "41-5-5-12");
  for (const row of [
    /^name +t$/m,
    /^order +unordered$/m,
    /^ceiling +9223372036854775807$/m,
    /^layout +41-5-5-12$/m,
    /^ends at +2095-09-07T15:47:35\.552Z$/m,
    /^data centers +32$/m,
    /^workers each +32$/m,
    /^ids per second and worker +4096000$/m,
    /^ids per second in all +4194304000$/m,
    /^life +\d\d\.\d years$/m,
    /^example +9223372036854775807$/m,
  ]) {
    expect(out).toMatch(row);
  }
  const before = Date.now();
  const { tag, endTime, daysLeft, capacity, examples } = await planned("--kind", "snowflake");
  expect(tag).toMatchObject({
    name: "t",
    order: "ORDER_UNORDERED",
    snowflake: { layout: { timeBits: 41, workerBits: 10 }, clockPolicy: "CLOCK_POLICY_REFUSE" },
  });
  expect(endTime).toBe("2095-09-07T15:47:35.552Z");
  expect(daysLeft).toBe(Math.floor((Date.parse(endTime ?? "") - before) / 86_400_000));
  expect(capacity).toEqual({ idsPerSecondInAll: String(4_096_000 * 1_024) });
  const layout = SNOWFLAKE_PRESETS["41-10-12"];
  const at = decode(layout, BigInt(examples[0]!)).tick + layout.timeOriginMs;
  expect(Math.abs(at - before)).toBeLessThan(10_000);
});

test("a life that is short is refused by the flag that helps, and shown in days when it is meant", async () => {
  const flags = ["--kind", "snowflake", "--layout", "36-10-12", "--time-origin"];
  const origin = new Date(Date.now() - 86_400_000 * 700).toISOString().slice(0, 10);
  const args = ["tag", "create", "t", ...flags, origin, "--dry-run"];
  const { exitCode, out, err } = await idmint(args);
  expect([exitCode, out]).toEqual([2, ""]);
  expect(err).toMatch(
    /^idmint: VALUE_OUT_OF_RANGE: --layout: bits of the time must be more: they run out in \d+ days; set --allow-short-life if you want that$/m,
  );
  expect(await plan(...flags, origin, "--allow-short-life")).toMatch(/^life +\d+ days$/m);
});

test.each([
  [["--layout", "41-12-12"], "--layout has 65 bits, but a positive id has at most 63"],
  [["--layout", "41-0-31"], "--layout: bits of the sequence must be 1 to 30, got 31"],
  [["--time-origin", "2999-01-01"], "--time-origin must be 0 to"],
  [["--clock-policy", "extension"], "--clock-policy must not be"],
  [["--data-center", "1"], "--data-center must be 0 to 0"],
  [["--ceiling", "1000"], "--ceiling must be empty with kind snowflake"],
  [["--order", "strict"], "--order must be"],
  [["--format", "{machine}{seq}"], "--format has {machine} without a width"],
  [["--key-id", "1"], "--key-id must be empty for kind snowflake"],
])("%j is refused as a server would", async (flags, text) => {
  const args = ["tag", "create", "t", "--kind", "snowflake", ...flags, "--dry-run"];
  const { exitCode, out, err } = await idmint(args);
  expect([exitCode, out]).toEqual([2, ""]);
  expect(err).toContain(text);
  const json = await idmint([...args, "--json"]);
  expect(JSON.parse(json.err)).toMatchObject({ error: { code: "INVALID_ARGUMENT", exitCode: 2 } });
});

test("a bad name is told too", async () => {
  const { exitCode, err } = await idmint(["tag", "create", "a b", "--dry-run"]);
  expect([exitCode, err]).toEqual([2, expect.stringContaining("NAME must be")]);
});

test("texts: how long they are, the first and the last", async () => {
  const out = await plan("--ceiling", "99999999", "--format", "INV{id:8}{luhn}");
  expect(out).toMatch(/^ids +99999999$/m);
  expect(out).toMatch(/^text length +12$/m);
  expect(out).toMatch(/^example +INV000000018\nexample +INV99999999\d$/m);
  const { textLength } = await planned("--format", "o_{id:radix58}");
  expect(textLength).toEqual({ shortest: 3, longest: 13 });
});

test.each([
  [["--ceiling", "1000000"], { ids: "1000000" }, ["1", "1000000"]],
  [
    ["--kind", "sequence", "--period", "week", "--time-zone", "UTC", "--ceiling", "9"],
    { idsPerPeriod: "9" },
    ["2026W02-1", "2026W02-9"],
  ],
  [["--kind", "ticket", "--start", "5", "--ceiling", "9"], { ids: "5" }, ["5", "9"]],
  [["--kind", "sequence", "--backend", "redis", "--ceiling", "9"], { ids: "9" }, ["1", "9"]],
  [["--ceiling", "99999999", "--key-id", "1"], { ids: "99999999" }, []],
])("room and examples of %j", async (flags, capacity, examples) => {
  const found = await planned(...flags);
  expect(found).toMatchObject({ capacity, examples, endTime: null, daysLeft: null });
});

test("ids from the clock of Redis, UUIDs and ObjectIds", async () => {
  const redis = await planned("--kind", "redis-snowflake", "--shard", "60");
  expect(redis.capacity).toEqual({ idsPerSecondInAll: "1024000" });
  expect(redis.endTime).toBe("2095-09-07T15:47:35.552Z");
  expect(redis.examples).toHaveLength(2);
  const { examples } = await planned("--kind", "uuid", "--version", "7");
  expect(examples).toEqual([expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)]);
  const named = await planned("--kind", "uuid", "--version", "5", "--namespace", "DNS");
  expect(named.examples[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5/);
  const objectId = await planned("--kind", "object-id");
  expect(objectId.examples[0]).toMatch(/^[0-9a-f]{24}$/);
  const { exitCode, err } = await idmint(["tag", "create", "t", "--kind", "uuid", "--dry-run"]);
  expect([exitCode, err]).toEqual([2, expect.stringContaining("--version is required: 1 to 7")]);
});
