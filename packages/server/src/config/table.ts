import { MAX_ID } from "@idmint/core";
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
  type OptionType,
  redisUrls,
  share,
  storeUrl,
  text,
  ticketUrls,
  webhookUrl,
  zoneText,
} from "./types.ts";

/** Levels of the log, from everything to nothing. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** Everything that can be configured, defaults filled in. Durations are in milliseconds. */
export interface Config {
  readonly config: string | undefined;
  readonly grpcAddress: Address;
  readonly httpAddress: Address;
  readonly workers: number;
  readonly storeUrl: string;
  readonly storeMoreUrls: ReadonlyMap<string, string>;
  readonly storePassword: string | undefined;
  readonly storeTimeoutMs: number;
  readonly storeConnectTimeoutMs: number;
  readonly storePoolSize: number;
  readonly allowUnsafeStore: readonly string[];
  readonly epochGap: bigint | undefined;
  readonly redisUrls: ReadonlyMap<string, string>;
  readonly redisPassword: string | undefined;
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
  readonly drainTimeMs: number;
  readonly pollIntervalMs: number;
  readonly prefetchShare: number;
  readonly limitCountAsList: number;
  readonly limitCountAsSegments: number;
  readonly limitWaiters: number;
  readonly limitTags: number;
  readonly limitConnections: number;
  readonly logLevel: LogLevel;
  readonly logFormat: "json" | "text";
}

/** One option. Its environment variable, flag and place in the YAML file follow from its key. */
export interface Option<T> {
  /** Path in the YAML file, e.g. `grpc.address`. */
  readonly key: string;
  readonly type: OptionType<T>;
  /** As one would write it; undefined: none. */
  readonly default: string | undefined;
  /** What it does, in sentences. */
  readonly text: string;
  /** Secrets have no flag (others on the machine see flags), may come from a file, and are never shown. */
  readonly isSecret?: boolean;
  /** Not to be set in the YAML file. */
  readonly isNotInFile?: boolean;
}

function option<T>(
  key: string,
  type: OptionType<T>,
  byDefault: string,
  description: string,
): Option<T> {
  return { key, type, default: byDefault, text: description };
}

function optional<T>(
  key: string,
  type: OptionType<T>,
  description: string,
  more: Pick<Option<T>, "isSecret" | "isNotInFile"> = {},
): Option<T | undefined> {
  return { key, type, default: undefined, text: description, ...more };
}

