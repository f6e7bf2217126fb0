// What people are told whose configuration is wrong, by a real server that wants a password.
import { spawnSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { TestPostgres } from "@idmint/testkit/postgres";
import { reasonOf } from "@idmint/testkit/store-suite";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import {
  migrateStore,
  openStore,
  type PostgresConfig,
  storeStatus,
} from "../../../src/store/open-store.ts";
import { migrateTicketDatabase, openTicketDatabases } from "../../../src/store/open-tickets.ts";
import { withPlainSslMode } from "../../../src/store/postgres/hosts/connection.ts";
import { STORE_SCHEMA } from "../../../src/store/postgres/migrate.ts";
import { open as openPostgres } from "../../../src/store/postgres/store.ts";

const SECRET = "s3cr3t";
let server: TestPostgres;
let config: PostgresConfig;

beforeAll(async () => {
  server = await TestPostgres.start();
  const database = await server.createDatabase();
  await database.query(`CREATE ROLE owner LOGIN SUPERUSER PASSWORD '${SECRET}';
    CREATE ROLE guest LOGIN PASSWORD '${SECRET}'`);
  const [file] = await database.query("SELECT current_setting('hba_file') AS name");
  await database.query(`COPY (VALUES ('host all owner,guest 127.0.0.1/32 scram-sha-256'),
    ('host all stranger 127.0.0.1/32 reject'), ('host all all 127.0.0.1/32 trust'))
    TO '${String(file?.["name"])}'; SELECT pg_reload_conf()`);
  const url = new URL(database.url);
  url.username = "owner";
  url.password = SECRET;
  config = { backend: "postgres", url: url.href, allowUnsafe: ["fsync", "full_page_writes"] };
  await migrateStore(config, { dryRun: false });
});
afterAll(async () => server.close());

function urlWith(
  change: Partial<Pick<URL, "password" | "pathname" | "port" | "search" | "username">>,
): PostgresConfig {
  const url = Object.assign(new URL(config.url), change);
  return { ...config, url: url.href };
}

test.each([
  [
    "a wrong password",
    { password: "other" },
    "password authentication failed",
    "the password in IDMINT_STORE_PASSWORD",
  ],
  [
    "no password",
    { password: "" },
    "wants a password, and none is configured",
    "set the password in IDMINT_STORE_PASSWORD",
  ],
  [
    "a user that is not let in",
    { username: "stranger" },
    "pg_hba.conf rejects",
    "the user in its URL",
  ],
  [
    "a wrong database",
    { pathname: "/nowhere" },
    'database "nowhere" does not exist',
    "name of the database",
  ],
  ["a role without permissions", { username: "guest" }, "permission denied", "grant the role"],
  [
    "a file of an authority that is not there",
    { search: "?sslmode=verify-full&sslrootcert=/nowhere/ca.pem" },
    "no such file",
    "sslrootcert",
  ],
  ["TLS that the server lacks", { search: "?sslmode=require" }, "does not support SSL", "sslmode"],
] as const)(
  "%s is told with what the server said, and is not tried again",
  async (_what, change, said, wayOut) => {
    const wrong = urlWith(change);
    const works = [
      async (): Promise<unknown> => openStore(wrong),
      async (): Promise<unknown> => storeStatus(wrong),
      async (): Promise<unknown> => migrateStore(wrong, { dryRun: true }),
    ];
    for (const work of works) {
      const error: unknown = await work().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({
        reason: "STORE_REFUSED",
        retryable: false,
        retryAfterMs: undefined,
      });
      const { message } = error as Error;
      expect(message).toContain(`127.0.0.1:${server.port}`);
      expect(message).toContain(said);
      expect(message).toContain(wayOut);
      expect(message).not.toContain(SECRET);
    }
  },
);

/** Those that are made from now on, while the test runs. */
function watchSockets(): ReadonlySet<Socket> {
  const made = new Set<Socket>();
  const watch = (message: unknown): void => void made.add((message as { socket: Socket }).socket);
  subscribe("net.client.socket", watch);
  onTestFinished(() => void unsubscribe("net.client.socket", watch));
  return made;
}

test.each(["", "other"])(
  "nothing stays open after the password %j was refused",
  async (password) => {
    const sockets = watchSockets();
    expect(await reasonOf(migrateStore(urlWith({ password }), { dryRun: true }))).toBe(
      "STORE_REFUSED",
    );
    expect(sockets.size).toBeGreaterThan(0);
    await expect.poll(() => [...sockets].filter(({ closed }) => !closed)).toEqual([]);
  },
);

test("a role that has all its connections is told apart from a server that has", async () => {
  const database = await server.createDatabase();
  await database.query(`CREATE ROLE few LOGIN CONNECTION LIMIT 0 PASSWORD '${SECRET}'`);
  await expect(openStore(urlWith({ username: "few" }))).rejects.toMatchObject({
    reason: "STORE_UNAVAILABLE",
    message: expect.stringMatching(
      /too many connections for role "few".*CONNECTION LIMIT/u,
    ) as string,
  });
});

test("a file that is missing is told by a URL of several hosts too", async () => {
  const url = config.url.replace("127.0.0.1", "127.0.0.1:1,127.0.0.1");
  const wrong = { ...config, url: `${url}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem` };
  await expect(openStore(wrong)).rejects.toThrow(/no such file.*sslrootcert/u);
});

function configAt(host: string, more = ""): PostgresConfig {
  return { ...config, url: `postgres://postgres@${host}/postgres${more}` };
}

test("a Unix socket stands in the place of the host, and another writing of it is told how", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-socket-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o777);
  await using own = await TestPostgres.start({ settings: { unix_socket_directories: folder } });
  const its = configAt(`${encodeURIComponent(folder)}:${own.port}`);
  await migrateStore(its, { dryRun: false });
  await (await openStore(its)).close();
  await expect(openStore(configAt("", `?host=${folder}`))).rejects.toThrow("%2Frun%2Fpostgresql");
});

