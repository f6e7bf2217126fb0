import {
  CreateTagRequest,
  type DeepPartial,
  LeaseWorkerRequest,
  ListWorkersRequest,
  PauseTagRequest,
  ReleaseWorkerLeaseRequest,
  RenewWorkerLeaseRequest,
  type SnowflakeKind,
  TagServiceService,
  WorkerServiceService,
} from "@idmint/proto";
import { CODE_OF_REASON, type Reason } from "@idmint/core";
import { beforeAll, expect, test } from "vitest";
import { startServer } from "../../src/main/app.ts";
import { loadConfig } from "../../src/config/load.ts";
import { serverEnv, MemoryStore } from "@idmint/testkit";
import { createSnowflake, DEFAULT_BITS } from "../snowflake-support.ts";
import { call, clientsOf, createTag, refusalOf } from "../support.ts";

let address: string;

beforeAll(async () => {
  const defaults = {
    "grpc.address": "127.0.0.1:0",
    "http.address": "127.0.0.1:0",
    "log.level": "silent",
  };
  const server = await startServer(loadConfig({ env: serverEnv(), defaults }), {
    store: new MemoryStore(),
  });
  address = server.grpcAddress;
  return () => server.close();
});

type Clients = ReturnType<typeof clientsOf>;
type Send = (clients: Clients) => Promise<unknown>;

const MAX = 2n ** 63n - 1n;
const LONG = "a".repeat(129);

const lease =
  (message: DeepPartial<LeaseWorkerRequest>): Send =>
  ({ workers }) =>
    call(workers, WorkerServiceService.leaseWorker, LeaseWorkerRequest.fromPartial(message));
const renew =
  (message: DeepPartial<RenewWorkerLeaseRequest>): Send =>
  ({ workers }) => {
    const request = RenewWorkerLeaseRequest.fromPartial({ tag: "t", token: 1n, ...message });
    return call(workers, WorkerServiceService.renewWorkerLease, request);
  };
const release =
  (message: DeepPartial<ReleaseWorkerLeaseRequest>): Send =>
  ({ workers }) => {
    const request = ReleaseWorkerLeaseRequest.fromPartial(message);
    return call(workers, WorkerServiceService.releaseWorkerLease, request);
  };
const list =
  (message: DeepPartial<ListWorkersRequest>): Send =>
  ({ workers }) =>
    call(workers, WorkerServiceService.listWorkers, ListWorkersRequest.fromPartial(message));
const create =
  (value: DeepPartial<SnowflakeKind>, more: { ceiling?: bigint; order?: 2 } = {}): Send =>
  ({ tags }) => {
    const kind = { $case: "snowflake" as const, value };
    const request = CreateTagRequest.fromPartial({ tag: { name: "new", kind, ...more } });
    return call(tags, TagServiceService.createTag, request);
  };
const layout = (bits: DeepPartial<NonNullable<SnowflakeKind["layout"]>>, more: object = {}): Send =>
  create({ layout: { ...DEFAULT_BITS, ...bits }, ...more });

const bad: readonly (readonly [what: string, send: Send, ...fields: string[]])[] = [
  ["LeaseWorker, nothing set", lease({}), "tag", "instance"],
  ["LeaseWorker, bad tag", lease({ tag: "a b", instance: "x" }), "tag"],
  ["LeaseWorker, long instance", lease({ tag: "t", instance: LONG }), "instance"],
  ["LeaseWorker, instance with a space", lease({ tag: "t", instance: "a b" }), "instance"],
  [
    "LeaseWorker, no such data center",
    lease({ tag: "t", instance: "x", dataCenter: 1 }),
    "data_center",
  ],
  [
    "LeaseWorker, negative data center",
    lease({ tag: "t", instance: "x", dataCenter: -1 }),
    "data_center",
  ],
  [
    "LeaseWorker, reserving too little",
    lease({ tag: "t", instance: "x", reserveAhead: { seconds: 0n, nanos: 999_000_000 } }),
    "reserve_ahead",
  ],
  [
    "LeaseWorker, reserving too much",
    lease({ tag: "t", instance: "x", reserveAhead: { seconds: MAX } }),
    "reserve_ahead",
  ],
  [
    "LeaseWorker, reserving half a millisecond",
    lease({ tag: "t", instance: "x", reserveAhead: { seconds: 3n, nanos: 500_000 } }),
    "reserve_ahead",
  ],
  ["RenewWorkerLease, nothing set", renew({ tag: "", token: 0n }), "tag", "token"],
  ["RenewWorkerLease, negative worker id", renew({ workerId: -1 }), "worker_id"],
  ["RenewWorkerLease, negative data center", renew({ dataCenter: -1 }), "data_center"],
  ["RenewWorkerLease, negative extension", renew({ extension: -1 }), "extension"],
  ["RenewWorkerLease, negative token", renew({ token: -5n }), "token"],
  ["RenewWorkerLease, negative time", renew({ reserveUntilMs: -1n }), "reserve_until_ms"],
  ["RenewWorkerLease, a time that never comes", renew({ reserveUntilMs: MAX }), "reserve_until_ms"],
  [
    "RenewWorkerLease, reserving too much",
    renew({ reserveAhead: { seconds: 61n } }),
    "reserve_ahead",
  ],
  ["ReleaseWorkerLease, nothing set", release({}), "tag", "token"],
  ["ListWorkers, nothing set", list({}), "tag"],
  ["ListWorkers, no such worker id", list({ tag: "t", workerId: 2 ** 22 }), "worker_id"],
  ["ListWorkers, negative worker id", list({ tag: "t", workerId: -1 }), "worker_id"],
  ["ListWorkers, negative page", list({ tag: "t", pageSize: -1 }), "page_size"],
  ["ListWorkers, made-up token", list({ tag: "t", pageToken: "abc" }), "page_token"],
  ["CreateTag, no bits", create({ layout: {} }), "time_bits", "sequence_bits"],
  ["CreateTag, 64 bits", layout({ workerBits: 11 }), "layout"],
  ["CreateTag, too many worker bits", layout({ workerBits: 23 }), "worker_bits"],
  [
    "CreateTag, negative bits",
    layout({ extensionBits: -1, dataCenterBits: -1 }),
    "data_center_bits",
    "extension_bits",
  ],
  [
    "CreateTag, an origin to come",
    layout({ timeOrigin: new Date(Date.now() + 60_000) }),
    "time_origin",
  ],
  ["CreateTag, a short life", layout({ timeBits: 32 }), "time_bits"],
  [
    "CreateTag, a life that is over",
    layout({ timeBits: 20, timeOrigin: new Date(0) }, { allowShortLife: true }),
    "time_bits",
  ],
  ["CreateTag, half a millisecond", layout({ timeUnit: { nanos: 500_000 } }), "time_unit"],
  ["CreateTag, two seconds", layout({ timeUnit: { seconds: 2n } }), "time_unit"],
  ["CreateTag, no such data center", create({ dataCenter: 1 }), "tag.snowflake.data_center"],
  ["CreateTag, extension without bits", create({ clockPolicy: 2 }), "tag.snowflake.clock_policy"],
  ["CreateTag, unknown policy", create({ clockPolicy: 9 as 1 }), "tag.snowflake.clock_policy"],
  ["CreateTag, unknown registry", create({ registry: 9 as 1 }), "tag.snowflake.registry"],
  ["CreateTag, long wait", create({ clockWait: { seconds: 2n } }), "tag.snowflake.clock_wait"],
  ["CreateTag, a ceiling", create({}, { ceiling: 5n }), "tag.ceiling"],
  ["CreateTag, an order per client", create({}, { order: 2 }), "tag.order"],
  [
    "CreateTag, output-only fields",
    create({ endTime: new Date(), idsPerSecond: 1n, redisServer: "a" }),
    "tag.snowflake.end_time",
    "tag.snowflake.ids_per_second",
    "tag.snowflake.redis_server",
  ],
];

