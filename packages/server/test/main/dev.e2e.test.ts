import { existsSync, linkSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import path from "node:path";
import { IdmintError } from "@idmint/core";
import { expect, onTestFinished, test } from "vitest";
import { startServer } from "../../src/main/app.ts";
import { loadConfig } from "../../src/config/load.ts";
import { startDev } from "../../src/main/dev.ts";
import { migrateStore } from "../../src/store/open-store.ts";
import { serverEnv, MemoryStore, selfSigned } from "@idmint/testkit";
import { freePort } from "@idmint/testkit/redis";
import { clientsOf, generateId, refusalOf, until } from "../support.ts";

function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), "idmint-dev-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

async function takenPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function errorOf(work: Promise<unknown>): Promise<IdmintError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof IdmintError) return error;
    throw error;
  }
  throw new Error("it worked");
}

test("start-dev makes its store and a tag, and its banner says what to type next", async () => {
  const store = path.join(folder(), "deep", "idmint.db");
  const flags = {
    "store-url": `sqlite:${store}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
  };
  const first = await startDev({ env: serverEnv(), flags });
  const { grpcAddress } = first.server;
  expect(await generateId(clientsOf(grpcAddress), "demo")).toMatchObject({ id: 1n, epoch: 1n });
  expect(first.banner).toContain(
    `grpcurl -plaintext -d '{"tag":"demo"}' ${grpcAddress} idmint.v1.IdService/GenerateId`,
  );
  expect(first.banner).toContain(
    `curl --json '{"tag":"demo"}' http://${first.server.httpAddress}/idmint.v1.IdService/GenerateId`,
  );
  await first.server.close();
  // Again over what is there: nothing is made anew, no id comes twice.
  const second = await startDev({ env: serverEnv(), flags });
  onTestFinished(() => second.server.close());
  expect(await generateId(clientsOf(second.server.grpcAddress), "demo")).toMatchObject({
    id: 2n,
    epoch: 1n,
  });
});

test.each(["grpc", "http"])(
  "a taken %s port is told before anything is made, with the flag that helps",
  async (door) => {
    const store = path.join(folder(), "idmint.db");
    const port = await takenPort();
    const flags = {
      "store-url": `sqlite:${store}`,
      "grpc-address": "127.0.0.1:0",
      "http-address": "127.0.0.1:0",
      [`${door}-address`]: `127.0.0.1:${port}`,
    };
    const error = await errorOf(startDev({ env: serverEnv(), flags }));
    expect(error.message).toContain(`127.0.0.1:${port} is taken by another program`);
    expect(error.message).toContain(`--${door}-address`);
    expect(error.violations.map((each) => each.field)).toEqual([`${door}.address`]);
    expect(existsSync(store)).toBe(false);
  },
);

test("a port that an idmint server with TLS has is told with the store it serves", async () => {
  const its = folder();
  const store = path.join(its, "idmint.db");
  const { cert, key } = selfSigned("elsewhere.example");
  const files = { cert: path.join(its, "crt"), key: path.join(its, "key") };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key, { mode: 0o600 });
  const flags = {
    "store-url": `sqlite:${store}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
  };
  const tls = { "tls-cert-file": files.cert, "tls-key-file": files.key };
  const { server } = await startDev({ env: serverEnv(), flags: { ...flags, ...tls } });
  onTestFinished(() => server.close());
  const other = `sqlite:${path.join(folder(), "other.db")}`;
  const addresses = { grpc: server.grpcAddress, http: server.httpAddress };
  for (const [door, address] of Object.entries(addresses)) {
    const taken = { ...flags, "store-url": other, [`${door}-address`]: address };
    const error = await errorOf(startDev({ env: serverEnv(), flags: taken }));
    expect(error.message).toContain(
      `is taken by an idmint server that serves the store sqlite:${store}; use it`,
    );
  }
});

test("a port that an idmint server has is told with the store it serves", async () => {
  const store = path.join(folder(), "idmint.db");
  const flags = {
    "store-url": `sqlite:${store}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
  };
  const { server } = await startDev({ env: serverEnv(), flags });
  onTestFinished(() => server.close());
  const other = path.join(folder(), "other.db");
  await migrateStore(
    { backend: "sqlite", path: other, create: true, allowUnsafe: [] },
    { dryRun: false },
  );
  const taken = [
    ["grpc", server.grpcAddress],
    ["http", server.httpAddress],
    // The same port, on all addresses of the machine.
    ["http", server.httpAddress.replace("127.0.0.1", "0.0.0.0")],
  ] as const;
  for (const [door, address] of taken) {
    const open = { insecure: "true", "access-anonymous": "all" };
    const others = { ...flags, "store-url": `sqlite:${other}`, ...open };
    const sources = { env: serverEnv(), flags: { ...others, [`${door}-address`]: address } };
    const starts = [() => startDev(sources), () => startServer(loadConfig(sources))];
    for (const start of starts) {
      const error = await errorOf(start());
      expect(error.message).toBe(
        `INVALID_ARGUMENT: ${door}.address: ${address} is taken by an idmint server that serves the store sqlite:${store}; use it, stop it, or choose another address with --${door}-address or IDMINT_${door.toUpperCase()}_ADDRESS`,
      );
    }
  }
});

