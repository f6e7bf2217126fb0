import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { IdmintError } from "@idmint/core";
import { expect, onTestFinished, test } from "vitest";
import { configFlags } from "../../src/config/docs.ts";
import { type ConfigSources, loadConfig } from "../../src/config/load.ts";
import { storePlace, ticketPlace } from "../../src/config/store-place.ts";
import { writesLedger } from "../../src/config/ledger.ts";
import { envOf, flagOf } from "../../src/config/option.ts";
import { OPTIONS } from "../../src/config/table.ts";
import { UNSAFE_SETTINGS } from "../../src/store/open-store.ts";

function file(content: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const name = path.join(folder, "idmint.yaml");
  writeFileSync(name, content);
  return name;
}

/** What is wrong with a configuration, as [where, what]. */
function faultsOf(sources: ConfigSources): [string, string][] {
  try {
    loadConfig(sources);
  } catch (error) {
    if (!(error instanceof IdmintError)) throw error;
    expect(error.code).toBe("INVALID_ARGUMENT");
    return error.violations.map(({ field, description }) => [field, description]);
  }
  throw new Error("nothing was wrong");
}

test("without any source there are defaults", () => {
  expect(loadConfig({})).toMatchObject({
    grpcAddress: { host: "127.0.0.1", port: 7600 },
    httpAddress: { host: "127.0.0.1", port: 7601 },
    storeUrl: "sqlite:./.idmint/idmint.db",
    storePassword: undefined,
    allowUnsafeStore: [],
    allowUnprovedStore: false,
    epochGap: undefined,
    redisUrls: new Map(),
    redisTimeoutMs: 500,
    redisRaiseBelowMs: 15 * 60_000,
    redisRaiseByMs: 30 * 60_000,
    insecure: false,
    drainDelayMs: 10_000,
    drainTimeMs: 5_000,
    pollIntervalMs: 800,
    prefetchShare: 0.1,
    logLevel: "info",
    logFormat: "json",
  });
});

test("flags win over the environment, the environment over the file, the file over defaults", () => {
  const config = file("drain_time: 1s\nlog:\n  level: warn\nlimits:\n  waiters: 7\n");
  const flags = { config, "drain-time": "2s" };
  const env = { IDMINT_DRAIN_TIME: "3s", IDMINT_LOG_LEVEL: "error" };
  expect(loadConfig({ env, flags })).toMatchObject({
    drainTimeMs: 2_000,
    logLevel: "error",
    limitWaiters: 7,
    limitTags: 100_000,
  });
  expect(loadConfig({ flags: { config } }).drainTimeMs).toBe(1_000);
  expect(loadConfig({ env: { IDMINT_CONFIG: config } }).logLevel).toBe("warn");
  // The file is chosen in the same order.
  const other = file("log:\n  level: debug\n");
  expect(loadConfig({ env: { IDMINT_CONFIG: config }, flags: { config: other } }).logLevel).toBe(
    "debug",
  );
});

test("a secret in a file of the environment wins over the YAML file", () => {
  const config = file("store:\n  password: from-yaml\n");
  const env = { IDMINT_STORE_PASSWORD_FILE: file("from-secret-file\n") };
  expect(loadConfig({ env, flags: { config } }).storePassword).toBe("from-secret-file");
  expect(loadConfig({ flags: { config } }).storePassword).toBe("from-yaml");
});

test("an unknown name is an error wherever it stands, with what was meant", () => {
  const config = file("grpc:\n  adress: 127.0.0.1:1\nstorage: x\n");
  const faults = faultsOf({
    env: { IDMINT_GRPC_ADRESS: "127.0.0.1:1", PATH: "/bin" },
    flags: { config, "drain-tim": "1s" },
  });
  expect(faults).toEqual([
    ["--drain-tim", "is not an option; did you mean --drain-time?"],
    ["IDMINT_GRPC_ADRESS", "is not an option; did you mean IDMINT_GRPC_ADDRESS?"],
    [`${config}: grpc.adress`, "is not an option; did you mean grpc.address?"],
    [`${config}: storage`, expect.stringContaining("is not an option") as string],
  ]);
});

