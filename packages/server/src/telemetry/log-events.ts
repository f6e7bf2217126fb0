import type { SnowflakeEvent } from "@idmint/core";
import type { Emit, ServerEvent } from "../service/events.ts";
import type { Logger } from "./logger.ts";
import { isOfOutage, type OutageEvent, Outages } from "./outages.ts";
import { plain } from "./plain.ts";

/** Refused connections are logged at most this often, so that a flood of them does not flood the log. */
const REFUSED_EVERY_MS = 10_000;

/** Turns events into lines of the log. No other place knows both. */
export function logEvents(logger: Logger, now: () => number): Emit {
  const outages = new Outages(logger, now);
  let refusedLoggedAt = -Infinity;
  let refusedSince = 0;
  return (event) => {
    if (isOfOutage(event)) {
      outages.hear(event);
      return;
    }
    if (event.type === "serving") outages.started();
    if (event.type !== "connection-refused") {
      logOne(logger, event);
      return;
    }
    refusedSince++;
    if (now() - refusedLoggedAt < REFUSED_EVERY_MS) return;
    const { peer, why } = event;
    logger.warn({ peer, why, refused: refusedSince }, "refused connections");
    refusedLoggedAt = now();
    refusedSince = 0;
  };
}

type Loggable = Exclude<ServerEvent, OutageEvent | { readonly type: "connection-refused" }>;
/** The events of these types. */
type Of<Type extends Loggable["type"]> = Extract<Loggable, { readonly type: Type }>;

/** Who writes the line of an event. */
const WRITERS: {
  readonly [Type in Loggable["type"]]: (logger: Logger, event: Of<Type>) => void;
} = {
  "load-started": logIds,
  wasted: logIds,
  "late-grant": logIds,
  "give-back-failed": logIds,
  serving: logProcess,
  "tags-known": logProcess,
  "process-serving": logProcess,
  "process-ended": logProcess,
  "processes-stopped": (logger) => logger.info("stopped all processes"),
  draining: logProcess,
  overloaded: (logger) => logger.warn("overloaded: refusing calls of those who make most of them"),
  "overload-over": (logger, event) => logger.info(plain(event), "not overloaded any more"),
  "operator-drain": logProcess,
  stopped: logProcess,
  "export-failed": (logger, event) => logger.warn(plain(event), "an export fails"),
  "export-back": (logger, event) => logger.info(plain(event), "the export works again"),
  audit: (logger, { event }) => logger.info(event, "audit"),
  "internal-error": logProcess,
  "store-warning": logStore,
  "folder-shared": (logger, event) =>
    logger.warn(
      plain(event),
      "a group may write in a folder of this server, and replace its files",
    ),
  "store-warning-over": logStore,
  "connections-cut": (logger, event) =>
    logger.warn(
      plain(event),
      "takes fewer connections than configured: there is too little memory",
    ),
  "ledger-behind": (logger, event) => logger.warn(plain(event), "the ledger is behind"),
  "tag-runs-out": (logger, event) => logger.warn(plain(event), "a tag runs out of ids"),
  fenced: logStore,
  unfenced: logStore,
  "access-file-refused": (logger, event) => logger.error(plain(event), "access.file is wrong"),
  "issuing-stopped": logStore,
  "issuing-resumed": logStore,
  "store-accepted": logStore,
  "own-accept-failed": logStore,
  "late-claim": logStore,
  "late-claim-failed": logStore,
  "promotion-accepted": logStore,
  "incarnation-changed": logStore,
  "cut-off": logPresence,
  "cut-off-over": logPresence,
  "node-forgotten": logPresence,
  "hold-for-too-long": logPresence,
  "ticket-database-lost": logExternal,
  "ticket-database-back": logExternal,
  "redis-seeded": logExternal,
  "redis-raised": logExternal,
  "redis-preload-failed": logExternal,
  "redis-marks-failed": logExternal,
  "redis-watch-failed": logExternal,
  "redis-unfit": logExternal,
  "redis-lost": logExternal,
  "redis-back": logExternal,
  "max-not-raised": logExternal,
  "worker-leased": logSnowflake,
  "worker-lost": logSnowflake,
  "name-shared": logSnowflake,
  "clock-back": logSnowflake,
  "clock-ahead": logSnowflake,
  "clock-refused": logClock,
  "period-in-doubt": logClock,
  "period-confirmed": logClock,
  "clock-recovered": logClock,
  "lease-resumed": logClock,
  "lease-file-ignored": logClock,
  "lease-file-failed": logClock,
  "pin-file-failed": logClock,
  "alarm-delivered": logAlarm,
  "alarm-failed": logAlarm,
  "alarm-dropped": logAlarm,
};

