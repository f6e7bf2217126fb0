import { MAX_ID } from "@idmint/core";
import { UNSAFE_SETTINGS } from "../store/shared/backends.ts";
import { ACCESS_OPTIONS, type AccessConfig } from "./access.ts";
import { ADDRESS_OPTIONS, type AddressConfig } from "./addresses.ts";
import { AUDIT_OPTIONS, type AuditConfig } from "./audit.ts";
import { HTTP_OPTIONS, type HttpConfig } from "./http.ts";
import { LEDGER_OPTIONS, type LedgerConfig } from "./ledger.ts";
import { LIMIT_OPTIONS, type LimitConfig } from "./limits.ts";
import { TELEMETRY_OPTIONS, type TelemetryConfig } from "./telemetry.ts";
import { type Option, option, optional } from "./option.ts";
import {
  type Address,
  address,
  addresses,
  bigInteger,
  duration,
  durationOrNone,
  flag,
  headerToken,
  instanceText,
  integer,
  keyFiles,
  listOf,
  type Offline,
  oneOf,
  redisUrls,
  share,
  storeUrl,
  text,
  moreUrls,
  ticketUrls,
  webhookUrl,
  zoneText,
} from "./types.ts";

/** Levels of the log, from everything to nothing. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** The whole configuration, with defaults filled in. Durations are in milliseconds. */
export interface Config
  extends
    AccessConfig,
    AddressConfig,
    AuditConfig,
    HttpConfig,
    LedgerConfig,
    LimitConfig,
    TelemetryConfig {
  readonly config: string | undefined;
  readonly processes: number;
  readonly storeUrl: string;
  readonly storeExpectId: string | undefined;
  readonly storeMoreUrls: ReadonlyMap<string, string>;
  readonly storeUser: string | undefined;
  readonly storePassword: string | undefined;
  readonly storeTlsCaFile: string | undefined;
  readonly storeTlsCertFile: string | undefined;
  readonly storeTlsKeyFile: string | undefined;
  readonly storeTimeoutMs: number;
  readonly storeConnectTimeoutMs: number;
  readonly storeStartTimeoutMs: number;
  readonly storePoolSize: number;
  readonly allowUnsafeStore: readonly string[];
  readonly allowUnprovedStore: boolean;
  readonly epochGap: bigint | undefined;
  readonly redisUrls: ReadonlyMap<string, string>;
  readonly redisPassword: string | undefined;
  readonly redisSentinelUser: string | undefined;
  readonly redisSentinelPassword: string | undefined;
  readonly redisTimeoutMs: number;
  readonly redisRaiseBelowMs: number;
  readonly redisRaiseByMs: number;
  readonly ticketUrls: ReadonlyMap<string, string>;
  readonly ticketPassword: string | undefined;
  readonly ticketTimeoutMs: number;
  readonly unguessableKeys: ReadonlyMap<number, string>;
  readonly instance: string | undefined;
  readonly snowflakeDataCenter: number | undefined;
  readonly snowflakeReserveAheadMs: number;
  readonly snowflakeCacheFile: string | undefined;
  readonly clockMaxOffsetMs: number;
  readonly nodeMaxOffline: Offline;
  readonly nodeAdvertise: Address | undefined;
  readonly nodeZone: string;
  readonly nodePeers: readonly string[];
  readonly alarmWebhookUrl: string | undefined;
  readonly alarmWebhookToken: string | undefined;
  readonly alarmWebhookTimeoutMs: number;
  readonly alarmAfterMs: number;
  readonly tlsCertFile: string | undefined;
  readonly tlsKeyFile: string | undefined;
  readonly tlsClientCaFile: string | undefined;
  readonly tlsPeerCaFile: string | undefined;
  readonly insecure: boolean;
  readonly drainDelayMs: number;
  readonly drainTimeMs: number;
  readonly pollIntervalMs: number;
  readonly prefetchShare: number;
  readonly logLevel: LogLevel;
  readonly logFormat: "json" | "text";
}

