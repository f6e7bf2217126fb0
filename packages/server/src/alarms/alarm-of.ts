import type { PeriodDoubt } from "@idmint/core";
import type { ServerEvent } from "../service/events.ts";
import type { AlarmContent } from "./alarm.ts";

/** What an event means to the alarms. */
export type AlarmChange =
  /** To be told at once. */
  | {
      readonly type: "alarm";
      readonly content: AlarmContent;
      /** Whether it goes on until something is over with its key. */
      readonly isLasting: boolean;
      /** The key of what is over by it. */
      readonly ends?: string;
    }
  /** To be told if it is not over in time. */
  | { readonly type: "trouble"; readonly content: AlarmContent }
  /** The trouble with this key, or the lasting alarm, ended. */
  | { readonly type: "over"; readonly key: string };

type AlarmChanges = {
  readonly [Type in ServerEvent["type"]]?: (
    event: Extract<ServerEvent, { readonly type: Type }>,
    server: string,
  ) => AlarmChange | undefined;
};

/** Which events are alarms, or end one. No other place says so. */
const CHANGES: AlarmChanges = {
  fenced: ({ tag, detail }) =>
    lasting({
      alarm: "STORE_WENT_BACK",
      // A store that went back is one incident, however many tags it shows in.
      key: "STORE_WENT_BACK",
      severity: "critical",
      summary: "The store went back: nothing is issued until it is accepted.",
      details: { detail, ...(tag === undefined ? {} : { tag }) },
    }),
  // One incident, however many servers hear of it. A server that starts tells it again.
  unfenced: () => over("STORE_WENT_BACK"),
  "issuing-stopped": ({ sinceMs }) =>
    lasting({
      alarm: "ISSUING_STOPPED",
      key: "ISSUING_STOPPED",
      severity: "critical",
      summary: "An operator stopped issuing on all servers: every call for ids is refused.",
      details: { since: new Date(sinceMs).toISOString() },
    }),
  "issuing-resumed": () => ({
    ...alarm({
      alarm: "ISSUING_RESUMED",
      key: "ISSUING_RESUMED",
      severity: "warning",
      summary: "An operator resumed issuing on all servers.",
      details: {},
    }),
    ends: "ISSUING_STOPPED",
  }),
  "store-accepted": ({ gap, tags }) =>
    alarm({
      alarm: "STORE_ACCEPTED",
      key: "STORE_ACCEPTED",
      severity: "critical",
      summary: "A server accepted a store that went back, because epoch_gap is set.",
      details: { gap: String(gap), tags: String(tags) },
    }),
  "late-claim": ({ tag, missing }) =>
    alarm({
      alarm: "ACCEPTED_TOO_LOW",
      key: `ACCEPTED_TOO_LOW:${tag}`,
      severity: "critical",
      summary:
        "The store was accepted with too small a gap. This server raised the tag above the ids that it was granted before; ids that other servers were granted may have been given twice.",
      details: { tag, missing: String(missing) },
    }),
  "promotion-accepted": () =>
    alarm({
      alarm: "STORE_FAILED_OVER",
      key: "STORE_FAILED_OVER",
      severity: "warning",
      summary:
        "A promoted standby is the store now, and has everything. Give it a standby in turn.",
      details: {},
    }),
  "store-lost": ({ error }) =>
    trouble({
      alarm: "STORE_LOST",
      key: "STORE_LOST",
      severity: "critical",
      summary: "The store does not answer; only what is in memory is served.",
      details: { error: error.message },
    }),
  "store-back": () => over("STORE_LOST"),
  "store-warning": ({ detail }) =>
    alarm({
      alarm: "STORE_WARNING",
      // All servers on a store see the same.
      key: "STORE_WARNING",
      severity: "warning",
      summary: "The store works, and an operator has to look at it.",
      details: { detail },
    }),
  "tag-runs-out": ({ tag, days, limit, left, runsOutAtMs, idsPerSecond, watchedMs }) =>
    alarm({
      alarm: "TAG_RUNS_OUT",
      key: `TAG_RUNS_OUT:${tag}:${days}`,
      severity: days > 7 ? "warning" : "critical",
      summary: `A tag has no ids left in less than ${days} days; make another tag, and let its callers use that.`,
      details: {
        tag,
        limit,
        runsOut: new Date(runsOutAtMs).toISOString(),
        ...(left === undefined ? {} : { left: String(left) }),
        ...(idsPerSecond === undefined ? {} : { idsPerSecond: idsPerSecond.toPrecision(3) }),
        ...(idsPerSecond === undefined ? {} : { watchedHours: (watchedMs / 3_600_000).toFixed(1) }),
      },
    }),
  "cut-off": ({ databases, maxOfflineMs }, server) =>
    trouble({
      alarm: "CUT_OFF",
      key: `CUT_OFF:${server}`,
      severity: "critical",
      summary: "A server was cut off from the store for node.max_offline; it issues nothing.",
      details: { databases: databases.join(","), maxOfflineMs: String(maxOfflineMs) },
    }),
  overloaded: (_event, server) =>
    trouble({
      alarm: "OVERLOADED",
      key: `OVERLOADED:${server}`,
      severity: "warning",
      summary: "A server has more calls than it can answer in time; it refuses some.",
      details: {},
    }),
  "overload-over": (_event, server) => over(`OVERLOADED:${server}`),
  "cut-off-over": (_event, server) => over(`CUT_OFF:${server}`),
  "ticket-database-lost": ({ database, error }) => {
    const details = { database, error: error.message };
    if (error.retryable) {
      return trouble({
        alarm: "TICKET_DATABASE_LOST",
        key: `TICKET_DATABASE_LOST:${database}`,
        severity: "warning",
        summary: "A ticket database does not answer; the others issue ids.",
        details,
      });
    }
    return alarm({
      alarm: "TICKET_DATABASE_REFUSED",
      key: `TICKET_DATABASE_REFUSED:${database}`,
      severity: "critical",
      summary: "A ticket database must not be used; the others issue ids.",
      details,
    });
  },
  "ticket-database-back": ({ database }) => over(`TICKET_DATABASE_LOST:${database}`),
  "redis-lost": ({ redisServer, why }) =>
    trouble({
      alarm: "REDIS_LOST",
      key: `REDIS_LOST:${redisServer}`,
      severity: "critical",
      summary: "Redis does not answer; the tags that count in it issue nothing.",
      details: { redisServer, ...(why === "" ? {} : { error: why }) },
    }),
  "redis-back": ({ redisServer }) => over(`REDIS_LOST:${redisServer}`),
  "redis-unfit": ({ redisServer, why }) =>
    alarm({
      alarm: "REDIS_UNFIT",
      key: `REDIS_UNFIT:${redisServer}`,
      severity: "warning",
      summary: "A Redis is not fit for counting; change its configuration or redis.urls.",
      details: { redisServer, why },
    }),
  "redis-seeded": ({ redisServer, tag, why, from, isLoss }) => {
    if (!isLoss) return undefined;
    return alarm({
      alarm: "REDIS_RESEEDED",
      // A Redis that lost its data is one incident, however many tags count in it.
      key: `REDIS_RESEEDED:${redisServer}`,
      severity: "warning",
      summary: "Redis restarted or lost its counts; it was given a new start above them.",
      details: { redisServer, tag, why, from: String(from) },
    });
  },
  "max-not-raised": ({ redisServer, tag, max, error }) =>
    alarm({
      alarm: "MAX_NOT_RAISED",
      key: `MAX_NOT_RAISED:${tag}`,
      severity: "critical",
      summary: "A sequence in Redis is used up until its maximum is raised; its calls are refused.",
      details: {
        redisServer,
        tag,
        max: String(max),
        ...(error === undefined ? {} : { error: error.message }),
      },
    }),
  "clock-refused": ({ tag, why, driftMs, detail }, server) => {
    const content: AlarmContent = {
      alarm: "CLOCK_REFUSED",
      // A clock is one incident, however many tags it shows in. The clock of another server is another incident.
      key: `CLOCK_REFUSED:${server}`,
      severity: "critical",
      summary:
        "A server's clock is wrong; the server makes no snowflakes and sends callers to other servers.",
      details: { why, driftMs: String(driftMs), detail, ...(tag === undefined ? {} : { tag }) },
    };
    // A suspended machine is ahead of all that it knows until it has asked again.
    if (why === "ahead") return trouble(content);
    // What ends is only told of the server's clock as a whole.
    return tag === undefined ? lasting(content) : alarm(content);
  },
  "clock-recovered": ({ tag }, server) =>
    tag === undefined ? over(`CLOCK_REFUSED:${server}`) : undefined,
  "clock-back": ({ tag, driftMs, isRefused }, server) => {
    // A clock that is refused has an alarm of its own.
    if (isRefused) return undefined;
    return alarm({
      alarm: "CLOCK_WENT_BACK",
      key: `CLOCK_WENT_BACK:${server}`,
      severity: "warning",
      summary: "A server's clock went back; its snowflakes continue as clock_policy says.",
      details: { tag, driftMs: String(-Math.ceil(driftMs)) },
    });
  },
  "clock-ahead": ({ tag, aheadMs }, server) =>
    alarm({
      alarm: "CLOCK_AHEAD",
      key: `CLOCK_AHEAD:${server}`,
      severity: "critical",
      summary:
        "A server's clock is far ahead of the registry's, so the registry reserves no time for its ids.",
      details: { tag, driftMs: String(Math.ceil(aheadMs)) },
    }),
  "name-shared": ({ tag, instance, workerId }, server) =>
    alarm({
      alarm: "INSTANCE_SHARED",
      key: `INSTANCE_SHARED:${server}`,
      severity: "warning",
      summary:
        "Two processes lease worker ids under one name and take them from each other; no id comes twice.",
      details: { tag, instance, workerId: String(workerId) },
    }),
  "period-in-doubt": ({ tag, start, why }) =>
    alarm({
      alarm: "PERIOD_IN_DOUBT",
      key: `PERIOD_IN_DOUBT:${tag}`,
      severity: "warning",
      summary: PERIODS_IN_DOUBT[why],
      details: { tag, period: start, why },
    }),
  "lease-file-failed": ({ error }, server) =>
    alarm({
      alarm: "LEASE_FILE_FAILED",
      key: `LEASE_FILE_FAILED:${server}`,
      severity: "critical",
      summary: "A server cannot write snowflake.cache_file; its snowflakes end within seconds.",
      details: { error: error.message },
    }),
};

const PERIODS_IN_DOUBT: Readonly<Record<PeriodDoubt, string>> = {
  AHEAD:
    "A sequence issues in a period that is ahead of the clock: see idmint tag return-to-period.",
  HELD_BACK:
    "The store's clock is in a later period than this server's: a sequence stays in its present one until both agree.",
};

/** What an event of this server means to the alarms; undefined when it means nothing. */
export function alarmOf(event: ServerEvent, server: string): AlarmChange | undefined {
  // The table holds each function under the type of the events that it takes.
  const changeOf = CHANGES[event.type] as
    | ((event: ServerEvent, server: string) => AlarmChange | undefined)
    | undefined;
  return changeOf?.(event, server);
}

function alarm(content: AlarmContent): AlarmChange {
  return { type: "alarm", content, isLasting: false };
}

function lasting(content: AlarmContent): AlarmChange {
  return { type: "alarm", content, isLasting: true };
}

function trouble(content: AlarmContent): AlarmChange {
  return { type: "trouble", content };
}

function over(key: string): AlarmChange {
  return { type: "over", key };
}