const refused: readonly (readonly [what: string, send: Send, code: string, reason: string])[] = [
  [
    "LeaseWorker, unknown tag",
    lease({ tag: "ghost", instance: "x" }),
    "NOT_FOUND",
    "TAG_NOT_FOUND",
  ],
  [
    "LeaseWorker, wrong kind",
    lease({ tag: "orders", instance: "x" }),
    "FAILED_PRECONDITION",
    "WRONG_KIND",
  ],
  [
    "LeaseWorker, paused",
    lease({ tag: "paused", instance: "x" }),
    "FAILED_PRECONDITION",
    "TAG_PAUSED",
  ],
  [
    "CreateTag, registry without Redis",
    create({ registry: 2 }),
    "FAILED_PRECONDITION",
    "NOT_CONFIGURED",
  ],
  ["ListWorkers, unknown tag", list({ tag: "ghost" }), "NOT_FOUND", "TAG_NOT_FOUND"],
  ["ListWorkers, wrong kind", list({ tag: "orders" }), "FAILED_PRECONDITION", "WRONG_KIND"],
  ["RenewWorkerLease, never leased", renew({ workerId: 9 }), "ABORTED", "WORKER_LEASE_LOST"],
  ["RenewWorkerLease, wrong kind", renew({ tag: "orders" }), "FAILED_PRECONDITION", "WRONG_KIND"],
  [
    "ReleaseWorkerLease, never leased",
    release({ tag: "t", token: 1n }),
    "ABORTED",
    "WORKER_LEASE_LOST",
  ],
];

test("every bad request is answered with the fields that are wrong, or its reason", async () => {
  const clients = clientsOf(address);
  await createSnowflake(clients, "t");
  await createSnowflake(clients, "paused");
  await createTag(clients, "orders");
  const pause = PauseTagRequest.fromPartial({ name: "paused" });
  await call(clients.tags, TagServiceService.pauseTag, pause);
  const failures: unknown[] = [];
  for (const [what, send, ...fields] of bad) {
    const refusal = await refusalOf(send(clients));
    const found = refusal.fields.map(({ field }) => field).toSorted();
    const isRight =
      CODE_OF_REASON[refusal.reason as Reason] === "INVALID_ARGUMENT" &&
      found.length === fields.length &&
      fields.every((field) => found.some((each) => each.endsWith(field))) &&
      refusal.fields.every(({ description }) => description.length > 10);
    if (!isRight) failures.push([what, refusal.reason, refusal.message, refusal.fields]);
  }
  for (const [what, send, code, reason] of refused) {
    const refusal = await refusalOf(send(clients));
    if (refusal.code !== code || refusal.reason !== reason) failures.push([what, refusal]);
  }
  expect(failures).toEqual([]);
});

test("who leases a worker of a tag that is not there is told to make a snowflake", async () => {
  const clients = clientsOf(address);
  const listed = ListWorkersRequest.fromPartial({ tag: "nobodys" });
  for (const asked of [
    lease({ tag: "nobodys", instance: "a" })(clients),
    call(clients.workers, WorkerServiceService.listWorkers, listed),
  ]) {
    const { reason, message } = await refusalOf(asked);
    expect(reason).toBe("TAG_NOT_FOUND");
    expect(message).toContain("idmint tag create nobodys --kind snowflake");
  }
});
