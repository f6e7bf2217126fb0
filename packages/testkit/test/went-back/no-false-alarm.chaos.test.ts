// A PostgreSQL whose standbys are promoted, whose tables are rewritten and whose sessions are terminated, under servers that
// must not take any of that for a store that went back. IDMINT_LONG=1: 50 promotions, and ten minutes of the rest.
import { setTimeout as pause } from "node:timers/promises";
import { type GetNodeStatusResponse, NodeState, StoreState } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { TestPostgresPair } from "../../src/postgres-pair.ts";
import type { TestDatabase } from "../../src/postgres.ts";
import { type Call, Crew, now } from "./claims-crew.ts";
import { isLong, ownPostgres, seededRandom, startFleet } from "../fleet-support.ts";
import { recorded } from "../recorded.ts";

const PROMOTIONS = isLong ? 50 : 1;
const DISTURBED_MS = isLong ? 600_000 : 5_000;
const SERVERS = 3;
/** Until all issue again; the figures are printed. */
const BACK_MS = 10_000;
/** A server shows its state whatever its store does; the rest is for a busy machine. */
const STATUS_MS = 20_000;
/** Of a store that does not answer. */
const OUTAGES = new Set(["STORE_UNAVAILABLE", "SEGMENT_NOT_READY", "DEADLINE_EXCEEDED"]);
const WENT_BACK = "STORE_EPOCH_CHANGED";

/** Callers of three servers, and whatever a server said or showed of a store that went back. */
class Watch {
  readonly fleet: Fleet;
  readonly crew: Crew;
  readonly alarms: string[] = [];
  /** How often each reason was told, or empty: ids. */
  readonly told = new Map<string, number>();
  #isPromoting = false;
  #promotedAt = -Infinity;
  readonly #stop = new AbortController();
  readonly #looking: Promise<unknown>;

  private constructor(fleet: Fleet) {
    this.fleet = fleet;
    this.crew = new Crew(fleet, (call) => this.#heard(call));
    this.#looking = Promise.all(
      fleet.servers.map((server) =>
        this.#look(server).catch((error: unknown) => this.#alarm(String(error))),
      ),
    );
  }

  static async start(storeUrl: string): Promise<Watch> {
    const fleet = await startFleet({ servers: SERVERS, storeUrl });
    await fleet.first.api.createTag({ name: "segments", min: 20, max: 40 });
    await fleet.first.api.createSequence("strict");
    const watch = new Watch(fleet);
    onTestFinished(() => watch.end());
    await watch.allIssue();
    return watch;
  }

  /** Until its end, and for as long as all servers need to issue again, servers may refuse the store. Answers how long. */
  async promoting(work: () => Promise<void>): Promise<number> {
    this.#isPromoting = true;
    await work();
    const backMs = await this.allIssue();
    this.#isPromoting = false;
    this.#promotedAt = now();
    return backMs;
  }

  /** Waits until each server takes ids from the store and is well; answers how long that took. */
  async allIssue(): Promise<number> {
    const startedAt = now();
    const each = this.fleet.servers.map((server) =>
      until(
        `${server.name} issues`,
        async () => {
          await server.api.id("strict", 1_000);
          return (await statusOf(server)).state === NodeState.SERVING;
        },
        { withinMs: 60_000 },
      ),
    );
    await Promise.all(each);
    return now() - startedAt;
  }

  /** What must be true at the end of anything. */
  async expectNoAlarm(): Promise<void> {
    expect(this.alarms).toEqual([]);
    expect(await this.allIssue()).toBeLessThan(BACK_MS);
    await this.end();
    const { given, lives } = this.crew;
    console.log(`${given.count} ids; refusals:`, Object.fromEntries(this.told));
    expect(this.alarms).toEqual([]);
    expect(given.repeats).toEqual([]);
    // All processes are those that were started.
    expect(lives).toHaveLength(SERVERS);
    expect(given.count).toBeGreaterThan(100);
    // It fails unless the store grants, of all tags.
    await this.fleet.cli("store", "status");
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#looking, this.crew.end()]);
  }