test("every bad value is named, with its source and what is accepted", () => {
  const config = file("prefetch_share: 2\n");
  const faults = faultsOf({
    env: { IDMINT_POLL_INTERVAL: "800", IDMINT_LOG_LEVEL: "loud" },
    flags: { config, "grpc-address": "localhost", "limits-waiters": "0", "epoch-gap": "-1" },
  });
  const named = Object.fromEntries(faults);
  expect(Object.keys(named).toSorted()).toEqual(
    [
      "--epoch-gap",
      "--grpc-address",
      "--limits-waiters",
      "IDMINT_LOG_LEVEL",
      "IDMINT_POLL_INTERVAL",
      `${config}: prefetch_share`,
    ].toSorted(),
  );
  expect(named["IDMINT_POLL_INTERVAL"]).toContain("50ms to 1s");
  expect(named["IDMINT_LOG_LEVEL"]).toContain('got "loud"');
  expect(named["--limits-waiters"]).toContain("1 to 1000000");
});

test("a secret may come from a file, has no flag, and is in no error", () => {
  const secret = file("hunter2\n");
  expect(loadConfig({ env: { IDMINT_STORE_PASSWORD_FILE: secret } }).storePassword).toBe("hunter2");
  expect(loadConfig({ env: { IDMINT_STORE_PASSWORD: "hunter2" } }).storePassword).toBe("hunter2");
  const both = faultsOf({
    env: { IDMINT_STORE_PASSWORD: "hunter2", IDMINT_STORE_PASSWORD_FILE: secret },
  });
  expect(both).toHaveLength(1);
  expect(JSON.stringify(both)).not.toContain("hunter2");
  const [missing] = faultsOf({ env: { IDMINT_STORE_PASSWORD_FILE: "/nowhere" } });
  expect(missing).toEqual([
    "IDMINT_STORE_PASSWORD_FILE",
    "names a file that cannot be read (ENOENT)",
  ]);
  expect(faultsOf({ flags: { "store-password": "hunter2" } })[0]?.[0]).toBe("--store-password");
  expect(configFlags().map((flag) => flag.name)).not.toContain("store-password");
});

test("a password in a store's URL is refused and not repeated", () => {
  for (const url of ["postgres://me:hunter2@db/ids", "postgres://me@db/ids?password=hunter2"]) {
    const faults = faultsOf({ env: { IDMINT_STORE_URL: url } });
    expect(faults[0]?.[0]).toBe("IDMINT_STORE_URL");
    expect(faults[0]?.[1]).toContain("put the password into IDMINT_STORE_PASSWORD");
    expect(JSON.stringify(faults)).not.toContain("hunter2");
  }
  expect(
    loadConfig({ env: { IDMINT_STORE_URL: "postgres://me@db:5433/ids?sslmode=require" } }),
  ).toMatchObject({
    storeUrl: "postgres://me@db:5433/ids?sslmode=require",
  });
});

test.each([
  ["IDMINT_STORE_MORE_URLS", "b=postgres://me:hunter2@db/ids", "IDMINT_STORE_PASSWORD"],
  ["IDMINT_TICKET_URLS", "a=postgres://me:hunter2@db/ids", "IDMINT_TICKET_PASSWORD"],
  ["IDMINT_REDIS_URLS", "a=redis://me:hunter2@db", "IDMINT_REDIS_PASSWORD"],
])("a password in %s is refused with the option that takes it", (variable, url, option) => {
  const faults = faultsOf({ env: { [variable]: url } });
  expect(faults[0]?.[0]).toBe(variable);
  expect(faults[0]?.[1]).toContain(`put the password into ${option}`);
  expect(JSON.stringify(faults)).not.toContain("hunter2");
});

function named(storeUrl: string, more: readonly [string, string][] = []): string {
  return storePlace({ storeUrl, storeMoreUrls: new Map(more) });
}

test("a store is named without passwords and without whatever else its URL carries", () => {
  expect(named("sqlite:./a/../idmint.db")).toBe(`sqlite:${path.resolve("idmint.db")}`);
  const url = "postgresql://me:hunter2@db:5433/ids?password=hunter2&sslkey=hunter2&sslmode=require";
  expect(named(url)).toBe("postgres://me@db:5433/ids");
  expect(named("postgres:///ids?host=/run/pg")).toBe("postgres:///ids?host=%2Frun%2Fpg");
  const both = "default=postgres://me@db:5433/ids, b=postgres://b/ids";
  expect(named(url, [["b", "postgres://:hunter2@b/ids"]])).toBe(both);
  expect(ticketPlace({ ticketUrls: new Map([["a", url]]) })).toBe("a=postgres://me@db:5433/ids");
});