/** The one table of options: the loader, the flags and docs/configuration.md follow from it. */
export const OPTIONS: { readonly [K in keyof Config]: Option<Config[K]> } = {
  config: optional("config", text("path"), "YAML file with options.", { isNotInFile: true }),
  grpcAddress: option(
    "grpc.address",
    address,
    "127.0.0.1:7600",
    "Where gRPC listens. An address that other machines reach needs TLS, or `insecure`.",
  ),
  httpAddress: option(
    "http.address",
    address,
    "127.0.0.1:7601",
    "Where /healthz and /readyz are answered, in plain HTTP.",
  ),
  workers: option(
    "workers",
    integer(1, 64),
    "1",
    "Processes that share the gRPC port, about as many as there are cores for them. Each has its own segments, its own connections to the store and its own limits, except that `limits.connections` holds for all together.",
  ),
  storeUrl: option(
    "store.url",
    storeUrl,
    "sqlite:./.idmint/idmint.db",
    "Where floors are durable: a SQLite file for servers on one host, or a PostgreSQL database for many.",
  ),
  storeMoreUrls: option(
    "store.more_urls",
    ticketUrls,
    "",
    "Further PostgreSQL databases by name; tags are spread over them and `store.url`, which is called `default`. Each tag is in one of them. `idmint store spread add` makes them one store, and no server starts with other names than were recorded then.",
  ),
  storePassword: optional("store.password", text("password"), "Password of the PostgreSQL user.", {
    isSecret: true,
  }),
  storeTimeoutMs: option(
    "store.timeout",
    duration("100ms", "60s"),
    "3s",
    "Longest wait for one answer of the store. After it the outcome is unknown, and what may have been granted is a gap.",
  ),
  storeConnectTimeoutMs: option(
    "store.connect_timeout",
    duration("100ms", "60s"),
    "1500ms",
    "Longest wait for a new connection to PostgreSQL.",
  ),
  storePoolSize: option(
    "store.pool_size",
    integer(2, 100),
    "4",
    "Most connections to PostgreSQL, of each process. At most half of them wait for rows that others have locked.",
  ),
  allowUnsafeStore: option(
    "allow_unsafe_store",
    listOf("fsync", "full_page_writes", "synchronous_commit", "network_filesystem"),
    "",
    "Settings of the store under which ids may repeat after a crash, and which are used all the same. For tests.",
  ),
  epochGap: optional(
    "epoch_gap",
    bigInteger(0n, MAX_ID),
    "When the store went back, accept it at once with every floor raised by this many ids, instead of refusing until an operator does. Must be more than the whole fleet can have been granted since the backup.",
  ),
  redisUrls: option(
    "redis.urls",
    redisUrls,
    "",
    "Where tags of kind sequence with backend Redis and of kind redis_snowflake count: the master of one Redis each, or an address that leads to it. New tags are spread over all of them; the names stay with the tags, so they must mean the same on every server.",
  ),
  redisPassword: optional("redis.password", text("password"), "Password of the Redis user.", {
    isSecret: true,
  }),
  redisTimeoutMs: option(
    "redis.timeout",
    duration("20ms", "10s"),
    "500ms",
    "Longest wait for one answer of Redis. After it the outcome is unknown, and what may have been issued is a gap.",
  ),
  redisRaiseBelowMs: option(
    "redis.raise_below",
    duration("1s", "24h"),
    "15min",
    "When the ids left below the maximum of a sequence in Redis would not last so long, the maximum is raised. So long can they be used while the store is down.",
  ),
  redisRaiseByMs: option(
    "redis.raise_by",
    duration("1s", "24h"),
    "30min",
    "By so much time's worth of ids the maximum is raised, at least by the tag's step.",
  ),
  ticketUrls: option(
    "ticket.urls",
    ticketUrls,
    "",
    "The PostgreSQL databases that tags of kind ticket count in. Each keeps the name it was migrated under. A new tag's slots are spread over all of them; what a further one gets is moved to it by `idmint ticket apply`.",
  ),
  ticketPassword: optional(
    "ticket.password",
    text("password"),
    "Password of the user of the ticket databases.",
    { isSecret: true },
  ),
  ticketTimeoutMs: option(
    "ticket.timeout",
    duration("100ms", "60s"),
    "1s",
    "Longest wait for one answer of a ticket database. After it the outcome is unknown, what may have been granted is a gap, and the next one is asked.",
  ),
  unguessableKeys: option(
    "unguessable.keys",
    keyFiles,
    "",
    "Files with the keys of unguessable ids, by the number of the key. Each holds one line of 32, 48 or 64 hexadecimal digits, as `openssl rand -hex 32` makes them, and can be read by its owner and group at most. The same on every server, for ever.",
  ),
  instance: optional(
    "instance",
    instanceText,
    "What this server is called among all that lease worker ids, the same after a restart and another one for each server. Default: the host's name and `grpc.address`.",
  ),
  snowflakeDataCenter: optional(
    "snowflake.data_center",
    integer(0, 65_535),
    "Data centre of the ids of kind snowflake that this server makes, for tags whose layout has one. Default: that of the tag.",
  ),
  snowflakeReserveAheadMs: option(
    "snowflake.reserve_ahead",
    duration("1s", "60s"),
    "3s",
    "How far ahead of use time is reserved for snowflakes. So long they are made while the registry of worker ids is down, and so long a worker id is kept from others after its server has died.",
  ),
  snowflakeCacheFile: optional(
    "snowflake.cache_file",
    text("path"),
    "File on a disk of this machine in which this server keeps its worker ids, for Linux. With it time is reserved a minute ahead, and a server that is started again while the registry of worker ids is down goes on within that minute. Of several processes each adds its number to the name.",
  ),
  clockMaxOffsetMs: option(
    "clock.max_offset",
    duration("100ms", "1h"),
    "5s",
    "How far the clock may be from the mean of the clocks of `node.peers` when this server begins to make ids by it.",
  ),
  nodeMaxOffline: option(
    "node.max_offline",
    durationOrNone("1s", "24h"),
    "30min",
    "How long this server issues ids without hearing from its store, from memory or from Redis. After it every call is refused until the store answers again. The longer it is, the longer `idmint tag pause` and `advance` have to wait for a server that is gone. With `none` it never stops, and while it is not heard of nobody can say when a change is in effect.",
  ),
  nodeAdvertise: optional(
    "node.advertise",
    address,
    "The address under which other servers and operators reach this server by gRPC; it stands in the list of servers. Default: `grpc.address`, unless that is one of all addresses.",
  ),
  nodeZone: option(
    "node.zone",
    zoneText,
    "",
    "Where this server stands, such as the name of an availability zone; it stands in the list of servers.",
  ),
  nodePeers: option(
    "node.peers",
    addresses,
    "",
    "Where other servers listen for gRPC whose clocks this one compares its own with; up to 8 of them are asked at a time. Best on other machines. They are asked by TLS if this server has it.",
  ),
  alarmWebhookUrl: optional(
    "alarm.webhook_url",
    webhookUrl,
    "Where alarms are sent, as JSON by POST. Some receivers have a secret in their URL, so it is handled as one.",
    { isSecret: true },
  ),
  alarmWebhookToken: optional(
    "alarm.webhook_token",
    headerToken,
    "Sent along with every alarm, as `Authorization: Bearer …`.",
    { isSecret: true },
  ),
  alarmWebhookTimeoutMs: option(
    "alarm.webhook_timeout",
    duration("100ms", "60s"),
    "5s",
    "Longest wait for an answer of the webhook. After it the alarm is sent once more.",
  ),
  alarmAfterMs: option(
    "alarm.after",
    duration("0ms", "24h"),
    "30s",
    "How long the store, a Redis or a ticket database has to be away before that is an alarm.",
  ),
  tlsCertFile: optional(
    "tls.cert_file",
    text("path"),
    "Certificate chain (PEM) of the gRPC server; read again every 10 s, so that a renewed one needs no restart.",
  ),
  tlsKeyFile: optional("tls.key_file", text("path"), "Private key (PEM) of the certificate."),
  tlsClientCaFile: optional(
    "tls.client_ca_file",
    text("path"),
    "Authorities (PEM). With them callers must show a certificate that one of these signed.",
  ),
  tlsPeerCaFile: optional(
    "tls.peer_ca_file",
    text("path"),
    "Authorities (PEM) that signed the certificates of `node.peers`. Default: those that Node knows.",
  ),
  insecure: option(
    "insecure",
    flag,
    "false",
    "Listen without TLS on an address that other machines reach.",
  ),
  drainTimeMs: option(
    "drain_time",
    duration("0ms", "10min"),
    "5s",
    "How long a server that was told to stop lets calls in flight finish.",
  ),
  pollIntervalMs: option(
    "poll_interval",
    duration("50ms", "1s"),
    "800ms",
    "How often the store is asked what changed. Below a second, so that a change is seen within one.",
  ),
  prefetchShare: option(
    "prefetch_share",
    share(0.01, 1),
    "0.1",
    "Share of a segment after whose use the next one is loaded.",
  ),
  limitCountAsList: option(
    "limits.count_as_list",
    integer(1, 100_000),
    "10000",
    "Most ids a call may ask for one by one.",
  ),
  limitCountAsSegments: option(
    "limits.count_as_segments",
    integer(1, 1_000_000_000),
    "10000000",
    "Most ids a call may ask for as segments.",
  ),
  limitWaiters: option(
    "limits.waiters",
    integer(1, 1_000_000),
    "10000",
    "Most calls that may wait for one tag.",
  ),
  limitTags: option(
    "limits.tags",
    integer(1, 1_000_000),
    "100000",
    "Most tags with a buffer in memory. The least used go first, and their unused ids go back to the store.",
  ),
  limitConnections: option(
    "limits.connections",
    integer(1, 100_000),
    "10000",
    "Most gRPC connections that may be open at once.",
  ),
  logLevel: option(
    "log.level",
    oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"),
    "info",
    "What is logged, on stderr.",
  ),
  logFormat: option(
    "log.format",
    oneOf("json", "text"),
    "json",
    "One JSON object a line for machines, or one sentence a line for people.",
  ),
};

/** The environment variable of an option: `grpc.address` is IDMINT_GRPC_ADDRESS. */
export function envOf(option: Pick<Option<unknown>, "key">): string {
  return `IDMINT_${option.key.replaceAll(".", "_").toUpperCase()}`;
}

/** The flag of an option without its dashes, `grpc-address`; undefined for secrets. */
export function flagOf(option: Pick<Option<unknown>, "key" | "isSecret">): string | undefined {
  return option.isSecret === true ? undefined : option.key.replaceAll(/[._]/g, "-");
}
