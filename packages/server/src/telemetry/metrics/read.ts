import type { Clock } from "@idmint/core";
import { type CallTimes, codeName } from "../../service/call-times.ts";
import type { Counters } from "../../service/counters.ts";
import type { Histogram } from "../../service/histogram.ts";
import type { TicketHealth } from "../../service/node.ts";
import type { EarlierPresence } from "../../service/presence.ts";
import type { Operations } from "../operations.ts";
import type { EventCounts } from "./event-counts.ts";
import type { LoopReading } from "./event-loop.ts";
import type { MetricName, MetricPoint, MetricSnapshot, MetricValue } from "./table.ts";
import type { TagMetrics } from "./tags.ts";

/** Where the numbers are. */
export interface MetricSources {
  readonly counters: Readonly<Counters>;
  readonly callTimes: CallTimes;
  readonly operations: Operations;
  readonly events: EventCounts;
  readonly directory: { readonly size: number; readonly fencedTags: number };
  readonly node: {
    readonly ready: boolean;
    status(): { readonly ticketDatabases: readonly TicketHealth[] };
  };
  readonly nodes: { readonly live: number };
  readonly poll: { readonly reachable: boolean; readonly fenced: string };
  readonly presence: { readonly until: EarlierPresence };
  readonly clocks: {
    readonly watch: {
      readonly offsets: { readonly store: number | undefined; readonly peers: number | undefined };
    };
  };
  readonly admission: { readonly waitingCalls: number; readonly isOverloaded: boolean };
  readonly redisServers: readonly { readonly name: string; readonly reachable: boolean }[];
  readonly clock: Clock;
}

/** What is read once for several metrics. */
interface Readings {
  readonly tags: Awaited<ReturnType<TagMetrics["collect"]>>;
  readonly loop: LoopReading;
}

type Read = (sources: MetricSources, readings: Readings) => readonly MetricPoint[];

