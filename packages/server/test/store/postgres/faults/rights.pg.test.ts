// Servers whose role may do too little, and databases that take no writes or not every text.
import { readFileSync } from "node:fs";
import { IdmintError } from "@idmint/core";
import type { LedgerRow } from "@idmint/core/server";
import { serverEnv } from "@idmint/testkit";
import { createTestDatabase, type TestDatabase } from "@idmint/testkit/postgres";
import { settingsOf } from "@idmint/testkit/store-suite";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../../../src/config/load.ts";
import { startServer } from "../../../../src/main/app.ts";
import type { RunningServer } from "../../../../src/main/running.ts";
import type { ServerEvent } from "../../../../src/service/events.ts";
import {
  migrateStore,
  openStore,
  type PostgresConfig,
  storeStatus,
} from "../../../../src/store/open-store.ts";
import { call, clientsOf } from "../../../support.ts";
import { CreateTagRequest, TagServiceService } from "@idmint/proto";
import type { TagServiceClient } from "@idmint/proto/grpc-js";

const UNSAFE = ["fsync", "full_page_writes"];
/** The rights that docs/postgres.md gives the role of a server. */
const GRANTS = readFileSync(
  new URL("../../../../../../docs/postgres.md", import.meta.url),
  "utf8",
).match(/^GRANT .* ON .* TO idmint_server;$/gm) as readonly string[];

let database: TestDatabase;
let role: string;
let config: PostgresConfig;

/** A store, and a role that serves it and may do what it needs. */
async function storeFor(url: string): Promise<void> {
  await migrateStore({ backend: "postgres", url, allowUnsafe: UNSAFE }, { dryRun: false });
  role = `server_${database.name}`;
  await database.query(
    `CREATE ROLE "${role}" LOGIN; ${GRANTS.join("\n").replaceAll("idmint_server", `"${role}"`)}`,
  );
  const its = new URL(url);
  its.username = role;
  config = { backend: "postgres", url: its.href, allowUnsafe: UNSAFE };
}

beforeEach(async () => {
  database = await createTestDatabase();
  await storeFor(database.url);
  const its = database;
  onTestFinished(async () => {
    await its.query(`DROP OWNED BY "${role}"; DROP ROLE "${role}"`);
    await its.close();
  });
});

async function start(
  more: Record<string, string> = {},
): Promise<{ server: RunningServer; events: ServerEvent[]; log: string[] }> {
  const events: ServerEvent[] = [];
  const log: string[] = [];
  const flags = {
    "store-url": config.url,
    "allow-unsafe-store": UNSAFE.join(","),
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "store-start-timeout": "2s",
    "log-format": "json",
    ...more,
  };
  const server = await startServer(loadConfig({ env: serverEnv(), flags, defaults: {} }), {
    onEvent: (event) => events.push(event),
    logSink: { write: (line) => log.push(line) },
  });
  onTestFinished(() => server.close());
  return { server, events, log };
}

