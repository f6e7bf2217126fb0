/**
 * Every metric of a server: what docs/metrics.md says of it, and what exporters are told. What it is read from stands in
 * read.ts, by its name.
 */
interface MetricRow {
  /** As UCUM writes it; in braces: what is counted. */
  readonly unit: string;
  /** `sum`: a counter, which only goes up. */
  readonly kind: "sum" | "gauge" | "histogram";
  /** Its attributes, each with what it says. Their values come out of closed lists, or out of the configuration. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly text: string;
}

export type MetricName =
  | "idmint.ids.issued"
  | "idmint.ids.returned"
  | "idmint.ids.wasted"
  | "idmint.segment.remaining"
  | "idmint.segment.remaining.time"
  | "idmint.waiters"
  | "idmint.epoch"
  | "idmint.worker.lease.remaining"
  | "idmint.worker.reservation.remaining"
  | "idmint.capacity.remaining.time"
  | "idmint.ledger.rows"
  | "idmint.ledger.dropped"
  | "idmint.tags"
  | "idmint.tags.fenced"
  | "idmint.load.duration"
  | "idmint.load.failures"
  | "rpc.server.call.duration"
  | "idmint.calls"
  | "idmint.refusals"
  | "idmint.quota.refusals"
  | "idmint.calls.waiting"
  | "idmint.calls.shed"
  | "idmint.overloaded"
  | "idmint.connections"
  | "idmint.ready"
  | "idmint.servers"
  | "idmint.process.up"
  | "idmint.store.up"
  | "idmint.store.fenced"
  | "idmint.store.offline.remaining"
  | "db.client.operation.duration"
  | "idmint.redis.up"
  | "idmint.ticket.database.up"
  | "idmint.clock.offset"
  | "idmint.events"
  | "nodejs.eventloop.delay.p50"
  | "nodejs.eventloop.delay.p99"
  | "nodejs.eventloop.delay.max"
  | "nodejs.eventloop.utilization"
  | "process.memory.usage"
  | "process.cpu.time"
  | "process.uptime";

/** The tags without series of their own. No tag can have this name. */
export const OTHER_TAGS = "_other";

/** The attribute of whatever is told of single tags. */
export const TAG: { readonly tag: string } = {
  tag: `one of the busiest tags, or \`${OTHER_TAGS}\``,
};
const ERROR = { "error.type": "the reason, where it failed" };

/** Every metric, in the order of docs/metrics.md. */
export const METRICS: Readonly<Record<MetricName, MetricRow>> = {
  "idmint.ids.issued": {
    unit: "{id}",
    kind: "sum",
    attributes: TAG,
    text: "Ids that were issued, or handed out in segments, those included that callers returned.",
  },
  "idmint.ids.returned": {
    unit: "{id}",
    kind: "sum",
    attributes: {},
    text: "Ids that SDKs gave back to this server unused.",
  },
  "idmint.ids.wasted": {
    unit: "{id}",
    kind: "sum",
    attributes: TAG,
    text: "Ids that became a gap: granted by the store, and never to be issued.",
  },
  "idmint.segment.remaining": {
    unit: "1",
    kind: "gauge",
    attributes: TAG,
    text: "Share of the segments in memory that is left; of the other tags, the lowest. Near 0 callers are about to wait for the store.",
  },
  "idmint.segment.remaining.time": {
    unit: "s",
    kind: "gauge",
    attributes: { tag: "one of the busiest tags" },
    text: "How long the ids in memory last at the present rate. Tags that nobody asks for ids have none.",
  },
  "idmint.waiters": {
    unit: "{call}",
    kind: "gauge",
    attributes: TAG,
    text: "Calls that wait for ids of a tag.",
  },
  "idmint.epoch": {
    unit: "{epoch}",
    kind: "gauge",
    attributes: { tag: "one of the busiest tags" },
    text: "The epoch that ids of a tag are issued under. It rises when an operator advances, pauses or resumes the tag, or accepts a store that went back.",
  },
  "idmint.worker.lease.remaining": {
    unit: "s",
    kind: "gauge",
    attributes: TAG,
    text: "How long the lease of a tag's worker id goes on by itself; of the other tags, the shortest. It is renewed every few seconds.",
  },
  "idmint.worker.reservation.remaining": {
    unit: "s",
    kind: "gauge",
    attributes: TAG,
    text: "How much time is reserved ahead of the clock for ids of a tag; of the other tags, the shortest. At 0 no ids are made.",
  },
  "idmint.capacity.remaining.time": {
    unit: "s",
    kind: "gauge",
    attributes: { ...TAG, limit: "what the ids of the tag reach, as GetTagCapacity names it" },
    text: "When a tag's ids reach a limit at the rate that was seen; of the other tags, the one that is first. Missing where it is not known, or not before the year 10000.",
  },
  "idmint.ledger.rows": {
    unit: "{row}",
    kind: "sum",
    attributes: {},
    text: "Rows that this server noted for the ledger.",
  },
  "idmint.ledger.dropped": {
    unit: "{row}",
    kind: "sum",
    attributes: {},
    text: "Rows of the ledger that there was no room for, because the store did not take them. Nobody knows who got their ids.",
  },
  "idmint.tags": {
    unit: "{tag}",
    kind: "gauge",
    attributes: {},
    text: "Tags that this server works with.",
  },
  "idmint.tags.fenced": {
    unit: "{tag}",
    kind: "gauge",
    attributes: {},
    text: "Tags for which the store went back, and which issue nothing until an operator accepts it.",
  },
  "idmint.load.duration": {
    unit: "s",
    kind: "histogram",
    attributes: {},
    text: "How long loads of segments took, from the store to memory.",
  },
  "idmint.load.failures": {
    unit: "{load}",
    kind: "sum",
    attributes: ERROR,
    text: "Loads that failed, and will be tried again.",
  },
  "rpc.server.call.duration": {
    unit: "s",
    kind: "histogram",
    attributes: {
      "rpc.system.name": "`grpc`",
      "rpc.method": "the method, with its service",
      "rpc.response.status_code": "the code of the answer",
      "error.type": "the same, where it is not `OK`",
    },
    text: "How long calls took from their arrival to their answer. Of a stream, all of it.",
  },
  "idmint.calls": {
    unit: "{call}",
    kind: "sum",
    attributes: {},
    text: "Calls that came, and requests of streams.",
  },
  "idmint.refusals": {
    unit: "{call}",
    kind: "sum",
    attributes: { reason: "the reason, as docs/errors.md has it" },
    text: "Calls, and requests of streams, that were refused.",
  },
  "idmint.quota.refusals": {
    unit: "{call}",
    kind: "sum",
    attributes: { quota: "the quota that the call was over" },
    text: "Calls that were refused for a quota.",
  },
  "idmint.calls.waiting": {
    unit: "{call}",
    kind: "gauge",
    attributes: {},
    text: "Calls for ids that wait for their answers, of all tags. `limits.calls` bounds them.",
  },
  "idmint.calls.shed": {
    unit: "{call}",
    kind: "sum",
    attributes: {},
    text: "Calls that were refused because more came than the server can answer, or because too many wait.",
  },
  "idmint.overloaded": {
    unit: "{server}",
    kind: "gauge",
    attributes: {},
    text: "1 while the server refuses calls for overload, and 0 otherwise.",
  },
  "idmint.connections": {
    unit: "{connection}",
    kind: "gauge",
    attributes: {},
    text: "Open connections of gRPC and HTTP. `limits.connections` bounds each of the two.",
  },
  "idmint.ready": {
    unit: "{server}",
    kind: "gauge",
    attributes: {},
    text: "1 while callers should be sent to this server, and 0 otherwise, as /readyz says.",
  },
  "idmint.servers": {
    unit: "{server}",
    kind: "gauge",
    attributes: {},
    text: "Servers on the store that this one heard of a moment ago, itself included.",
  },
  "idmint.process.up": {
    unit: "{process}",
    kind: "gauge",
    attributes: {},
    text: "1 for each process of the server that tells its metrics, and 0 for one that does not.",
  },
  "idmint.store.up": {
    unit: "{store}",
    kind: "gauge",
    attributes: {},
    text: "1 while the store answers polls, and 0 otherwise.",
  },
  "idmint.store.fenced": {
    unit: "{store}",
    kind: "gauge",
    attributes: {},
    text: "1 while the store is not the one that was accepted, so that nothing is issued, and 0 otherwise.",
  },
  "idmint.store.offline.remaining": {
    unit: "s",
    kind: "gauge",
    attributes: { database: "the database, where the store is several; empty otherwise" },
    text: "How long this server may still issue ids if it does not hear of the store again (`node.max_offline`).",
  },
  "db.client.operation.duration": {
    unit: "s",
    kind: "histogram",
    attributes: {
      "db.system.name": "what was asked",
      "db.operation.name": "the call of the store, or the script of Redis",
      ...ERROR,
    },
    text: "How long the store and Redis took to answer.",
  },
  "idmint.redis.up": {
    unit: "{redis}",
    kind: "gauge",
    attributes: { redis: "its name in `redis.urls`" },
    text: "1 while a Redis is connected, and 0 otherwise.",
  },
  "idmint.ticket.database.up": {
    unit: "{database}",
    kind: "gauge",
    attributes: { database: "its name in `ticket.urls`" },
    text: "1 while ids are taken from a ticket database, and 0 otherwise.",
  },
  "idmint.clock.offset": {
    unit: "s",
    kind: "gauge",
    attributes: { reference: "`store`, or `peers` for the mean of the other servers" },
    text: "How far this server's clock is ahead; below 0: behind. Peers are asked only when the server starts, and while the store does not confirm the clock.",
  },
  "idmint.events": {
    unit: "{event}",
    kind: "sum",
    attributes: {
      event: "its type, such as `fenced`, `cut-off`, `store-lost` or `alarm-delivered`",
    },
    text: "What happened in the server, as its log tells.",
  },
  "nodejs.eventloop.delay.p50": {
    unit: "s",
    kind: "gauge",
    attributes: {},
    text: "Delay of the event loop, the median since the last collection.",
  },
  "nodejs.eventloop.delay.p99": {
    unit: "s",
    kind: "gauge",
    attributes: {},
    text: "The same, the 99th percentile.",
  },
  "nodejs.eventloop.delay.max": {
    unit: "s",
    kind: "gauge",
    attributes: {},
    text: "The same, the longest.",
  },
  "nodejs.eventloop.utilization": {
    unit: "1",
    kind: "gauge",
    attributes: {},
    text: "Share of the time since the last collection in which the event loop worked.",
  },
  "process.memory.usage": {
    unit: "By",
    kind: "gauge",
    attributes: {},
    text: "Memory of the process (RSS).",
  },
  "process.cpu.time": {
    unit: "s",
    kind: "sum",
    attributes: { "cpu.mode": "`user` or `system`" },
    text: "Time of the processor that the process took.",
  },
  "process.uptime": {
    unit: "s",
    kind: "gauge",
    attributes: {},
    text: "How long the process runs.",
  },
};

export const METRIC_NAMES = Object.keys(METRICS) as readonly MetricName[];

/** A counter's value, a gauge's, or how often values lay between bounds. */
export type MetricValue =
  | number
  | {
      readonly bounds: readonly number[];
      readonly counts: readonly number[];
      readonly sum: number;
    };

export interface MetricPoint {
  readonly attributes: Readonly<Record<string, string>>;
  readonly value: MetricValue;
}

/** What all metrics are at a moment; plain data, which processes send to their parent. */
export type MetricSnapshot = Readonly<Partial<Record<MetricName, readonly MetricPoint[]>>>;
