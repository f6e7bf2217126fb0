import { GetNodeStatusResponse, Node } from "@idmint/proto";
import fc from "fast-check";
import { HealthCheckResponse } from "@idmint/proto/health";
import { expect, onTestFinished, test } from "vitest";
import { idmint, playServer, refusal } from "../../support.ts";
import { expiryFinding } from "../../../src/commands/doctor/certificate.ts";
import {
  type Check,
  fail,
  type Finding,
  ok,
  runChecks,
} from "../../../src/commands/doctor/checks.ts";
import { clockFindings } from "../../../src/commands/doctor/clocks.ts";
import { fleetFindings } from "../../../src/commands/doctor/fleet.ts";
import { healthFindings, storeFindings } from "../../../src/commands/doctor/server.ts";
import {
  idFindings,
  databaseFindings,
  memberFindings,
  redisFindings,
  settingFindings,
} from "../../../src/commands/doctor/stores.ts";

/** Time that passes only when told. */
function fakeTimers(): { after: (ms: number, then: () => void) => () => void; pass: () => void } {
  const waiting = new Set<() => void>();
  return {
    after: (_ms, then) => {
      waiting.add(then);
      return () => waiting.delete(then);
    },
    pass: () => {
      for (const then of waiting) then();
    },
  };
}

const check = (name: string, look: Check["look"], more: Partial<Check> = {}): Check => ({
  name,
  late: `mend ${name}`,
  look,
  ...more,
});

const never = (): Promise<never> => new Promise(() => {});

test("checks run side by side, in the order of the table, each bounded in time", async () => {
  const timers = fakeTimers();
  const order: string[] = [];
  const quick = (name: string) => async (): Promise<readonly Finding[]> => {
    order.push(name);
    return [ok(name)];
  };
  const report = runChecks(
    [
      check("hangs", never),
      check("throws", () => Promise.reject(new Error("broken"))),
      check("a", quick("a")),
      check("b", quick("b"), { needs: ["a"] }),
      check("c", quick("c"), { needs: ["hangs"] }),
      check("d", quick("d"), { needs: ["c"] }),
      check("last", quick("last"), { uses: ["hangs", "d"] }),
    ],
    { boundMs: 5, timers },
  );
  await new Promise((resolve) => setImmediate(resolve));
  expect(order).toEqual(["a", "b"]);
  timers.pass();
  const { results, leftOut } = await report;
  expect(results.map((its) => [its.check, its.status, its.fix])).toEqual([
    ["hangs", "fail", "mend hangs"],
    ["throws", "fail", "mend throws"],
    ["a", "ok", undefined],
    ["b", "ok", undefined],
    ["last", "ok", undefined],
  ]);
  expect(leftOut).toEqual([
    { check: "c", needs: "hangs" },
    { check: "d", needs: "c" },
  ]);
});

test("what a right is missing for is told so, and not as a server that does not answer", async () => {
  const { address, stop } = await playServer({
    getNodeStatus: () => {
      throw refusal(7, "PERMISSION_DENIED", "role observe");
    },
    check: () => HealthCheckResponse.create({ status: 1 }),
  });
  onTestFinished(stop);
  const ran = await idmint(["doctor", "--address", address, "--json", "--timeout", "500ms"]);
  const { results } = JSON.parse(ran.out) as { results: { check: string; fix?: string }[] };
  const health = results.find((its) => its.check === "health");
  expect(health?.fix).toContain("--token-file");
  // Nobody plays the list of servers, and it is waited for no longer than that.
  expect(results.find((its) => its.check === "fleet")?.fix).toContain("its log and its load");
});

const OUTCOMES = fc.array(
  fc.record({ fails: fc.boolean(), needs: fc.array(fc.nat(9), { maxLength: 3 }) }),
  { maxLength: 10 },
);