/** Where each metric is read. The compiler names the one that is missing. */
const READERS: { readonly [Name in MetricName]: Read } = {
  "idmint.ids.issued": ofTags("idmint.ids.issued"),
  "idmint.ids.returned": ({ counters }) => one(counters.returnedIds),
  "idmint.ids.wasted": ofTags("idmint.ids.wasted"),
  "idmint.segment.remaining": ofTags("idmint.segment.remaining"),
  "idmint.segment.remaining.time": ofTags("idmint.segment.remaining.time"),
  "idmint.waiters": ofTags("idmint.waiters"),
  "idmint.epoch": ofTags("idmint.epoch"),
  "idmint.worker.lease.remaining": ofTags("idmint.worker.lease.remaining"),
  "idmint.worker.reservation.remaining": ofTags("idmint.worker.reservation.remaining"),
  "idmint.capacity.remaining.time": ofTags("idmint.capacity.remaining.time"),
  "idmint.ledger.rows": ({ counters }) => one(counters.ledgerRows),
  "idmint.ledger.dropped": ({ counters }) => one(counters.ledgerDropped),
  "idmint.tags": ({ directory }) => one(directory.size),
  "idmint.tags.fenced": ({ directory }) => one(directory.fencedTags),
  "idmint.load.duration": ({ events }) => one(valueOf(events.loadTimes)),
  "idmint.load.failures": ({ events }) => counted("error.type", events.loadFailures),
  "rpc.server.call.duration": ({ callTimes }) => [...callPoints(callTimes)],
  "idmint.calls": ({ counters }) => one(counters.calls),
  "idmint.refusals": ({ counters }) => counted("reason", counters.refusals),
  "idmint.quota.refusals": ({ counters }) => counted("quota", counters.quotaRefusals),
  "idmint.calls.waiting": ({ admission }) => one(admission.waitingCalls),
  "idmint.calls.shed": ({ counters }) => one(counters.shedCalls),
  "idmint.overloaded": ({ admission }) => one(Number(admission.isOverloaded)),
  "idmint.connections": ({ counters }) => one(counters.connections),
  "idmint.ready": ({ node }) => one(Number(node.ready)),
  "idmint.servers": ({ nodes }) => one(nodes.live),
  "idmint.process.up": () => one(1),
  "idmint.store.up": ({ poll }) => one(Number(poll.reachable)),
  "idmint.store.fenced": ({ poll }) => one(Number(poll.fenced !== "")),
  "idmint.store.offline.remaining": ({ presence, clock }) =>
    presence.until.parts
      .filter(([, until]) => Number.isFinite(until))
      .map(([database, until]) => ({
        attributes: { database },
        value: Math.max(0, until - clock.now()) / 1_000,
      })),
  "db.client.operation.duration": ({ operations }) => [...operationPoints(operations)],
  "idmint.redis.up": ({ redisServers }) =>
    redisServers.map(({ name: redis, reachable }) => ({
      attributes: { redis },
      value: Number(reachable),
    })),
  "idmint.ticket.database.up": ({ node }) =>
    node.status().ticketDatabases.map(({ name: database, error }) => ({
      attributes: { database },
      value: Number(error === undefined),
    })),
  "idmint.clock.offset": ({ clocks }) => {
    const { store, peers } = clocks.watch.offsets;
    const known = Object.entries({ store, peers }).filter(([, ms]) => ms !== undefined);
    return known.map(([reference, ms = 0]) => ({ attributes: { reference }, value: ms / 1_000 }));
  },
  "idmint.events": ({ events }) => counted("event", events.byType),
  "nodejs.eventloop.delay.p50": (_, { loop }) => one(loop.p50),
  "nodejs.eventloop.delay.p99": (_, { loop }) => one(loop.p99),
  "nodejs.eventloop.delay.max": (_, { loop }) => one(loop.max),
  "nodejs.eventloop.utilization": (_, { loop }) => one(loop.utilization),
  "process.memory.usage": () => one(process.memoryUsage.rss()),
  "process.cpu.time": () => {
    const { user, system } = process.cpuUsage();
    return Object.entries({ user, system }).map(([mode, us]) => ({
      attributes: { "cpu.mode": mode },
      value: us / 1e6,
    }));
  },
  "process.uptime": () => one(process.uptime()),
};

export function readMetrics(sources: MetricSources, readings: Readings): MetricSnapshot {
  const read = Object.entries(READERS).map(([name, reader]) => [name, reader(sources, readings)]);
  return Object.fromEntries(read) as MetricSnapshot;
}

function ofTags(name: keyof Readings["tags"]): Read {
  return (_, { tags }) => tags[name];
}

function one(value: MetricValue): readonly MetricPoint[] {
  return [{ attributes: {}, value }];
}

function counted(attribute: string, counts: ReadonlyMap<string, number>): readonly MetricPoint[] {
  return [...counts].map(([key, value]) => ({ attributes: { [attribute]: key }, value }));
}

function valueOf({ bounds, counts, sum }: Histogram): MetricValue {
  return { bounds, counts: [...counts], sum };
}

function* callPoints(callTimes: CallTimes): Iterable<MetricPoint> {
  for (const [path, { byCode }] of callTimes.entries()) {
    for (const [code, times] of byCode.entries()) {
      if (times === undefined) continue;
      const name = codeName(code);
      const attributes = {
        "rpc.system.name": "grpc",
        "rpc.method": path.slice(1),
        "rpc.response.status_code": name,
        ...(name === "OK" ? {} : { "error.type": name }),
      };
      yield { attributes, value: valueOf(times) };
    }
  }
}

function* operationPoints(operations: Operations): Iterable<MetricPoint> {
  for (const { system, operation, error, times } of operations.all()) {
    const attributes = {
      "db.system.name": system,
      "db.operation.name": operation,
      ...(error === "" ? {} : { "error.type": error }),
    };
    yield { attributes, value: valueOf(times) };
  }
}