test("a wrong port is told, and may be tried again", async () => {
  await expect(openStore(urlWith({ port: "1" }))).rejects.toMatchObject({
    reason: "STORE_UNAVAILABLE",
    retryAfterMs: undefined,
    message: expect.stringMatching(
      /127\.0\.0\.1:1 does not answer .*ECONNREFUSED.*host and port/u,
    ) as string,
  });
});

test.each(["require", "verify-ca"])(
  "with sslmode=%s the driver says nothing on stderr of its own",
  async (mode) => {
    const { url } = urlWith({ search: `?sslmode=${mode}` });
    const open = "await new pg.Client({ connectionString: withPlainSslMode(process.argv[1]) })";
    const program = `import pg from "pg";
      import { withPlainSslMode } from "../../../src/store/postgres/hosts/connection.ts"; ${open}`;
    const args = ["-C", "idmint-source", "--input-type=module-typescript", "-e", program, url];
    const run = spawnSync(process.execPath, args, { cwd: import.meta.dirname, encoding: "utf8" });
    expect([run.status, run.stderr]).toEqual([0, ""]);
    const strict = `${url.slice(0, url.indexOf("sslmode="))}sslmode=verify-full`;
    expect(withPlainSslMode(url)).toBe(strict);
    expect(withPlainSslMode(`${url}&uselibpqcompat=true`)).toBe(`${url}&uselibpqcompat=true`);
  },
);

test("an answer that is an error is not told as no answer", async () => {
  const database = await server.createDatabase();
  const name = new URL(database.url).pathname;
  await server.query(`ALTER DATABASE "${name.slice(1)}" ALLOW_CONNECTIONS false`);
  await expect(openStore(urlWith({ pathname: name, username: "guest" }))).rejects.toMatchObject({
    reason: "STORE_UNAVAILABLE",
    message: expect.stringMatching(
      /answers with an error \(.*not currently accepting connections.*\)/u,
    ) as string,
  });
});

test("a server that was let in once takes a refusal for a passing one", async () => {
  const store = await openPostgres({ ...config, poolSize: 1 });
  const database = await server.createDatabase();
  try {
    await database.query(`ALTER ROLE owner PASSWORD 'changed';
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'owner'`);
    await expect.poll(async () => reasonOf(store.getTags(["t"]))).toBe("STORE_UNAVAILABLE");
    await expect(store.getTags(["t"])).rejects.toMatchObject({
      message: "STORE_UNAVAILABLE: PostgreSQL failed or did not answer",
    });
  } finally {
    await database.query(`ALTER ROLE owner PASSWORD '${SECRET}'`);
    await store.close();
  }
});

test("a server that quotes all identifiers finds its schemas", async () => {
  const database = await server.createDatabase();
  await database.query(`ALTER DATABASE "${database.name}" SET quote_all_identifiers = on`);
  const its = { ...config, url: database.url };
  const ticket = { ...its, name: "a" };
  for (const created of [true, false]) {
    expect(await migrateStore(its, { dryRun: false })).toMatchObject({ created });
    expect(await migrateTicketDatabase(ticket, { dryRun: false })).toMatchObject({ created });
  }
  await (await openStore(its)).close();
  expect((await storeStatus(its)).schemaVersion).toBe(STORE_SCHEMA.migrations.length);
});

test("a ticket database without its schema is told how to get one", async () => {
  const database = await server.createDatabase();
  const [ticket] = await openTicketDatabases([{ ...config, url: database.url, name: "a" }]);
  await expect(ticket?.listSlotsIds({ afterSlotsId: "", limit: 1 })).rejects.toMatchObject({
    reason: "SCHEMA_MISMATCH",
    message: expect.stringContaining("run: idmint ticket migrate") as string,
  });
  await ticket?.close();
});