function logOne(logger: Logger, event: Loggable): void {
  // An event's writer is looked up by its type.
  (WRITERS[event.type] as (logger: Logger, event: Loggable) => void)(logger, event);
}

type IdEvent = Of<"load-started" | "wasted" | "late-grant" | "give-back-failed">;

function logIds(logger: Logger, event: IdEvent): void {
  switch (event.type) {
    case "load-started":
      logger.debug(plain(event), event.type);
      break;
    case "wasted":
    case "late-grant":
      logger.info(plain(event), "some granted ids will not be issued: they are a gap");
      break;
    case "give-back-failed":
      logger.warn(plain(event), "could not give unused ids back: they are a gap");
      break;
  }
}

type ProcessEvent = Of<
  | "serving"
  | "tags-known"
  | "process-serving"
  | "process-ended"
  | "draining"
  | "operator-drain"
  | "internal-error"
  | "stopped"
>;

const DRAIN_TEXTS = {
  unready: "an operator drained this server: it still answers, and sends its callers away",
  leaving: "an operator drained this server: it refuses calls until it is undrained",
  resting: "drained: what was unused went back to the store",
  serving: "an operator undrained this server: it takes calls again",
};

function logProcess(logger: Logger, event: ProcessEvent): void {
  switch (event.type) {
    case "serving":
      logger.info(plain(event), "serving");
      if (Object.values(event.v8Flags ?? {}).some((flag) => flag !== "active")) {
        logger.warn({ v8Flags: event.v8Flags }, "garbage collections may be slow");
      }
      break;
    case "tags-known":
    case "process-serving":
      logger.debug(plain(event), event.type);
      break;
    case "process-ended":
      // A process that got a signal of its own drained first, so its end is no fault.
      if (event.restartInMs === undefined || event.code === 0)
        logger.info(plain(event), "a process ended");
      else logger.error(plain(event), "a process ended by itself and will be replaced");
      break;
    case "draining":
      if (event.delayMs === 0) logger.info("stopping: finishing the calls in flight");
      else logger.info(plain(event), "stopping: sending callers away first; a signal ends that");
      break;
    case "operator-drain":
      logger.warn(plain(event), DRAIN_TEXTS[event.phase]);
      break;
    case "internal-error":
      logger.error(plain(event), "unexpected error");
      break;
    case "stopped":
      logger.info(plain(event), "stopped");
      break;
  }
}

type OfStore = Extract<
  Loggable,
  {
    readonly type:
      | "fenced"
      | "incarnation-changed"
      | "own-accept-failed"
      | "promotion-accepted"
      | "unfenced"
      | `late-claim${string}`
      | `issuing-${string}`
      | `store-${string}`;
  }
>;

/** Level and text of each; what is told of it besides stands in the record. */
const STORE_TEXTS: Readonly<
  Record<OfStore["type"], readonly [level: "error" | "fatal" | "info" | "warn", text: string]>
> = {
  "store-warning": ["warn", "an operator has to look at the store"],
  "store-warning-over": ["info", "the store is all right again"],
  fenced: ["fatal", "the store went back: nothing is issued until it is accepted"],
  unfenced: ["warn", "the store is accepted: issuing ids again"],
  "issuing-stopped": [
    "fatal",
    "an operator stopped issuing on all servers; it is resumed with: idmint resume-issuing --all",
  ],
  "issuing-resumed": ["warn", "an operator resumed issuing on all servers"],
  "store-accepted": ["fatal", "accepted a store that went back by itself, as epoch_gap says"],
  "own-accept-failed": [
    "error",
    "could not accept the store that went back, as epoch_gap says; it is tried again",
  ],
  "late-claim": [
    "fatal",
    "the store was accepted with too small a gap: raised a tag above ids granted before",
  ],
  "late-claim-failed": [
    "error",
    "could not raise a tag above ids granted before; it is tried again",
  ],
  "promotion-accepted": [
    "warn",
    "accepted a promoted standby, which has everything that was answered",
  ],
  "incarnation-changed": ["warn", "the store has a new history"],
};

function logStore(logger: Logger, event: OfStore): void {
  const [level, text] = STORE_TEXTS[event.type];
  logger[level](plain(event), text);
}

type ExternalEvent = Extract<
  Loggable,
  { readonly type: "max-not-raised" | `redis-${string}` | `ticket-${string}` }
>;

