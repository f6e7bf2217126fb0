// A short storm over every kind of tag that counts: servers are killed and frozen, Redis is emptied, and no id comes twice.
// Longer storms of each kind have files of their own.
import {
  PeriodUnit,
  RedisSnowflakeKind,
  SegmentKind,
  SequenceBackend,
  SequenceKind,
  SnowflakeKind,
  Tag,
  TicketKind,
} from "@idmint/proto";
import { expect, test } from "vitest";
import { faultsOf, readHistory } from "../../src/fleet/history.ts";
import type { Activity } from "../../src/fleet/load-config.ts";
import { judge } from "../../src/fleet/uniqueness.ts";
import { until } from "../../src/fleet/until.ts";
import { runCli } from "../../src/fleet/child.ts";
import { EXPECTED } from "../chaos.ts";
import { disturbServers } from "../disturb.ts";
import { ownPostgres, seededRandom, startFleet } from "../fleet-support.ts";
import { RedisStage } from "./sequence/redis-stage.ts";

const SECONDS = 8;

type Kind = NonNullable<Tag["kind"]>;

const sequence = (settings: Partial<SequenceKind> = {}): Kind => ({
  $case: "sequence",
  value: { ...SequenceKind.create(), ...settings },
});

/** By tag. */
const kinds: Readonly<Record<string, Kind>> = {
  segment: { $case: "segment", value: { ...SegmentKind.create(), min: 100, max: 100 } },
  sequence: sequence(),
  daily: sequence({ period: PeriodUnit.DAY, timeZone: "Asia/Shanghai" }),
  "redis-sequence": sequence({ backend: SequenceBackend.REDIS }),
  "redis-snowflake": { $case: "redisSnowflake", value: RedisSnowflakeKind.create() },
  ticket: { $case: "ticket", value: TicketKind.create() },
  snowflake: { $case: "snowflake", value: SnowflakeKind.create() },
};
/** Refusals that callers must expect meanwhile. */
const KNOWN = new Set([
  ...EXPECTED,
  // The maximum is raised by the elected server, which may be dead.
  "UNAVAILABLE MAX_NOT_RAISED",
  // An emptied Redis starts above the times that were reserved in it.
  "UNAVAILABLE CLOCK_MOVED_BACKWARDS",
]);
/** Tags whose ids rise in real time over the whole fleet. */
const STRICT: ReadonlySet<string> = new Set(["sequence", "daily", "redis-sequence"]);

const unordered: readonly Activity[] = [
  { kind: "id", perSecond: 40, parallel: 4 },
  { kind: "segments", perSecond: 10, count: 7, parallel: 2 },
];
const strict: readonly Activity[] = [
  { kind: "id", perSecond: 20 },
  { kind: "id", perSecond: 20, parallel: 4 },
];

test(
  "tags of every kind issue no id twice and strict ones none out of order, whatever is killed, frozen or emptied",
  { timeout: 600_000 },
  async () => {
    const postgres = await ownPostgres();
    const redis = await RedisStage.start();
    const [store, one, two] = [
      await postgres.createDatabase(),
      await postgres.createDatabase(),
      await postgres.createDatabase(),
    ];
    const env = {
      IDMINT_REDIS_URLS: redis.url,
      IDMINT_TICKET_URLS: `one=${one.url},two=${two.url}`,
    };
    expect(await runCli(["ticket", "migrate"], env)).toMatchObject({ code: 0 });
    const fleet = await startFleet({ servers: 3, storeUrl: store.url, env });
    const { api } = fleet.first;
    for (const [name, kind] of Object.entries(kinds)) {
      const tag = { ...Tag.create(), name, kind };
      await api.send(api.tags.createTag.bind(api.tags), { tag, validateOnly: false });
    }
    const callers = await Promise.all(
      Object.keys(kinds).map(async (tag) => {
        const isStrict = STRICT.has(tag);
        const activities = isStrict ? strict : unordered;
        const load = { tag, activities, deadlineMs: 1_000 };
        return { tag, child: await fleet.startCallers(isStrict ? "history" : "grpc", load) };
      }),
    );
    await Promise.all(callers.map(({ child }) => child.waitForOutput("first answer")));
    const { seed, below } = seededRandom();
    let isEmptied = false;
    const steps = await disturbServers(fleet, {
      forMs: SECONDS * 1_000,
      frozenMs: [300, 1_500],
      below,
      between: async () => {
        if (isEmptied) return undefined;
        isEmptied = true;
        await redis.empty();
        return "FLUSHALL";
      },
    });
    for (const tag of Object.keys(kinds)) {
      const issues = (): Promise<unknown> => Promise.all(fleet.servers.map((it) => it.api.id(tag)));
      await until(`every server issues ${tag}`, issues, { withinMs: 30_000 });
    }
    const answers: Record<string, number> = {};
    const unexpected: string[] = [];
    for (const { tag, child } of callers) {
      const { answered, errors } = await fleet.stopCallers(child);
      answers[tag] = answered;
      unexpected.push(
        ...Object.keys(errors)
          .filter((name) => !KNOWN.has(name))
          .map((name) => `${tag}: ${name}`),
      );
      const files = [fleet.recordsOf(child)];
      if (STRICT.has(tag)) {
        expect(faultsOf(readHistory(files)), tag).toEqual({ repeats: [], inversions: [] });
      } else {
        expect(judge(files).repeats, tag).toEqual([]);
      }
    }
    console.log(`seed ${seed}: ${steps.join("; ")}`, answers);
    expect(unexpected).toEqual([]);
  },
);