test("each check is reported once, and is left out exactly when something it needs is not well", async () => {
  await fc.assert(
    fc.asyncProperty(OUTCOMES, async (rows) => {
      const names = rows.map((_, at) => `check ${at}`);
      const needsOf = (at: number): readonly number[] =>
        (rows[at]?.needs ?? []).filter((needed) => needed < at);
      const { results, leftOut } = await runChecks(
        rows.map(({ fails }, at) =>
          check(names[at] ?? "", async () => [fails ? fail("x", "y") : ok("x")], {
            needs: needsOf(at).map((needed) => names[needed] ?? ""),
          }),
        ),
        { boundMs: 1, timers: fakeTimers() },
      );
      const isWell: boolean[] = [];
      for (const [at, row] of rows.entries()) {
        const isLeftOut = needsOf(at).some((needed) => isWell[needed] !== true);
        isWell.push(!isLeftOut && !row.fails);
        expect(leftOut.some((its) => its.check === names[at])).toBe(isLeftOut);
        expect(results.filter((its) => its.check === names[at])).toHaveLength(isLeftOut ? 0 : 1);
      }
    }),
    { numRuns: 200 },
  );
});

const DAY_MS = 86_400_000;

test.each([
  [-1, "fail"],
  [1, "warn"],
  [20, "warn"],
  [22, undefined],
])("a certificate with %d days left: %s", (days, status) => {
  const now = Date.parse("2026-06-01T00:00:00Z");
  const text = (ms: number): string => new Date(now + ms).toUTCString();
  const dates = { validFrom: text(-100 * DAY_MS), validTo: text(days * DAY_MS) };
  expect(expiryFinding(dates, now, "it")?.status).toBe(status);
  expect(expiryFinding({ ...dates, validFrom: text(1) }, now - DAY_MS, "it")?.status).toBe("fail");
});

const clock = (of: string, aheadMs: number, errorMs = 1) => ({ of, aheadMs, errorMs });

test("the clock that differs from the others is named, be it this machine's own", () => {
  const far = clockFindings([clock("a", 2), clock("b", 60_000), clock("c", -3)], 5_000);
  expect(far).toMatchObject([
    { status: "fail", found: "the clock of b is 60 s ahead of the others" },
  ]);
  const own = clockFindings([clock("a", 2_000), clock("b", 2_001)], 5_000);
  expect(own).toMatchObject([
    { status: "warn", found: "the clock of this machine is 2000 ms behind of the others" },
  ]);
  const two = clockFindings([clock("a", -9_000)], 5_000);
  expect(two).toMatchObject([
    { status: "fail", found: "the clocks of a and this machine differ by 9000 ms" },
  ]);
});

test("an answer that took long is no proof against a clock", () => {
  expect(clockFindings([clock("a", 900, 800), clock("b", -900, 800)], 5_000)[0]?.status).toBe("ok");
  expect(clockFindings([], 5_000)[0]?.status).toBe("ok");
});

const listed = (nodeId: string, more: Partial<Node> = {}): Node =>
  Node.create({ nodeId, instance: nodeId, version: "2", alive: true, ...more });

test("a fleet tells of versions, of the dead and of the drained", () => {
  const findings = fleetFindings([
    listed("a"),
    listed("b", { version: "1" }),
    // One that is gone is of no version.
    listed("c", { version: "0", alive: false }),
    listed("d", { draining: true }),
  ]);
  expect(findings.map(({ fix }) => fix)).toEqual([
    expect.stringContaining("finish the upgrade"),
    expect.stringContaining("idmint node forget c"),
    expect.stringContaining("idmint node undrain d"),
  ]);
  expect(findings[0]?.found).toBe("servers of 2 versions: 1 (1), 2 (2)");
  expect(fleetFindings([listed("a"), listed("b")])[0]?.status).toBe("ok");
});

const node = (more: Parameters<typeof GetNodeStatusResponse.create>[0]): GetNodeStatusResponse =>
  GetNodeStatusResponse.create({ nodeId: "n-1", state: 1, ...more });

const store = (state: 1 | 2 | 3) =>
  ({ backend: 2, state, schemaVersion: 1, fenceReason: "went back", place: "db" }) as const;