test("a running server whose file gets a second name is degraded until it is gone, and needs no accept", async () => {
  const store = path.join(folder(), "idmint.db");
  const flags = {
    "store-url": `sqlite:${store}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
  };
  const { server } = await startDev({ env: serverEnv(), flags });
  onTestFinished(() => server.close());
  const clients = clientsOf(server.grpcAddress);
  expect(await generateId(clients, "demo")).toMatchObject({ id: 1n, epoch: 1n });
  const isReady = async (): Promise<boolean> => {
    const response = await fetch(`http://${server.httpAddress}/readyz`);
    return ((await response.json()) as { state: string }).state === "SERVING";
  };
  linkSync(store, `${store}.backup`);
  await until(async () => !(await isReady()), 20_000);
  // Not in memory, so the store is asked.
  const other = (): Promise<unknown> => generateId(clients, "other");
  expect(await refusalOf(other())).toMatchObject({ reason: "STORE_UNAVAILABLE" });
  rmSync(`${store}.backup`);
  await until(isReady, 20_000);
  expect(await refusalOf(other())).toMatchObject({ reason: "TAG_NOT_FOUND" });
  expect(await generateId(clients, "demo")).toMatchObject({ id: 2n, epoch: 1n });
});

test("start-dev refuses a store whose file has a second name", async () => {
  const store = path.join(folder(), "idmint.db");
  const flags = {
    "store-url": `sqlite:${store}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
    "store-start-timeout": "0s",
  };
  const first = await startDev({ env: serverEnv(), flags });
  const clients = clientsOf(first.server.grpcAddress);
  expect(await generateId(clients, "demo")).toMatchObject({ id: 1n });
  linkSync(store, `${store}.link`);
  for (const name of [store, `${store}.link`]) {
    const error = await errorOf(
      startDev({ env: serverEnv(), flags: { ...flags, "store-url": `sqlite:${name}` } }),
    );
    expect(error).toMatchObject({ reason: "STORE_UNAVAILABLE" });
    expect(error.message).toContain("2 names (hard links)");
  }
  // What is in memory is issued on; it was granted under the one name.
  expect(await generateId(clients, "demo")).toMatchObject({ id: 2n });
  await first.server.close();
  rmSync(`${store}.link`);
  // The first one could not take its row away, for which another server would wait.
  const trusting = { ...flags, "allow-unproved-store": "true" };
  const second = await startDev({ env: serverEnv(), flags: trusting });
  onTestFinished(() => second.server.close());
  expect((await generateId(clientsOf(second.server.grpcAddress), "demo")).id).toBeGreaterThan(2n);
});

test("a server that cannot listen leaves nothing behind", async () => {
  const store = new MemoryStore();
  const grpc = `127.0.0.1:${await takenPort()}`;
  const defaults = { "grpc.address": grpc, "http.address": "127.0.0.1:0", "log.level": "silent" };
  const error = await errorOf(startServer(loadConfig({ env: serverEnv(), defaults }), { store }));
  expect(error.message).toContain("--grpc-address");
  expect(store.isClosed).toBe(true);
});

test("serve never makes a store", async () => {
  const file = path.join(folder(), "idmint.db");
  const defaults = { "store.url": `sqlite:${file}`, "log.level": "silent" };
  const error = await errorOf(startServer(loadConfig({ env: serverEnv(), defaults })));
  expect(["SCHEMA_MISMATCH", "STORE_UNAVAILABLE"]).toContain(error.reason);
  expect(existsSync(file)).toBe(false);
});

test("a server whose store does not answer at the start says so and ends", async () => {
  const store = new MemoryStore({
    faults: {
      before: () => {
        throw new IdmintError("STORE_UNAVAILABLE", "it is down");
      },
    },
  });
  const defaults = {
    "grpc.address": "127.0.0.1:0",
    "http.address": "127.0.0.1:0",
    "log.level": "silent",
    "store.start_timeout": "0s",
  };
  const error = await errorOf(startServer(loadConfig({ env: serverEnv(), defaults }), { store }));
  expect(error.reason).toBe("STORE_UNAVAILABLE");
  expect(store.isClosed).toBe(true);
});

/** A store whose file somebody else has locked, until `free` is called. */
async function lockedStore(): Promise<{ readonly url: string; readonly free: () => void }> {
  const file = path.join(folder(), "idmint.db");
  await migrateStore(
    { backend: "sqlite", path: file, create: true, allowUnsafe: [] },
    { dryRun: false },
  );
  const other = new DatabaseSync(file);
  onTestFinished(() => {
    if (other.isOpen) other.close();
  });
  other.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE");
  return { url: `sqlite:${file}`, free: () => other.close() };
}

/** A server that is started on a store that does not answer, and what it says meanwhile. */
function awaiting(flags: Record<string, string>, how: "dev" | "serve" = "serve") {
  const stop = new AbortController();
  const lines: string[] = [];
  const all = {
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "store-timeout": "200ms",
    ...flags,
  };
  const logSink = { write: (line: string) => void lines.push(line) };
  const parts = { signal: stop.signal, logSink };
  const sources = { env: serverEnv(), flags: all };
  const server =
    how === "dev"
      ? startDev(sources, parts).then((dev) => dev.server)
      : startServer(loadConfig(sources), parts);
  server.catch(() => undefined);
  onTestFinished(async () => (await server.catch(() => undefined))?.close());
  const waits = (): number => lines.filter((line) => line.includes("not ready until")).length;
  return { server, stop, waits };
}

test.each(["serve", "dev"] as const)(
  "%s waits for a store that is slow to open, unready, and serves when it answers",
  async (how) => {
    const port = await freePort(20_000, 29_000);
    const { url, free } = await lockedStore();
    const flags = { "store-url": url, "http-address": `127.0.0.1:${port}` };
    const { server, waits } = awaiting(flags, how);
    await until(() => waits() > 0, 20_000);
    await expect(fetch(`http://127.0.0.1:${port}/readyz`)).rejects.toThrow("fetch failed");
    free();
    await server;
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
  },
);

test("a server gives up waiting for its store when the configured time is over", async () => {
  const { url } = await lockedStore();
  const { server } = awaiting({ "store-url": url, "store-start-timeout": "500ms" });
  expect(await errorOf(server)).toMatchObject({ reason: "STORE_UNAVAILABLE" });
});

test("a server that waits for its store ends when it is told to", async () => {
  const { url } = await lockedStore();
  const { server, stop, waits } = awaiting({ "store-url": url });
  await until(() => waits() > 0, 20_000);
  stop.abort();
  expect(await errorOf(server)).toMatchObject({ reason: "CALL_CANCELLED" });
});

test("a server whose store has no schema does not wait", async () => {
  const { server, waits } = awaiting({ "store-url": `sqlite:${path.join(folder(), "none.db")}` });
  expect(await errorOf(server)).toMatchObject({ reason: "SCHEMA_MISMATCH" });
  expect(waits()).toBe(0);
});