test.each(["http-leaf", "http-tinyid"])(
  "--%s needs an address, which nobody else reads",
  (name) => {
    const field = name.replace("-", ".");
    expect(faultsOf({ flags: { [name]: true, "http-address": "none" } })).toEqual([
      [field, "needs an http.address"],
    ]);
    const flags = { [name]: true, "http-address": "0.0.0.0:7601" };
    expect(faultsOf({ flags })).toMatchObject([[field, /plain text at 0.0.0.0:7601.*--insecure/u]]);
    expect(loadConfig({ flags: { ...flags, insecure: true } }).insecure).toBe(true);
    expect(loadConfig({ flags: { [name]: true } }).insecure).toBe(false);
  },
);

test("an address that others reach needs TLS or --insecure", () => {
  const flags = { "grpc-address": "0.0.0.0:7600" };
  expect(faultsOf({ flags })[0]?.[1]).toContain("--insecure");
  expect(loadConfig({ flags: { ...flags, insecure: true } }).insecure).toBe(true);
  const admin = { "admin-address": "0.0.0.0:7602" };
  expect(faultsOf({ flags: admin })).toMatchObject([["admin.address", /--insecure/u]]);
  const tls = { "tls-cert-file": "a.crt", "tls-key-file": "a.key" };
  expect(loadConfig({ flags: { ...flags, ...tls } }).tlsCertFile).toBe("a.crt");
  for (const host of ["localhost", "127.8.9.1", "[::1]"]) {
    expect(loadConfig({ flags: { "grpc-address": `${host}:1` } }).grpcAddress.port).toBe(1);
  }
});

test("options that need each other are asked for together", () => {
  expect(faultsOf({ flags: { "tls-cert-file": "a" } })[0]?.[0]).toContain("tls.key_file");
  expect(faultsOf({ flags: { "tls-client-ca-file": "a" } })[0]?.[0]).toBe("tls.client_ca_file");
  expect(faultsOf({ flags: { "tls-peer-ca-file": "a" } })[0]?.[0]).toBe("tls.peer_ca_file");
});

test("a ledger is kept where the store can, and asked for where it cannot it is refused", () => {
  const etcd = { "store-url": "etcd://h:2379/ids" };
  expect([{}, { ledger: "off" }, etcd].map((flags) => writesLedger(loadConfig({ flags })))).toEqual(
    [true, false, false],
  );
  expect(faultsOf({ flags: { ...etcd, ledger: "on" } })).toEqual([
    ["ledger", "must be off: a store in etcd keeps no ledger"],
  ]);
});

test("further databases of the store need a first one, names of their own, and no Redis", () => {
  const more = { "store-more-urls": "b=postgres://h/b" };
  const first = { "store-url": "postgres://h/a" };
  expect(loadConfig({ flags: { ...first, ...more } }).storeMoreUrls.size).toBe(1);
  const faults = [
    faultsOf({ flags: more }),
    faultsOf({ flags: { ...first, "store-more-urls": "postgres://h/b" } }),
    faultsOf({ flags: { ...first, ...more, "redis-urls": "redis://h" } }),
  ].flat();
  expect(faults.map(([field]) => field)).toEqual(Array(3).fill("store.more_urls"));
  expect(faults.map(([, text]) => text).join("\n")).toMatch(
    /PostgreSQL\n.*other than default.*\n.*redis\.urls/,
  );
});

test("URLs of several hosts are taken apart at their names, and shown without secrets", () => {
  const flags = {
    "store-url": "postgres://me@a:1,b:2/ids?target_session_attrs=read-write",
    "store-more-urls": "x=postgres://me@c,d/ids, y=postgres://me@e/ids",
  };
  const config = loadConfig({ flags });
  expect([...config.storeMoreUrls]).toEqual([
    ["x", "postgres://me@c,d/ids"],
    ["y", "postgres://me@e/ids"],
  ]);
  expect(storePlace(config)).toBe(
    "default=postgres://me@a:1,b:2/ids, x=postgres://me@c,d/ids, y=postgres://me@e/ids",
  );
  for (const bad of [
    "postgres://a,a/ids",
    "postgres://a,/ids",
    "postgres://me:hunter2@a,b/ids",
    "postgres://a,b/ids?target_session_attrs=any",
  ]) {
    const [[field, text] = ["", ""]] = faultsOf({ flags: { "store-url": bad } });
    expect(field).toBe("--store-url");
    expect(text).toContain("target_session_attrs only read-write or primary");
    expect(text).not.toContain("hunter2");
  }
  expect(faultsOf({ flags: { "redis-urls": "redis://h,i" } })).toHaveLength(1);
  const gap = { "store-url": "postgres://a,b/ids", "epoch-gap": "5" };
  expect(faultsOf({ flags: gap })[0]?.[0]).toBe("epoch_gap");
});

