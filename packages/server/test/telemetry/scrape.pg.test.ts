// A live scrape of a server with everything: PostgreSQL as its store, a ticket database, a Redis, and tags of all sorts.
import {
  AdvanceTagRequest,
  CreateTagRequest,
  type DeepPartial,
  IdServiceService,
  SequenceBackend,
  type Tag,
  TagServiceService,
} from "@idmint/proto";
import { createTestDatabase } from "@idmint/testkit/postgres";
import { serverEnv } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { startServer } from "../../src/main/app.ts";
import { makeStore } from "../../src/main/stores.ts";
import { migrateTicketDatabase } from "../../src/store/open-tickets.ts";
import { prometheusName } from "../../src/telemetry/metrics/prometheus-name.ts";
import { METRIC_NAMES, METRICS } from "../../src/telemetry/metrics/table.ts";
import { ownRedis } from "../store/redis/support.ts";
import { call, clientsOf, generateId, refusalOf, sleep, until } from "../support.ts";
import { scrape } from "./scrape.ts";

const UNSAFE = "fsync,full_page_writes";

async function database(): Promise<string> {
  const made = await createTestDatabase();
  onTestFinished(() => made.close());
  return made.url;
}

async function startWithEverything() {
  const redis = await ownRedis();
  const ticketUrl = await database();
  const allowUnsafe = UNSAFE.split(",");
  const ticket = { backend: "postgres", name: "a", url: ticketUrl, allowUnsafe } as const;
  await migrateTicketDatabase(ticket, { dryRun: false });
  const flags = {
    "store-url": await database(),
    "allow-unsafe-store": UNSAFE,
    "redis-urls": `main=${redis.url}`,
    "ticket-urls": `a=${ticketUrl}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
    "quota-tag-calls": "none,limited=1",
  };
  const config = loadConfig({ env: serverEnv(), flags, defaults: {} });
  await makeStore(config);
  const server = await startServer(config);
  onTestFinished(() => server.close());
  return { server, ...clientsOf(server.grpcAddress) };
}

test("every metric of docs/metrics.md appears, with what was done", async () => {
  const it = await startWithEverything();
  const create = async (tag: DeepPartial<Tag>): Promise<void> => {
    await call(it.tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
  };
  const segment = { $case: "segment" as const, value: { min: 10, max: 10 } };
  await create({ name: "orders", kind: segment });
  await create({ name: "limited", kind: segment });
  await create({ name: "short", kind: segment, ceiling: 2n });
  await create({ name: "flakes", kind: { $case: "snowflake", value: {} } });
  await create({ name: "tickets", kind: { $case: "ticket", value: {} } });
  const backend = SequenceBackend.REDIS;
  await create({ name: "counted", kind: { $case: "sequence", value: { backend } } });
  for (const tag of ["orders", "limited", "short", "flakes", "tickets", "counted"])
    await generateId(it, tag);
  await generateId(it, "short");
  await refusalOf(generateId(it, "short"));
  await refusalOf(generateId(it, "unknown"));
  // A call a second is allowed, and these come at once.
  const limited = Array.from({ length: 20 }, () => generateId(it, "limited", 20_000));
  const refused = (await Promise.allSettled(limited)).filter(({ status }) => status === "rejected");
  // The server looks at what is used of its tags now and then.
  const foretold = 'idmint_capacity_remaining_time_seconds{tag="flakes",limit="TIME_BITS"}';
  let before = await scrape(it.server.httpAddress);
  await until(async () => {
    before = await scrape(it.server.httpAddress);
    return before.has(foretold);
  });
  expect(before.get(foretold)).toBeGreaterThan(86_400 * 365);
  for (let calls = 0; calls < 5; calls++) await generateId(it, "orders");
  const advance = { name: "orders", floor: 1_000n };
  await call(it.tags, TagServiceService.advanceTag, AdvanceTagRequest.fromPartial(advance));
  for (let calls = 0; calls < 5; calls++) await generateId(it, "orders");
  // A rate is of a second at least.
  await sleep(1_100);
  const after = await scrape(it.server.httpAddress);
  for (const name of METRIC_NAMES) {
    const its = `${prometheusName(name)}${METRICS[name].kind === "histogram" ? "_count" : ""}`;
    const found = [...after.keys()].some((key) => key === its || key.startsWith(`${its}{`));
    expect(found, `${name} in\n${[...after.keys()].join("\n")}`).toBe(true);
  }
  const grew = (key: string): number => (after.get(key) ?? 0) - (before.get(key) ?? 0);
  expect(grew('idmint_ids_issued_total{tag="orders"}')).toBe(10);
  expect(after.get('idmint_ids_wasted_total{tag="orders"}')).toBeGreaterThan(0);
  expect(after.get('idmint_epoch{tag="orders"}')).toBe(2);
  expect(after.get('idmint_segment_remaining_seconds{tag="orders"}')).toBeUndefined();
  expect(after.get('idmint_segment_remaining_time_seconds{tag="orders"}')).toBeGreaterThan(0);
  expect(after.get('idmint_segment_remaining_ratio{tag="orders"}')).toBeGreaterThan(0);
  expect(after.get('idmint_refusals_total{reason="TAG_NOT_FOUND"}')).toBe(1);
  expect(after.get('idmint_refusals_total{reason="QUOTA_EXCEEDED"}')).toBe(refused.length);
  expect(after.get('idmint_quota_refusals_total{quota="tag_calls"}')).toBe(refused.length);
  expect(refused.length).toBeGreaterThan(0);
  expect(after.get('idmint_redis_up{redis="main"}')).toBe(1);
  expect(after.get('idmint_ticket_database_up{database="a"}')).toBe(1);
  const lease = after.get('idmint_worker_lease_remaining_seconds{tag="flakes"}');
  expect(lease).toBeGreaterThan(0);
  expect(lease).toBeLessThanOrEqual(30);
  const path = IdServiceService.generateId.path.slice(1);
  const ok = `rpc_system_name="grpc",rpc_method="${path}",rpc_response_status_code="OK"`;
  expect(grew(`rpc_server_call_duration_seconds_count{${ok}}`)).toBe(10);
  const asked = `db_system_name="postgresql",db_operation_name="grant"`;
  expect(after.get(`db_client_operation_duration_seconds_count{${asked}}`)).toBeGreaterThan(3);
  const script = `db_system_name="redis",db_operation_name="sequence_issue"`;
  expect(after.get(`db_client_operation_duration_seconds_count{${script}}`)).toBeGreaterThan(0);
});
