import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { IdmintError } from "@idmint/core";
import type { Store } from "@idmint/core/server";
import type { Config } from "../config/table.ts";
import type { Emit } from "../service/events.ts";
import type { KnownHistory } from "../service/upstream/poll-state.ts";
import type { StoreWait } from "../service/upstream/store-wait.ts";
import type { RedisServerConfig } from "../store/open-redis.ts";
import {
  creating,
  migrateStore,
  openStore,
  openStoreLater,
  type PostgresConfig,
  type StoreConfig,
} from "../store/open-store.ts";
import type { TicketConfig } from "../store/open-tickets.ts";
import { type BackendName, backendOf, filePathOf } from "../store/shared/backends.ts";
import type { StorePins } from "../store/pins/pin.ts";
import { etcdPlace } from "../store/shared/etcd-url.ts";
import { writersIn } from "../store/sqlite/file/folders.ts";
import { withPassword } from "../store/shared/host-urls.ts";
import { operatorNote } from "./instance.ts";
import { redisEvents } from "./redis-events.ts";
import { realSystem } from "./system.ts";

// Which stores a configuration names. Their URLs hold passwords here, so they are never shown.

const STORE_CONFIGS: { readonly [Name in BackendName]: (config: Config) => StoreConfig } = {
  sqlite: ({ storeUrl, storeTimeoutMs: timeoutMs, allowUnsafeStore: allowUnsafe }) => ({
    backend: "sqlite",
    path: filePathOf(storeUrl),
    timeoutMs,
    allowUnsafe,
  }),
  postgres: (config) => {
    const { storeUrl, storeMoreUrls } = config;
    const first = databaseAt(storeUrl, config);
    if (storeMoreUrls.size === 0) return first;
    const more = [...storeMoreUrls].map(([name, url]) => [name, databaseAt(url, config)] as const);
    return { backend: "spread", databases: new Map([["default", first], ...more]) };
  },
  etcd: (config) => {
    const { hosts, prefix, tls } = etcdPlace(config.storeUrl) ?? {
      hosts: [],
      prefix: "",
      tls: false,
    };
    const { storeTlsCaFile: caFile, storeTlsCertFile: certFile, storeTlsKeyFile: keyFile } = config;
    return {
      backend: "etcd",
      hosts,
      prefix,
      ...(tls ? { tls: { caFile, certFile, keyFile } } : {}),
      user: config.storeUser,
      password: config.storePassword,
      timeoutMs: config.storeTimeoutMs,
      allowUnsafe: config.allowUnsafeStore,
    };
  },
};

/** The store of a configuration. */
export function storeConfigOf(config: Config): StoreConfig {
  const its = STORE_CONFIGS[backendOf(config.storeUrl)](config);
  return { ...its, expectId: config.storeExpectId };
}

function databaseAt(text: string, config: Config): PostgresConfig {
  return {
    backend: "postgres",
    url: withPassword(text, config.storePassword),
    connectTimeoutMs: config.storeConnectTimeoutMs,
    poolSize: config.storePoolSize,
    timeoutMs: config.storeTimeoutMs,
    allowUnsafe: config.allowUnsafeStore,
  };
}

/** The store, when it answers. One that does not is opened later by a server that can begin without it, since it knows where it was. */
export async function openStoreOrLater(
  config: Config,
  known: KnownHistory | undefined,
  storeWait: StoreWait,
  pins: StorePins,
): Promise<Store> {
  const store = storeConfigOf(config);
  if (known === undefined) return storeWait.of(() => openStore(store, pins));
  try {
    return await openStore(store, pins);
  } catch (thrown) {
    if (!IdmintError.from(thrown).retryable) throw thrown;
    return openStoreLater(store, pins);
  }
}

/** Makes the configured store if there is none, and brings its schema up to date. */
export async function makeStore(config: Config): Promise<void> {
  await migrateStore(creating(storeConfigOf(config)), {
    dryRun: false,
    by: operatorNote("idmint start-dev"),
  });
}

/** Folders with files of this server in which a group may write: whoever is in it can put other files in their place. */
export function groupFoldersOf({ storeUrl, snowflakeCacheFile }: Config): readonly string[] {
  const files = backendOf(storeUrl) === "sqlite" ? [filePathOf(storeUrl)] : [];
  if (snowflakeCacheFile !== undefined) files.push(snowflakeCacheFile);
  const real = files.filter((file) => existsSync(file)).map((file) => realpathSync(file));
  const folders = new Set(real.map((file) => path.dirname(file)));
  return [...folders].filter((folder) => writersIn(folder) === "group");
}

/** The ticket databases of a configuration, in the order of their names. */
export function ticketConfigsOf(config: Config): readonly TicketConfig[] {
  const { ticketUrls, ticketPassword, ticketTimeoutMs: timeoutMs } = config;
  const byName = [...ticketUrls].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return byName.map(([name, text]) => {
    const url = withPassword(text, ticketPassword);
    const { allowUnsafeStore: allowUnsafe, storePoolSize: poolSize } = config;
    const connectTimeoutMs = Math.min(timeoutMs, config.storeConnectTimeoutMs);
    const times = { timeoutMs, connectTimeoutMs };
    return { backend: "postgres", name, url, poolSize, allowUnsafe, ...times };
  });
}

/** The Redis servers of a configuration, for those who only look at them. */
export function redisPlacesOf(config: Config): readonly RedisServerConfig[] {
  return [...config.redisUrls].map(([name, url]) => redisPlaceOf(config, name, url));
}

/** The Redis servers of a configuration. */
export function redisConfigsOf(
  config: Config,
  emit: Emit,
  around?: RedisServerConfig["around"],
): readonly RedisServerConfig[] {
  return [...config.redisUrls].map(([name, url]) => {
    const onChange = redisEvents(name, realSystem.clock, emit);
    const onUnfit = (why: string): void => emit({ type: "redis-unfit", redisServer: name, why });
    const place = redisPlaceOf(config, name, url);
    return { ...place, onChange, onUnfit, ...(around === undefined ? {} : { around }) };
  });
}

/** The Redis through which servers talk to each other: the same for all servers with the same Redis servers. */
export function meetingPlaceOf(config: Config): RedisServerConfig | undefined {
  const [first] = [...config.redisUrls].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return first === undefined ? undefined : redisPlaceOf(config, ...first);
}

function redisPlaceOf(config: Config, name: string, url: string): RedisServerConfig {
  const { redisPassword: password, redisTimeoutMs: timeoutMs } = config;
  const { redisSentinelUser: sentinelUser, redisSentinelPassword: sentinelPassword } = config;
  return { name, url, password, sentinelUser, sentinelPassword, timeoutMs };
}