test("a YAML file takes lists, quotes, numbers past 2^53 and nothing else", () => {
  const good = file(
    "allow_unsafe_store: [fsync, full_page_writes]\nepoch_gap: 9223372036854775807\ngrpc: {address: '127.0.0.1:5'}\n",
  );
  expect(loadConfig({ flags: { config: good } })).toMatchObject({
    allowUnsafeStore: ["fsync", "full_page_writes"],
    epochGap: 2n ** 63n - 1n,
    grpcAddress: { port: 5 },
  });
  expect(loadConfig({ flags: { config: file("") } }).logLevel).toBe("info");
  for (const bad of [
    "- a\n",
    "text",
    "log:\n  level:\n    deep: 1\n",
    "a: [",
    "log: 5\n",
    "insecure: maybe\n",
    "log: &a\n  level: info\nhttp: *a\n",
  ]) {
    expect(faultsOf({ flags: { config: file(bad) } })).toHaveLength(1);
  }
  expect(faultsOf({ flags: { config: "/nowhere.yaml" } })[0]?.[1]).toContain("ENOENT");
});

test("what is wrong with a YAML file is told without its lines, which may hold secrets", () => {
  const config = file("store:\n  password: hunter2\n wrong\n");
  const [[, text] = []] = faultsOf({ flags: { config } });
  expect(text).toMatch(/is not YAML: [A-Z_]+ at line 3, column 1; [A-Z_]+ at line 3, column 2$/);
});

test("the file names no other file", () => {
  const config = file("config: other.yaml\n");
  expect(faultsOf({ flags: { config } })[0]?.[0]).toBe(`${config}: config`);
});

test("what Kubernetes sets for a Service called idmint, and what others own, is no mistake", () => {
  const env = {
    IDMINT_SERVICE_HOST: "10.0.0.1",
    IDMINT_SERVICE_PORT: "7600",
    IDMINT_SERVICE_PORT_GRPC: "7600",
    IDMINT_PORT: "tcp://10.0.0.1:7600",
    IDMINT_PORT_7600_TCP_ADDR: "10.0.0.1",
    IDMINT_ADDRESS: "elsewhere:7600",
  };
  expect(loadConfig({ env, otherEnv: ["IDMINT_ADDRESS"] }).grpcAddress.port).toBe(7600);
  expect(faultsOf({ env })[0]?.[0]).toBe("IDMINT_ADDRESS");
});

test("every default is a value of its option, and no two options share a name", () => {
  const options = Object.values(OPTIONS);
  for (const option of options) {
    if (option.default === undefined) continue;
    expect(option.type.parse(option.default)).not.toBeUndefined();
  }
  expect(new Set(options.map((option) => envOf(option))).size).toBe(options.length);
  const flags = options.map((option) => flagOf(option)).filter((name) => name !== undefined);
  expect(new Set(flags).size).toBe(flags.length);
});

test("every unsafe setting that a store knows can be allowed", () => {
  const all = UNSAFE_SETTINGS.join(",");
  expect(loadConfig({ flags: { "allow-unsafe-store": all } }).allowUnsafeStore).toEqual(
    UNSAFE_SETTINGS,
  );
  const names = OPTIONS.allowUnsafeStore.type.accepts.split("out of ")[1]?.split(", ");
  expect(names).toEqual(UNSAFE_SETTINGS);
});

function redisUrlsOf(urls: string): unknown {
  return loadConfig({ env: { IDMINT_REDIS_URLS: urls } }).redisUrls;
}