async function create(tags: TagServiceClient, name: string): Promise<unknown> {
  const tag = { name, kind: { $case: "segment", value: {} } } as const;
  return call(tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
}

test.each([
  [
    "a database that takes no writes",
    'ALTER ROLE "$" SET default_transaction_read_only = on',
    /in a read-only transaction.*default_transaction_read_only/,
  ],
  [
    "a role that may only read",
    'REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA idmint FROM "$"',
    /permission denied for table.*grant the role/,
  ],
  [
    "a role that may not keep the rows of servers",
    'REVOKE INSERT ON idmint.node FROM "$"',
    /permission denied for table node.*grant the role/,
  ],
  [
    "a role that may not know the cluster",
    "REVOKE EXECUTE ON FUNCTION pg_control_system FROM PUBLIC",
    /permission denied for function pg_control_system.*grant the role/,
  ],
])("%s ends a start at once, in PostgreSQL's own words", async (_what, sql, words) => {
  await database.query(sql.replaceAll("$", role));
  const refused = start();
  await expect(refused).rejects.toMatchObject({
    reason: "STORE_REFUSED",
    retryable: false,
    message: expect.stringMatching(words) as string,
  });
});

test("a server that runs goes on when its database takes no writes for a while, and says why", async () => {
  const { server, events, log } = await start();
  const { tags } = clientsOf(server.grpcAddress);
  await database.query(`ALTER ROLE "${role}" SET default_transaction_read_only = on;
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`);
  await expect
    .poll(() => server.node.status(), { timeout: 5_000 })
    .toMatchObject({
      reachable: false,
      state: "DEGRADED",
      stateReason: expect.stringMatching(/in a read-only transaction/) as string,
    });
  const refusal = { code: "UNAVAILABLE", reason: "STORE_UNAVAILABLE" };
  await expect(create(tags, "t")).rejects.toMatchObject(refusal);
  // Of an outage there is one line, whatever fails in it.
  expect(log.filter((line) => line.includes("25006"))).toHaveLength(1);
  await database.query(`ALTER ROLE "${role}" SET default_transaction_read_only = off;
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`);
  await expect
    .poll(() => events.filter(({ type }) => type === "store-back"), { timeout: 5_000 })
    .toHaveLength(1);
});

test("a change that the store refuses is in the log once, with its cause", async () => {
  const { server, log } = await start();
  const { tags } = clientsOf(server.grpcAddress);
  await database.query(`REVOKE INSERT ON idmint.tag FROM "${role}"`);
  for (const name of ["t", "u"]) {
    await expect(create(tags, name)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  }
  const told = log.filter((line) => line.includes("42501 permission denied for table tag"));
  expect(told).toHaveLength(1);
  expect(told[0]).toContain("TagService/CreateTag");
});

test.each(["access", "token"])(
  "a server that may not read the table %s is not ready, says why once, and counts",
  async (table) => {
    await database.query(`REVOKE SELECT ON idmint.${table} FROM "${role}"`);
    const { server, events, log } = await start({ "access-anonymous": "issue" });
    const words = new RegExp(`permission denied for table ${table}`);
    expect(server.node.health).toMatchObject({ ready: false, state: "DEGRADED" });
    expect(server.node.status().stateReason).toMatch(words);
    const looks = (): number => events.filter(({ type }) => type === "callers-unread").length;
    await expect.poll(looks, { timeout: 5_000 }).toBeGreaterThan(2);
    expect(log.filter((line) => words.test(line))).toHaveLength(1);
    await database.query(`GRANT SELECT ON idmint.${table} TO "${role}"`);
    await expect.poll(() => server.node.health, { timeout: 5_000 }).toMatchObject({ ready: true });
    expect(server.node.status().state).toBe("SERVING");
    expect(log.at(-1)).toContain("the store fails no more");
  },
);

test("a refusal of one statement leaves the connections as they are", async () => {
  const store = await openStore({ ...config, poolSize: 1 });
  onTestFinished(() => store.close());
  const pid = async () =>
    (await database.query(`SELECT pid FROM pg_stat_activity WHERE usename = '${role}'`))[0]?.[
      "pid"
    ];
  await store.getTags(["t"]);
  const before = await pid();
  await database.query(`REVOKE INSERT ON idmint.tag FROM "${role}"`);
  for (let turn = 0; turn < 3; turn++) {
    await expect(store.createTag(settingsOf("t"))).rejects.toThrow("permission denied");
  }
  expect(await pid()).toBe(before);
});

function row(instance: string, sequence: bigint): LedgerRow {
  return {
    tag: "t",
    entry: "allocation",
    firstId: sequence,
    lastId: sequence,
    version: sequence,
    epoch: 1n,
    nodeId: "n",
    server: "s",
    sequence,
    instance,
    principal: "é",
    atMs: 0,
  };
}

test("a text that the database cannot store is the caller's fault, and fails nothing else", async () => {
  const latin = `${database.name}_latin`;
  await database.query(
    `CREATE DATABASE "${latin}" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`,
  );
  const url = new URL(database.url);
  url.pathname = `/${latin}`;
  const its: PostgresConfig = { backend: "postgres", url: url.href, allowUnsafe: UNSAFE };
  await migrateStore(its, { dryRun: false });
  const store = await openStore(its);
  onTestFinished(async () => {
    await store.close();
    await database.query(`DROP DATABASE "${latin}" WITH (FORCE)`);
  });
  for (const description of ["a\0b", "中文"]) {
    const error = await store
      .createTag({ ...settingsOf("t"), description })
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(IdmintError);
    expect(error).toMatchObject({ reason: "INVALID_ARGUMENT", retryable: false });
  }
  const rows = [row("plain", 1n), row("a\0b", 2n), row("中文", 3n)];
  await store.recordLedger(rows, { keepForMs: 1e9, maxRows: 100 });
  const page = await store.listLedger({ tag: "t", after: undefined, limit: 10 });
  expect(page.rows.map(({ instance }) => instance)).toEqual([
    "plain",
    String.raw`a\u{0}b`,
    String.raw`\u{4e2d}\u{6587}`,
  ]);
  const event = { kind: "refusal", atMs: 1, id: "1", principal: "中\0", proof: "token" } as const;
  const more = {
    peer: "",
    method: "",
    server: "",
    resource: "",
    outcome: "",
    before: "",
    after: "",
  };
  await store.recordAudit([{ ...event, ...more, omitted: 0 }]);
  const query = { kind: "refusal", before: undefined, sinceMs: 0, limit: 10 } as const;
  expect((await store.listAudit(query))[0]?.principal).toBe(String.raw`\u{4e2d}\u{0}`);
});

test("a status names what a role lacks, a database that takes no writes, and its encoding", async () => {
  expect((await storeStatus(config)).findings).toEqual([]);
  await database.query(`REVOKE INSERT, UPDATE ON idmint.node FROM "${role}";
    REVOKE SELECT ON idmint.access FROM "${role}";
    REVOKE EXECUTE ON FUNCTION pg_control_system FROM PUBLIC;
    ALTER ROLE "${role}" SET default_transaction_read_only = on`);
  const { findings, tags } = await storeStatus(config);
  expect(tags).toBe(0);
  expect(findings).toMatchObject([
    {
      name: "rights",
      isFatal: true,
      found: expect.stringContaining("INSERT, UPDATE on idmint.node") as string,
    },
    { name: "read_only", isFatal: true },
  ]);
  expect(findings?.[0]?.found).toContain("SELECT on idmint.access");
  expect(findings?.[0]?.found).toContain("EXECUTE on pg_control_system");
});