test("a server's own words become lines with a fix", () => {
  expect(healthFindings(true, node({}))[0]?.status).toBe("ok");
  expect(healthFindings(false, node({}))[0]).toMatchObject({ status: "fail" });
  expect(healthFindings(true, node({ state: 3 }))[0]?.found).toContain("DEGRADED");
  expect(healthFindings(false, node({ stoppedTime: new Date(0) }))[0]?.fix).toBe(
    "idmint resume-issuing --all",
  );
  expect(storeFindings(node({ store: store(2) }))[0]?.found).toContain("does not answer");
  const [fenced] = storeFindings(node({ store: store(3) }));
  expect(fenced?.found).toBe("its store refuses: went back");
  expect(fenced?.fix).toContain("idmint store accept");
  const ticketDatabases = [{ name: "t1", state: 2 as const, reason: "down" }];
  expect(storeFindings(node({ store: store(1), ticketDatabases }))[0]?.found).toContain("t1: down");
});

test("every unsafe setting has a fix of its own", () => {
  const names = ["fsync", "full_page_writes", "synchronous_commit", "client_min_messages"];
  const more = ["synchronous_standby_names", "standbys", "network_filesystem", "auto_compaction"];
  const status = { unsafe: [...names, ...more], standbys: "" };
  const findings = settingFindings(status as never, ["fsync"]);
  expect(findings.map((its) => its.status)).toEqual([
    "warn",
    "fail",
    "fail",
    "fail",
    ...more.map(() => "fail"),
  ]);
  for (const { fix } of findings) expect(fix).not.toContain("docs/errors.md");
});

test("every fault of a database is a line, and fails where servers do not serve with it", () => {
  expect(databaseFindings(undefined)).toEqual([]);
  expect(databaseFindings([])).toMatchObject([{ status: "ok" }]);
  const lines = databaseFindings([
    { name: "rights", isFatal: true, found: "the role a\u001B lacks", fix: "grant it" },
    { name: "encoding", isFatal: false, found: "it is LATIN1", fix: "make it anew" },
  ]);
  expect(lines).toEqual([
    { status: "fail", found: "the role a\\u001b lacks", fix: "grant it" },
    { status: "warn", found: "it is LATIN1", fix: "make it anew" },
  ]);
});

test("every member of a cluster that is not used is a line", () => {
  expect(memberFindings(undefined)).toEqual([]);
  expect(memberFindings([])).toEqual([{ status: "ok", found: "all of one cluster" }]);
  const [dead, stranger] = memberFindings(["a:1 does not answer", "b:1 is passed over\u001B"]);
  expect([dead?.status, stranger?.status]).toEqual(["warn", "warn"]);
  expect(stranger?.found).toBe("b:1 is passed over\\u001b");
  expect(stranger?.fix).toContain("store.url");
  expect(stranger?.fix).not.toContain("accept");
});

test("of a Redis each fault is a line", () => {
  const standing = { version: "7", unfit: undefined, keepsLog: true, writesLog: true };
  expect(redisFindings(standing)[0]?.status).toBe("ok");
  const bad = redisFindings({
    ...standing,
    unfit: "it is x: do y",
    keepsLog: false,
    writesLog: false,
  });
  expect(bad.map(({ status, fix }) => [status, fix])).toEqual([
    ["fail", "do y"],
    ["warn", expect.stringContaining("appendonly yes")],
    ["fail", expect.stringContaining("disk")],
  ]);
});

function foundOf(storeId: string, expected?: string): string {
  const [finding] = idFindings({ storeId }, { storeId: expected, by: "store.expect_id" });
  return `${finding?.status}: ${finding?.found}`;
}

test("a store with another id than the server's own is named, with what says so", () => {
  expect(foundOf("a")).toBe("ok: a");
  expect(foundOf("a", "a")).toBe("ok: a");
  expect(foundOf("default: a; b: c", "a")).toBe("ok: a");
  expect(foundOf("b", "a")).toBe(
    "fail: another store answers: its id is b, and store.expect_id says a",
  );
});