test("Redis servers have names; one alone may go without", () => {
  expect(redisUrlsOf("")).toEqual(new Map());
  expect(redisUrlsOf("redis://h:6379")).toEqual(new Map([["default", "redis://h:6379"]]));
  expect(redisUrlsOf("a=redis://h/0, b=rediss://me@i:1/2")).toEqual(
    new Map([
      ["a", "redis://h/0"],
      ["b", "rediss://me@i:1/2"],
    ]),
  );
  const behind = "redis+sentinel://me@a.example:1,b:2,[::1]:3/orders";
  expect(redisUrlsOf(behind)).toEqual(new Map([["default", behind]]));
  expect(redisUrlsOf(`a=${behind}/2, b=redis://h,c=rediss+sentinel://a:1/o`)).toEqual(
    new Map([
      ["a", `${behind}/2`],
      ["b", "redis://h"],
      ["c", "rediss+sentinel://a:1/o"],
    ]),
  );
});

test.each([
  "redis://a,redis://b",
  "a=redis://x,a=redis://y",
  "a=http://x",
  "a=",
  "a b=redis://x",
  "redis://:secret@x",
  "redis://x?password=secret",
  "redis://x/name",
  "redis://x:1,y:2",
  "redis+sentinel://x:1,y:2",
  "redis+sentinel://x/orders",
  "redis+sentinel://x:0/orders",
  "redis+sentinel://x:1,x:1/orders",
  "redis+sentinel://x:1,/orders",
  "redis+sentinel://x:1/",
  "redis+sentinel://x:1/orders/name",
  "redis+sentinel://me:secret@x:1/orders",
  "redis+sentinel://x:1/orders?password=secret",
  `redis+sentinel://${Array.from({ length: 16 }, (_, at) => `x:${at + 1}`).join(",")}/orders`,
  "sentinel://x:1/orders",
])("refuses %s as Redis servers, and does not show it", (urls) => {
  const [[field, text] = ["", ""]] = faultsOf({ env: { IDMINT_REDIS_URLS: urls } });
  expect(field).toBe("IDMINT_REDIS_URLS");
  expect(text).toContain("name=url");
  expect(text).not.toContain("secret");
});

function peersOf(text: string): readonly string[] {
  return loadConfig({ flags: { "node-peers": text } }).nodePeers;
}

test("peers are addresses with a port, each there once", () => {
  expect(peersOf("")).toEqual([]);
  expect(peersOf("a.example:7600, [::1]:7601")).toEqual(["a.example:7600", "[::1]:7601"]);
  for (const bad of ["a.example", "a.example:0", "a:1,a:1", "a:1,,b:2", "http://a:1"]) {
    expect(faultsOf({ flags: { "node-peers": bad } })[0]?.[1]).toMatch(
      /^must be up to 64 different/,
    );
  }
});

test("a webhook and its token are secrets: from variables and files only, never shown, and never sent in plain text", () => {
  const url = "https://example.org/hooks/T0/B0/secret";
  expect(flagOf(OPTIONS.alarmWebhookUrl)).toBeUndefined();
  expect(flagOf(OPTIONS.alarmWebhookToken)).toBeUndefined();
  const env = { IDMINT_ALARM_WEBHOOK_URL: url, IDMINT_ALARM_WEBHOOK_TOKEN: "sesame" };
  expect(loadConfig({ env })).toMatchObject({ alarmWebhookUrl: url, alarmWebhookToken: "sesame" });
  const bad = [
    { IDMINT_ALARM_WEBHOOK_URL: "https://user:secret@example.org/" },
    { IDMINT_ALARM_WEBHOOK_URL: "ftp://example.org/secret" },
    { IDMINT_ALARM_WEBHOOK_URL: url, IDMINT_ALARM_WEBHOOK_TOKEN: "secret\nX-Header: 1" },
    { IDMINT_ALARM_WEBHOOK_TOKEN: "secret" },
    { IDMINT_ALARM_WEBHOOK_URL: "http://10.0.0.1/secret", IDMINT_ALARM_WEBHOOK_TOKEN: "secret" },
  ];
  for (const wrong of bad) {
    const faults = faultsOf({ env: wrong });
    expect(faults).toHaveLength(1);
    expect(JSON.stringify(faults)).not.toContain("secret");
  }
  for (const host of ["127.0.0.1:9", "[::1]:9", "localhost"]) {
    const near = { ...env, IDMINT_ALARM_WEBHOOK_URL: `http://${host}/hook` };
    expect(loadConfig({ env: near }).alarmWebhookUrl).toBe(near.IDMINT_ALARM_WEBHOOK_URL);
  }
});
