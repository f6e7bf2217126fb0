import { CapacityLimitKind, GetTagCapacityResponse } from "@idmint/proto";
import { expect, test } from "vitest";
import { against } from "../../support.ts";

const INT32_MAX = 2_147_483_647n;

function played(answer: Parameters<typeof GetTagCapacityResponse.fromPartial>[0]) {
  return { getTagCapacity: () => GetTagCapacityResponse.fromPartial(answer) };
}

test("the capacity of a tag is a table of its limits, with the rate it assumes", async () => {
  const play = played({
    idsPerSecond: 1_234.56,
    watched: { seconds: 30_000n, nanos: 0 },
    limits: [
      { kind: CapacityLimitKind.INT32, lastId: INT32_MAX, idsLeft: 0n, runOutTime: new Date() },
      {
        kind: CapacityLimitKind.CEILING,
        lastId: 9_000_000_000n,
        idsLeft: 1_000_000_000n,
        runOutTime: new Date("2026-12-01T10:31:04Z"),
      },
    ],
  });
  const { exitCode, out } = await against(play, "tag", "capacity", "orders");
  expect(exitCode).toBe(0);
  expect(out).toBe(`rate  1235 ids a second, watched for 500m

LIMIT    LAST ID     LEFT        RUNS OUT
32 bits  2147483647  0           now
ceiling  9000000000  1000000000  2026-12-01T10:31:04Z
`);
  const { out: json } = await against(play, "tag", "capacity", "orders", "--json");
  expect(JSON.parse(json)).toMatchObject({
    idsPerSecond: 1_234.56,
    watched: "30000s",
    limits: [{ kind: "CAPACITY_LIMIT_KIND_INT32" }, { idsLeft: "1000000000" }],
    workers: null,
  });
});

test("what is not known is said to be unknown, and worker ids are counted", async () => {
  const counted = played({
    limits: [{ kind: CapacityLimitKind.CEILING, lastId: 10n }],
  });
  const { out } = await against(counted, "tag", "capacity", "coupons");
  expect(out).toContain("rate  unknown: this server saw no ids being used\n");
  expect(out).toContain("ceiling  10       -     unknown\n");
  const snowflake = played({
    limits: [
      { kind: CapacityLimitKind.TIME_BITS, runOutTime: new Date("2095-09-07T15:47:35.552Z") },
    ],
    workers: { total: 1_024, left: 3 },
  });
  const trace = await against(snowflake, "tag", "capacity", "trace");
  expect(trace.out).toContain("worker ids left  3 of 1024\n");
  expect(trace.out).toMatch(/bits of time +- +- +2095-09-07T15:47:35/);
  const uuid = await against(played({}), "tag", "capacity", "sessions");
  expect(uuid.out).toContain("The ids of this tag do not run out.");
});