/** Logs events of Redis, of ticket databases and of other places where tags count besides the store. */
function logExternal(logger: Logger, event: ExternalEvent): void {
  switch (event.type) {
    case "ticket-database-lost":
      if (event.error.retryable) logger.error(plain(event), "a ticket database does not answer");
      else logger.fatal(plain(event), "a ticket database is not to be used");
      break;
    case "ticket-database-back":
      logger.info(plain(event), "a ticket database answers again");
      break;
    case "redis-seeded":
      logger.warn(plain(event), "Redis starts again above every id it may have issued");
      break;
    case "redis-raised":
      logger.debug(plain(event), event.type);
      break;
    case "redis-preload-failed":
      logger.warn(
        plain(event),
        "some tags in Redis are not prepared yet; their first call will prepare them",
      );
      break;
    case "redis-marks-failed":
      logger.warn(plain(event), "could not tell the other servers how far Redis has counted");
      break;
    case "redis-watch-failed":
      logger.warn(plain(event), "could not check how fast sequences in Redis are used");
      break;
    case "redis-unfit":
      logger.error(plain(event), "a Redis of redis.urls cannot be used for counting");
      break;
    case "redis-lost":
      logger.error(plain(event), "Redis does not answer; its tags issue nothing");
      break;
    case "redis-back":
      logger.info(plain(event), "Redis answers again");
      break;
    case "max-not-raised":
      logger.error(plain(event), "a sequence in Redis has no ids left until its maximum is raised");
      break;
  }
}

function logSnowflake(logger: Logger, event: SnowflakeEvent): void {
  switch (event.type) {
    case "worker-leased":
      logger.info(plain(event), "leased a worker id");
      break;
    case "worker-lost":
      logger.warn(
        plain(event),
        "this server has no worker id for the tag and refuses its ids until it has one",
      );
      break;
    case "name-shared":
      logger.warn(plain(event), "another process leases worker ids under the same instance name");
      break;
    case "clock-back":
      logger.error(plain(event), "the clock went back; the tag's clock_policy applies");
      break;
    case "clock-ahead":
      logger.error(plain(event), "the clock is far ahead of the registry's clock");
      break;
  }
}

type PresenceEvent = Extract<
  Loggable,
  { readonly type: "cut-off" | "cut-off-over" | "node-forgotten" | "hold-for-too-long" }
>;

function logPresence(logger: Logger, event: PresenceEvent): void {
  switch (event.type) {
    case "cut-off":
      logger.fatal(plain(event), "cut off from the store for node.max_offline; issuing nothing");
      break;
    case "cut-off-over":
      logger.info(plain(event), "the store was heard again; issuing again");
      break;
    case "node-forgotten":
      logger.info(plain(event), "removed the row of a server that has stopped issuing");
      break;
    case "hold-for-too-long":
      logger.warn(
        plain(event),
        "hold_for is longer than node.max_offline, so not all of a segment can be used in an outage",
      );
      break;
  }
}

type ClockEvent = Of<
  | "clock-refused"
  | "period-in-doubt"
  | "period-confirmed"
  | "clock-recovered"
  | "lease-resumed"
  | "lease-file-ignored"
  | "pin-file-failed"
  | "lease-file-failed"
>;

function logClock(logger: Logger, event: ClockEvent): void {
  switch (event.type) {
    case "clock-refused":
      logger.fatal(plain(event), "refusing snowflakes for this server's clock");
      break;
    case "clock-recovered":
      logger.info(plain(event), "this server trusts its clock again");
      break;
    case "period-in-doubt":
      logger.error(plain(event), "a sequence issues in a period that the clocks speak against");
      break;
    case "period-confirmed":
      logger.info(plain(event), "a sequence issues in the period of the clocks again");
      break;
    case "lease-resumed":
      logger.info(plain(event), "continues with the worker id from before the restart");
      break;
    case "lease-file-ignored":
      logger.warn(plain(event), "the leases in snowflake.cache_file are ignored");
      break;
    case "lease-file-failed":
      logger.error(plain(event), "snowflake.cache_file cannot be written");
      break;
    case "pin-file-failed":
      logger.warn(plain(event), "the file beside snowflake.cache_file cannot be written");
      break;
  }
}

function logAlarm(
  logger: Logger,
  event: Extract<Loggable, { readonly type: `alarm-${string}` }>,
): void {
  switch (event.type) {
    case "alarm-delivered":
      logger.info(plain(event), "delivered an alarm to the webhook");
      break;
    case "alarm-failed":
      logger.warn(plain(event), "the webhook refused an alarm; it will be sent again");
      break;
    case "alarm-dropped":
      logger.error(plain(event), "gave up on an alarm: nobody was told");
      break;
  }
}
