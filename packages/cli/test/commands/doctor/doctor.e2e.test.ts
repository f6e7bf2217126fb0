// Real faults, planted one after the other into one real fleet: PostgreSQL, a Redis with a replica, a server with TLS.
import { spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import path from "node:path";
import { creating, loadConfig, migrateStore, startServer, storeConfigOf } from "@idmint/server";
import { serverEnv, selfSigned, wallClockEnv } from "@idmint/testkit";
import { type TestDatabase, TestPostgres } from "@idmint/testkit/postgres";
import { freePort, RedisServer } from "@idmint/testkit/redis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { cleanEnv, CLI, serve, temporaryFolder, untilEnd } from "../../spawn.ts";
import { idmint, playServer, type CommandResult } from "../../support.ts";

interface Line {
  readonly check: string;
  readonly status: string;
  readonly found: string;
  readonly fix?: string;
}

const { folder, remove } = temporaryFolder();
const file = (name: string): string => path.join(folder, name);
let postgres: TestPostgres;
let database: TestDatabase;
let redis: RedisServer;
let replica: RedisServer;
let address = "";
let closeServer: () => Promise<void> = async () => {};

/** Beyond what the healthy server has. */
function configuration(more: Readonly<Record<string, unknown>> = {}): string {
  const name = file(`config-${Object.keys(more).join("-") || "healthy"}.yaml`);
  const healthy = {
    instance: "host-1",
    "grpc.address": address.replace("localhost", "127.0.0.1"),
    "http.address": "127.0.0.1:0",
    "node.advertise": address,
    "store.url": database.url,
    "redis.urls": redis.url,
    "tls.cert_file": file("cert.pem"),
    "tls.key_file": file("key.pem"),
    "limits.connections": 1_000,
    "log.level": "silent",
  };
  // One map of maps: YAML wants each of them once.
  const merged: Record<string, unknown> = {};
  for (const [key, value] of Object.entries({ ...healthy, ...more })) {
    const [group = "", option] = key.split(".");
    if (option === undefined) merged[group] = value;
    else merged[group] = { ...(merged[group] as object | undefined), [option]: value };
  }
  writeFileSync(name, JSON.stringify(merged));
  return name;
}

beforeAll(async () => {
  const { cert, key } = selfSigned("localhost");
  writeFileSync(file("cert.pem"), cert);
  writeFileSync(file("key.pem"), key, { mode: 0o600 });
  writeFileSync(file("password"), "unused", { mode: 0o600 });
  [postgres, redis] = await Promise.all([
    TestPostgres.start({ durable: true }),
    RedisServer.start({ settings: { appendonly: "yes" } }),
  ]);
  replica = await RedisServer.start({ settings: { appendonly: "yes" } });
  await replica.follow(redis);
  database = await postgres.createDatabase();
  address = `localhost:${await freePort(20_000, 29_000)}`;
  const config = loadConfig({ env: serverEnv(), flags: { config: configuration() } });
  await migrateStore(storeConfigOf(config), { dryRun: false });
  const server = await startServer(config);
  closeServer = () => server.close();
});

afterAll(async () => {
  await closeServer();
  await Promise.all([replica.close(), redis.close(), postgres.close()]);
  remove();
});

function linesOf({ out }: CommandResult): readonly Line[] {
  return (JSON.parse(out) as { results: readonly Line[] }).results;
}

/** Runs it on the configuration alone, as on a machine before its server starts. */
async function onMachine(more: Readonly<Record<string, unknown>> = {}): Promise<readonly Line[]> {
  return linesOf(await idmint(["doctor", "--config", configuration(more), "--json"]));
}

/** Runs it against a server alone, as from any other machine. */
async function onServer(at = address, ...more: readonly string[]): Promise<readonly Line[]> {
  const tls = ["--ca-file", file("cert.pem")];
  return linesOf(
    await idmint(["doctor", "--address", at, "--json", ...(at === address ? tls : []), ...more]),
  );
}

/** The one line that is not ok. */
function only(lines: readonly Line[]): Line | undefined {
  const wrong = lines.filter(({ status }) => status !== "ok");
  expect(wrong, JSON.stringify(wrong)).toHaveLength(1);
  return wrong[0];
}

test("a healthy fleet is all ok, within 3 s", async () => {
  const all = [
    "doctor",
    "--config",
    configuration(),
    "--address",
    address,
    "--ca-file",
    file("cert.pem"),
  ];
  const env = { IDMINT_STORE_PASSWORD_FILE: file("password") };
  // The quickest of three, since the machine of a test has more to do than this.
  let tookMs = Infinity;
  let ran = await idmint([...all, "--json"], { env });
  for (let run = 0; run < 3 && tookMs > 3_000; run++) {
    const start = performance.now();
    ran = await idmint([...all, "--json"], { env });
    tookMs = performance.now() - start;
  }
  const lines = linesOf(ran);
  expect(lines.filter(({ status }) => status !== "ok")).toEqual([]);
  expect([ran.exitCode, ran.err]).toEqual([0, ""]);
  expect(lines.map(({ check }) => check)).toEqual([
    "dns",
    "tcp",
    "tls",
    "health",
    "server store",
    "reflection",
    "fleet",
    "fleet addresses",
    "configuration",
    "secrets",
    "files",
    "open files",
    "store",
    "schema",
    "store id",
    "store database",
    "store settings",
    "redis default",
    "clocks",
  ]);
  expect(tookMs).toBeLessThan(3_000);
  const { out } = await idmint(all, { env });
  expect(out).toMatch(/^ok +clocks +3 clocks within \d+ ms$/m);
});

// Against a server.

test("a name that does not resolve, and the checks that are left out for it", async () => {
  const ran = await idmint(["doctor", "--address", "nobody.invalid:7600"]);
  expect(ran.exitCode).toBe(5);
  expect(ran.out).toMatch(/^fail +dns +nobody\.invalid does not resolve[^]*→ correct --address/);
  expect(ran.out).toContain("not looked at: tcp (needs dns), health (needs tcp)");
  expect(ran.err).toContain("1 of 2 lines say fail");
});

test("a port where nobody listens", async () => {
  const line = only(await onServer(`127.0.0.1:${await freePort(20_000, 29_000)}`));
  expect(line).toMatchObject({ check: "tcp", status: "fail" });
  expect(line?.fix).toContain("start the server");
});

test("a certificate of another authority", async () => {
  writeFileSync(file("other-ca.pem"), selfSigned("localhost").cert);
  const line = only(await onServer(address, "--ca-file", file("other-ca.pem")));
  expect(line).toMatchObject({ check: "tls", status: "fail" });
  expect(line?.fix).toContain("--ca-file");
});

test("a server without the TLS that the caller wants", async () => {
  const { address: at, stop } = await playServer({});
  onTestFinished(stop);
  const line = only(await onServer(at, "--tls"));
  expect([line?.check, line?.fix]).toEqual(["tls", expect.stringContaining("leave out --tls")]);
});

test("an expired certificate, seen from outside and on the machine", async () => {
  const { cert, key } = selfSigned("localhost", { until: "20210101000000Z" });
  writeFileSync(file("old.pem"), cert);
  writeFileSync(file("old-key.pem"), key, { mode: 0o600 });
  const files = { "tls.cert_file": file("old.pem"), "tls.key_file": file("old-key.pem") };
  const onDisk = only(await onMachine(files));
  expect(onDisk).toMatchObject({ check: "files", status: "fail" });
  expect(onDisk?.found).toContain("expired at Jan  1 00:00:00 2021");
  const config = loadConfig({
    env: serverEnv(),
    flags: {
      config: configuration({ ...files, "grpc.address": "127.0.0.1:0" }),
      "store-url": `sqlite:${file("old.db")}`,
      "redis-urls": "",
    },
  });
  await migrateStore(creating(storeConfigOf(config)), { dryRun: false });
  const server = await startServer(config);
  onTestFinished(() => server.close());
  const at = server.grpcAddress.replace("127.0.0.1", "localhost");
  const line = only(await onServer(at, "--ca-file", file("old.pem")));
  expect(line).toMatchObject({ check: "tls", status: "fail" });
  expect(line?.fix).toContain("renew it");
});

test("servers of two versions, and one that nobody finds", async () => {
  await database.query(
    `INSERT INTO idmint.node SELECT 'n-old', 'old-1', '', '0.0.1', zone, started_at_ms, max_offline_ms,
       renewals, incarnation, obeyed, traffic FROM idmint.node LIMIT 1`,
  );
  onTestFinished(async () => {
    await database.query("DELETE FROM idmint.node WHERE id = 'n-old'");
  });
  let lines: readonly Line[] = [];
  await expect
    .poll(async () => {
      lines = await onServer();
      return lines.some(({ found }) => found.includes("servers of 2 versions"));
    })
    .toBe(true);
  const skew = lines.find(({ found }) => found.includes("versions"));
  expect(skew).toMatchObject({ check: "fleet", status: "warn" });
  expect(skew?.found).toMatch(/0\.0\.0 \(1\).*0\.0\.1 \(1\)/);
  expect(skew?.fix).toContain("finish the upgrade");
  const silent = lines.find(({ check }) => check === "fleet addresses");
  expect(silent?.fix).toContain("node.advertise");
});

const health = async (): Promise<Line | undefined> =>
  (await onServer()).find(({ check }) => check === "health");

test("a server that an operator drained", async () => {
  const call = ["--address", address, "--ca-file", file("cert.pem"), "--yes"];
  expect((await idmint(["node", "drain", "host-1", ...call])).exitCode).toBe(0);
  onTestFinished(async () => {
    await idmint(["node", "undrain", "host-1", ...call]);
  });
  await expect
    .poll(health, { timeout: 20_000 })
    .toMatchObject({ status: "fail", found: "it is draining and wants no callers" });
  expect((await health())?.fix).toMatch(/^idmint node undrain \S+,/);
});

test("a server without reflection", async () => {
  const flags = {
    "store-url": `sqlite:${file("mute.db")}`,
    "log-level": "silent",
    reflection: "off",
  };
  const ports = { "grpc-address": "127.0.0.1:0", "http-address": "none" };
  const config = loadConfig({ env: serverEnv(), flags: { ...flags, ...ports } });
  await migrateStore(creating(storeConfigOf(config)), { dryRun: false });
  const server = await startServer(config);
  onTestFinished(() => server.close());
  const line = only(await onServer(server.grpcAddress));
  expect(line).toMatchObject({ check: "reflection", status: "warn", found: "it is off" });
  expect(line?.fix).toContain("reflection: on");
});

test("a server whose clock is an hour ahead", async () => {
  const env = { ...wallClockEnv(3_600_000), IDMINT_LOG_LEVEL: "silent" };
  const ahead = await serve(["start-dev"], { cwd: folder, env });
  onTestFinished(async () => {
    await ahead.stop();
  });
  const line = only(await onServer(ahead.grpcAddress));
  expect(line).toMatchObject({ check: "clocks", status: "fail" });
  expect(line?.found).toMatch(/differ by (3599|3600|3601) s/);
  expect(line?.fix).toContain("NTP");
});

// On the machine of a server.

test("options that are wrong, all of them", async () => {
  const lines = await onMachine({ "grpc.address": "7600", "limits.waiters": 0 });
  const wrong = lines.filter(({ check, status }) => check === "configuration" && status === "fail");
  expect(wrong).toHaveLength(2);
  expect(wrong[0]?.fix).toContain("idmint config check");
});

test("a key and a password that others may read, and a key of another certificate", async () => {
  chmodSync(file("key.pem"), 0o644);
  chmodSync(file("password"), 0o640);
  onTestFinished(() => {
    chmodSync(file("key.pem"), 0o600);
    chmodSync(file("password"), 0o600);
  });
  const env = { IDMINT_STORE_PASSWORD_FILE: file("password") };
  const ran = await idmint(["doctor", "--config", configuration(), "--json"], { env });
  const fixes = linesOf(ran).flatMap(({ fix }) => fix ?? []);
  expect(fixes).toEqual([`chmod 600 ${file("password")}`, `chmod 600 ${file("key.pem")}`]);
  writeFileSync(file("other-key.pem"), selfSigned("localhost").key, { mode: 0o600 });
  const line = only(await onMachine({ "tls.key_file": file("other-key.pem") }));
  expect(line?.found).toContain("does not belong to the certificate");
});

test("a folder that the server cannot make its files in", async () => {
  const line = only(await onMachine({ "snowflake.cache_file": file("nowhere/leases") }));
  expect(line).toMatchObject({ check: "files", status: "fail" });
  expect(line?.found).toContain("snowflake.cache_file");
});

test("fewer open files than connections", async () => {
  const args = ["doctor", "--config", configuration(), "--json"];
  const child = spawn("sh", ["-c", 'ulimit -n 512; exec "$@"', "sh", ...CLI, ...args], {
    env: cleanEnv(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ran = await untilEnd(child);
  const line = only(linesOf(ran));
  expect([ran.exitCode, line?.check, line?.status]).toEqual([5, "open files", "fail"]);
  expect(line?.fix).toMatch(/LimitNOFILE=\d+/);
});

test("a database that does not answer, one without a schema, and one of a newer release", async () => {
  const port = await freePort(20_000, 29_000);
  const away = only(await onMachine({ "store.url": `postgres://postgres@127.0.0.1:${port}/x` }));
  expect([away?.check, away?.status]).toEqual(["store", "fail"]);
  expect(away?.fix).toContain("start the database");
  await using empty = await postgres.createDatabase();
  const none = only(await onMachine({ "store.url": empty.url }));
  expect([none?.check, none?.status]).toEqual(["schema", "fail"]);
  expect(none?.fix).toContain("idmint migrate --yes");
  await database.query(
    "INSERT INTO idmint.migration (number, name, checksum, works_from) VALUES (9000, 'from-the-future', '', 9000)",
  );
  const newer = only(await onMachine());
  await database.query("DELETE FROM idmint.migration WHERE number = 9000");
  expect(newer?.fix).toContain("upgrade idmint");
});

test("PostgreSQL with fsync off, refused or allowed by name", async () => {
  await postgres.query("ALTER SYSTEM SET fsync = off");
  await postgres.query("SELECT pg_reload_conf()");
  onTestFinished(async () => {
    await postgres.query("ALTER SYSTEM RESET fsync");
    await postgres.query("SELECT pg_reload_conf()");
  });
  await expect
    .poll(async () => (await onMachine()).filter(({ status }) => status === "fail"))
    .toHaveLength(1);
  const line = only(await onMachine());
  expect([line?.check, line?.fix]).toEqual([
    "store settings",
    expect.stringContaining("fsync = on"),
  ]);
  const env = { IDMINT_ALLOW_UNSAFE_STORE: "fsync" };
  const ran = await idmint(["doctor", "--config", configuration(), "--json"], { env });
  expect([ran.exitCode, only(linesOf(ran))?.status]).toEqual([0, "warn"]);
});

test("a Redis that is away, a replica, removes keys, or keeps no log", async () => {
  const port = await freePort(20_000, 29_000);
  const away = only(await onMachine({ "redis.urls": `redis://127.0.0.1:${port}` }));
  expect([away?.check, away?.status]).toEqual(["redis default", "fail"]);
  expect(away?.fix).toContain("start it");
  const second = only(await onMachine({ "redis.urls": replica.url }));
  expect(second).toMatchObject({ status: "fail", found: "it is a replica, which cannot count" });
  expect(second?.fix).toContain("its master");
  await redis.command("CONFIG", "SET", "maxmemory", "100mb");
  await redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
  const evicting = only(await onMachine());
  expect(evicting?.found).toContain("maxmemory-policy allkeys-lru");
  expect(evicting?.fix).toContain("maxmemory-policy noeviction");
  await redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
  await redis.command("CONFIG", "SET", "appendonly", "no");
  const forgetful = only(await onMachine());
  await redis.command("CONFIG", "SET", "appendonly", "yes");
  expect(forgetful).toMatchObject({ check: "redis default", status: "warn" });
  expect(forgetful?.fix).toContain("appendonly yes");
});