/** The table of options. The loader, the flags and docs/configuration.md follow from it. */
export const OPTIONS: { readonly [K in keyof Config]: Option<Config[K]> } = {
  config: optional("config", text("path"), "YAML file with options.", { isNotInFile: true }),
  ...ADDRESS_OPTIONS,
  ...HTTP_OPTIONS,
  processes: option(
    "processes",
    integer(1, 64),
    "1",
    "Processes that share the gRPC port. Use about one per core. Each has its own segments, its own connections to the store and its own limits. Only `limits.connections` holds for all together.",
  ),
  storeUrl: option(
    "store.url",
    storeUrl,
    "sqlite:./.idmint/idmint.db",
    "Where floors are stored durably: a SQLite file for servers on one host, or a PostgreSQL database or an etcd for servers on many.",
  ),
  storeMoreUrls: option(
    "store.more_urls",
    moreUrls,
    "",
    "Further PostgreSQL databases by name. Tags are spread over them and `store.url`, whose name is `default`. `idmint store spread add` joins them into one store.",
  ),
  storeExpectId: optional(
    "store.expect_id",
    text("id"),
    "Id of the store that this server belongs to, as `idmint store status` shows it; of several databases the ids of all (`default: ID; b: ID`). Whatever else answers at `store.url` is treated as away. Default: the id of the store that answers first, kept beside `snowflake.cache_file` if that is set.",
  ),
  storeUser: optional(
    "store.user",
    text("name"),
    "User of etcd. A user of PostgreSQL stands in `store.url`.",
  ),
  storePassword: optional(
    "store.password",
    text("password"),
    "Password of the user of PostgreSQL or etcd.",
    { isSecret: true },
  ),
  storeTlsCaFile: optional(
    "store.tls_ca_file",
    text("path"),
    "PEM file of the authorities that signed etcd's certificates, for `etcds://`. Default: those that Node trusts.",
  ),
  storeTlsCertFile: optional(
    "store.tls_cert_file",
    text("path"),
    "PEM file of the certificate that this server shows to etcd.",
  ),
  storeTlsKeyFile: optional(
    "store.tls_key_file",
    text("path"),
    "PEM file of the key of that certificate.",
  ),
  storeTimeoutMs: option(
    "store.timeout",
    duration("100ms", "60s"),
    "3s",
    "Longest wait for one answer of the store. After that the outcome is unknown, and ids that may have been granted become a gap.",
  ),
  storeConnectTimeoutMs: option(
    "store.connect_timeout",
    duration("100ms", "60s"),
    "1500ms",
    "Longest wait for a new connection to PostgreSQL.",
  ),
  storeStartTimeoutMs: option(
    "store.start_timeout",
    duration("0s", "24h"),
    "1min",
    "How long a server that starts waits for a store that does not answer. Meanwhile its log says why, and it is not ready. Then it ends. A store that refuses or has no schema ends the start at once.",
  ),
  storePoolSize: option(
    "store.pool_size",
    integer(2, 100),
    "4",
    "Most connections to PostgreSQL per process. At most half of them wait for rows that other sessions have locked.",
  ),
  allowUnsafeStore: option(
    "allow_unsafe_store",
    listOf(...UNSAFE_SETTINGS),
    "",
    "Unsafe settings of the store to accept by name, although ids may repeat after a crash, or with `auto_compaction` etcd may be full some day. For tests.",
  ),
  allowUnprovedStore: option(
    "allow_unproved_store",
    flag,
    "false",
    "Unsafe: issue ids as soon as the store answers, which a store that was put back to an earlier state does too. Otherwise a server that starts waits until another one, which knew the store before, has renewed its row, or for about 12 s where rows stand still; alone in its store it waits for nothing.",
  ),
  epochGap: optional(
    "epoch_gap",
    bigInteger(0n, MAX_ID),
    "If the store went back, accept it and raise every floor by this many ids, without an operator. It must be more than the whole fleet can have been granted of any tag since the backup.",
  ),
  redisUrls: option(
    "redis.urls",
    redisUrls,
    "",
    "The Redis servers, by name, for tags of kind redis_snowflake and for sequences with the backend Redis. Each is the master of one Redis, or the Sentinels that know it. New tags are spread over all of them. A name must mean the same on every server.",
  ),
  redisPassword: optional("redis.password", text("password"), "Password of the Redis user.", {
    isSecret: true,
  }),
  redisSentinelUser: optional(
    "redis.sentinel_user",
    text("name"),
    "User of the Sentinels, if they have users other than `default`.",
  ),
  redisSentinelPassword: optional(
    "redis.sentinel_password",
    text("password"),
    "Password of the Sentinels, which may differ from that of the Redis.",
    { isSecret: true },
  ),
  redisTimeoutMs: option(
    "redis.timeout",
    duration("20ms", "10s"),
    "500ms",
    "Longest wait for one answer of Redis. After that the outcome is unknown, and ids that may have been issued become a gap.",
  ),
  redisRaiseBelowMs: option(
    "redis.raise_below",
    duration("1s", "24h"),
    "15min",
    "The maximum of a sequence in Redis is raised when the ids left below it would not last this long. So the sequence survives an outage of the store for about this time.",
  ),
  redisRaiseByMs: option(
    "redis.raise_by",
    duration("1s", "24h"),
    "30min",
    "The maximum is raised by as many ids as the sequence needs for this time, and by at least the tag's step.",
  ),
  ticketUrls: option(
    "ticket.urls",
    ticketUrls,
    "",
    "The PostgreSQL databases of tags of kind ticket, by the names with which they were migrated. `idmint ticket apply` moves slots to a database that was added later.",
  ),
  ticketPassword: optional(
    "ticket.password",
    text("password"),
    "Password of the PostgreSQL user of the ticket databases.",
    { isSecret: true },
  ),
  ticketTimeoutMs: option(
    "ticket.timeout",
    duration("100ms", "60s"),
    "1s",
    "Longest wait for one answer of a ticket database. After that the outcome is unknown, ids that may have been granted become a gap, and the server asks the next database.",
  ),
  unguessableKeys: option(
    "unguessable.keys",
    keyFiles,
    "",
    "Files with the keys of unguessable ids, by the number of the key. Each file holds one line of 32, 48 or 64 hexadecimal digits. Use the same keys on every server, and never change them.",
  ),
  instance: optional(
    "instance",
    instanceText,
    "The name under which this server leases worker ids. It must stay the same after a restart, and each server needs its own. Default: the host's name and `grpc.address`.",
  ),
  snowflakeDataCenter: optional(
    "snowflake.data_center",
    integer(0, 65_535),
    "Data center in the snowflakes that this server makes, for tags whose layout has one. Default: the tag's data center.",
  ),
  snowflakeReserveAheadMs: option(
    "snowflake.reserve_ahead",
    duration("1s", "60s"),
    "3s",
    "How far ahead time is reserved for snowflakes. For this long, a server can make snowflakes while the registry of worker ids is down, and a worker id stays unavailable to others after its server has died.",
  ),
  snowflakeCacheFile: optional(
    "snowflake.cache_file",
    text("path"),
    "File on a local disk in which this server keeps its worker ids (Linux only). With it, time is reserved a minute ahead, and a server that restarts while the registry of worker ids is down continues within that minute. Files beside it keep the id of the server's store, and what the server was granted.",
  ),
  clockMaxOffsetMs: option(
    "clock.max_offset",
    duration("100ms", "1h"),
    "5s",
    "How far this server's clock may be from the mean of the clocks of `node.peers` when it starts to make ids by its clock.",
  ),
  nodeMaxOffline: option(
    "node.max_offline",
    durationOrNone("1s", "24h"),
    "30min",
    "How long this server issues ids, from memory or from Redis, without hearing from its store. Then it refuses every call until the store answers. So long `idmint tag pause` and `advance` wait for a server that is gone. With `none` it never stops, and while it is silent nobody can say when a change is in effect.",
  ),
  nodeAdvertise: optional(
    "node.advertise",
    address,
    "The address at which other servers, operators, and SDKs, which learn it from the list of servers, reach this server by gRPC. Default: `grpc.address`, unless that address means all interfaces.",
  ),
  nodeZone: option(
    "node.zone",
    zoneText,
    "",
    "Where this server stands, such as the name of an availability zone. SDKs with the same `zone` ask the servers of it first.",
  ),
  nodePeers: option(
    "node.peers",
    addresses,
    "",
    "gRPC addresses of other servers with whose clocks this server compares its own. It asks up to 8 of them at a time. Choose servers on other machines. The server uses TLS to ask them if it has TLS itself.",
  ),
  alarmWebhookUrl: optional(
    "alarm.webhook_url",
    webhookUrl,
    "Where alarms are sent, as JSON by POST. The URL is treated as a secret, because some receivers put one into it.",
    { isSecret: true },
  ),
  alarmWebhookToken: optional(
    "alarm.webhook_token",
    headerToken,
    "Token sent with every alarm, as `Authorization: Bearer …`.",
    { isSecret: true },
  ),
  alarmWebhookTimeoutMs: option(
    "alarm.webhook_timeout",
    duration("100ms", "60s"),
    "5s",
    "Longest wait for an answer of the webhook. After that the alarm is sent again.",
  ),
  alarmAfterMs: option(
    "alarm.after",
    duration("0ms", "24h"),
    "30s",
    "How long the store, a Redis or a ticket database must be away before an alarm is raised.",
  ),
  tlsCertFile: optional(
    "tls.cert_file",
    text("path"),
    "Certificate chain (PEM) of this server. It is read again every 10 s, so a renewed certificate needs no restart.",
  ),
  tlsKeyFile: optional("tls.key_file", text("path"), "Private key (PEM) of the certificate."),
  tlsClientCaFile: optional(
    "tls.client_ca_file",
    text("path"),
    "Certificate authorities (PEM) for callers. If set, callers must show a certificate that one of them signed.",
  ),
  tlsPeerCaFile: optional(
    "tls.peer_ca_file",
    text("path"),
    "Certificate authorities (PEM) that signed the certificates of `node.peers`. Default: those that Node trusts.",
  ),
  insecure: option(
    "insecure",
    flag,
    "false",
    "Allow an address that other machines can reach without TLS.",
  ),
  drainDelayMs: option(
    "drain_delay",
    duration("0ms", "10min"),
    "10s",
    "How long a server that was told to stop, or that an operator drained, still answers while its callers are told to go: two periods of the probes of whoever is in front of it.",
  ),
  drainTimeMs: option(
    "drain_time",
    duration("0ms", "10min"),
    "5s",
    "How long calls in flight may take to finish after `drain_delay`.",
  ),
  pollIntervalMs: option(
    "poll_interval",
    duration("50ms", "1s"),
    "800ms",
    "How often the server asks the store for changes.",
  ),
  prefetchShare: option(
    "prefetch_share",
    share(0.01, 1),
    "0.1",
    "Share of a segment that must be used before the next one is loaded.",
  ),
  ...ACCESS_OPTIONS,
  ...LIMIT_OPTIONS,
  ...AUDIT_OPTIONS,
  ...LEDGER_OPTIONS,
  ...TELEMETRY_OPTIONS,
  logLevel: option(
    "log.level",
    oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"),
    "info",
    "The lowest level that is logged. The log goes to stderr.",
  ),
  logFormat: option(
    "log.format",
    oneOf("json", "text"),
    "json",
    "Format of the log: one JSON object per line for machines, or one sentence per line for people.",
  ),
};