  #heard({ server, tag, askedAt, reason }: Call): void {
    this.told.set(reason, (this.told.get(reason) ?? 0) + 1);
    if (reason === "" || OUTAGES.has(reason)) return;
    if (reason === WENT_BACK && this.#mayRefuse(askedAt)) return;
    this.#alarm(`${server.name} refused ${tag}: ${reason}`);
  }

  /** Looks at what a server shows of itself, again and again. */
  async #look(server: FleetServer): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const askedAt = now();
      const { store, stateReason } = await statusOf(server);
      const isRefused =
        store?.state === StoreState.FENCED || stateReason.startsWith("the store went back");
      if (isRefused && !this.#mayRefuse(askedAt)) this.#alarm(`${server.name}: ${stateReason}`);
      await pause(200);
    }
  }

  #mayRefuse(askedAt: number): boolean {
    return this.#isPromoting || askedAt <= this.#promotedAt;
  }

  #alarm(what: string): void {
    if (this.alarms.length < 20) this.alarms.push(`${now()} ${what}`);
  }
}

function statusOf({ api }: FleetServer): Promise<GetNodeStatusResponse> {
  return api.send(api.nodes.getNodeStatus.bind(api.nodes), {}, STATUS_MS);
}

test(
  "synchronous standbys that are promoted are refused until servers have accepted them, and never after",
  { timeout: (PROMOTIONS * 40 + 120) * 1_000 },
  async () => {
    const pair = await TestPostgresPair.start("synchronous");
    onTestFinished(() => pair.close());
    const watch = await Watch.start(pair.url());
    const backMs: number[] = [];
    for (let round = 0; round < PROMOTIONS; round++) {
      await recorded(pair.primary);
      await pair.primary.stop((["kill", "fast", "immediate"] as const)[round % 3]!);
      backMs.push(await watch.promoting(() => pair.promote()));
      await pair.rejoin();
    }
    console.log(`issuing again after each promotion, ms: ${backMs.join(" ")}`);
    expect(Math.max(...backMs)).toBeLessThan(BACK_MS);
    await watch.expectNoAlarm();
  },
);

/** Each writes rows or pages anew, under locks that keep everybody else out. */
const REWRITES = [
  "VACUUM FULL",
  "VACUUM (FREEZE, ANALYZE)",
  "CLUSTER idmint.tag USING tag_pkey",
  "REINDEX SCHEMA idmint",
];

/** Terminates sessions of servers, one or all of them; answers how many. */
async function terminate(database: TestDatabase, limit: string): Promise<number> {
  const rows = await database.query(
    `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'idmint'
    ORDER BY random() LIMIT ${limit}) AS victims`,
  );
  return rows.length;
}

test(
  "tables that are rewritten and sessions that are terminated are no alarm",
  { timeout: DISTURBED_MS + 180_000 },
  async () => {
    const { seed, below } = seededRandom();
    console.log(`seed ${seed}`);
    const database = await (await ownPostgres()).createDatabase();
    const watch = await Watch.start(database.url);
    const end = performance.now() + DISTURBED_MS;
    const done = { rewrites: 0, terminated: 0 };
    // A slow machine takes longer over the same work, and is given the time for it.
    const goesOn = (): boolean =>
      performance.now() < end ||
      (Math.min(done.rewrites, done.terminated) < REWRITES.length &&
        performance.now() < end + 120_000);
    const rewriting = (async () => {
      for (; goesOn(); done.rewrites++) {
        await database.query(REWRITES[done.rewrites % REWRITES.length]!);
        await pause(below(isLong ? 4_000 : 1_000));
      }
    })();
    while (goesOn()) {
      done.terminated += await terminate(database, below(5) === 0 ? "ALL" : "1");
      await pause(50 + below(700));
    }
    await rewriting;
    console.log(done);
    expect(Math.min(done.rewrites, done.terminated)).toBeGreaterThanOrEqual(REWRITES.length);
    await watch.expectNoAlarm();
  },
);
