// Servers that are restarted one after the other, as another release and back, over a schema that is migrated meanwhile.
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Child } from "../../src/fleet/child.ts";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { newerBuild } from "../../src/fleet/newer-build.ts";
import { until } from "../../src/fleet/until.ts";
import { judge } from "../../src/fleet/uniqueness.ts";
import { isLong, ownPostgres, startFleet } from "../fleet-support.ts";

/** Rounds in which every server is restarted once; in the short form they end after four restarts. */
const ROUNDS = isLong ? 10 : 1;
const NEWER = "99.0.0";
/** What a release may do: it adds to every table that servers write. */
const STEP = {
  name: "of a newer release",
  worksFrom: 1,
  sql: ["node", "store", "tag", "worker"]
    .map((table) => `ALTER TABLE idmint.${table} ADD COLUMN newer bigint NOT NULL DEFAULT 7`)
    .join(";"),
};
/** Together 1,000 calls a second. Small segments: each process asks its servers several times a second. */
const CALLERS = [
  { tag: "orders", activities: [{ kind: "next", perSecond: 250, parallel: 16 }] },
  { tag: "orders", activities: [{ kind: "next", perSecond: 250, parallel: 16 }] },
  { tag: "payments", activities: [{ kind: "next", perSecond: 400, parallel: 16 }] },
  { tag: "invoices", activities: [{ kind: "next", perSecond: 100, parallel: 16 }] },
] as const;

async function startLoad(fleet: Fleet): Promise<readonly Child[]> {
  for (const name of ["orders", "payments"]) {
    await fleet.first.api.createTag({ name, min: 500, max: 500 });
  }
  await fleet.first.api.createSequence("invoices");
  return Promise.all(
    CALLERS.map((load) =>
      fleet.startCallers("sdk", { ...load, min: 50, max: 50, deadlineMs: 5_000 }),
    ),
  );
}

/** Stops a server and starts it again, as `build`; the others serve meanwhile. */
async function restart(server: FleetServer, build: string): Promise<void> {
  const { code } = await server.stop();
  expect(code).toBe(0);
  server.build = build;
  await server.start();
  // The load goes over it again before the next one stops.
  await pause(500);
}

/** Versions of the servers on the store, as one of them lists them. */
async function versionsOf({ first }: Fleet): Promise<readonly string[]> {
  const { nodes } = first.api;
  const request = { pageSize: 100, pageToken: "" };
  const answer = await first.api.send(nodes.listNodes.bind(nodes), request);
  return answer.nodes.map(({ version }) => version);
}

test(
  "callers notice nothing of a migration, of servers of two releases side by side, and of their restarts",
  { timeout: isLong ? 900_000 : 180_000 },
  async () => {
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const fleet = await startFleet({ servers: 3, storeUrl: url });
    const older = fleet.first.build;
    const newer = newerBuild(path.join(fleet.folder, "newer"), NEWER, STEP);
    const loadedAt = performance.now();
    const callers = await startLoad(fleet);
    await Promise.all(callers.map((child) => child.waitForOutput("first answer")));
    await pause(1_000);
    const started = performance.now();
    const planned = await fleet.cliOf(newer, "migrate", "--dry-run");
    expect(planned).toContain("servers of schema 1 and later go on");
    expect(await fleet.cliOf(newer, "migrate", "--yes")).toMatch(/from \d+ to \d+/u);
    const [, second, third] = fleet.servers;
    if (second === undefined || third === undefined) throw new Error("three servers");
    await restart(second, newer);
    // The first server reads the list with its next poll.
    await until("servers of two releases are listed", async () => {
      const versions = new Set(await versionsOf(fleet));
      return versions.has(NEWER) && versions.size === 2;
    });
    await restart(third, newer);
    await restart(fleet.first, newer);
    // Back again: servers of the release before start on the newer schema.
    await restart(second, older);
    for (let round = 1; round < ROUNDS; round++) {
      for (const server of fleet.servers) await restart(server, round % 2 === 0 ? older : newer);
    }
    const tookMs = performance.now() - started;
    const loadMs = performance.now() - loadedAt;
    const reports = await Promise.all(callers.map((child) => fleet.stopCallers(child)));
    const answered = reports.reduce((sum, report) => sum + report.answered, 0);
    console.log(
      `${answered} calls, ${Math.round((answered / loadMs) * 1_000)}/s; restarts took ${Math.round(tookMs)} ms`,
      reports.flatMap(({ samples }) => samples),
    );
    expect(reports.map(({ errors }) => errors)).toEqual(CALLERS.map(() => ({})));
    for (const tag of ["orders", "payments", "invoices"]) {
      const its = callers.filter((_, at) => CALLERS[at]?.tag === tag);
      const { repeated } = judge(its.map((child) => fleet.recordsOf(child)));
      expect([tag, repeated]).toEqual([tag, 0]);
    }
    const kept = "SELECT DISTINCT newer::int AS newer FROM idmint.tag";
    expect(await postgres.query(kept, new URL(url).pathname.slice(1))).toEqual([{ newer: 7 }]);
  },
);
