// What a server holds that does nothing yet: which code it loaded.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFailed, onTestFinished, test } from "vitest";
import { Api } from "../../src/fleet/api.ts";
import { Child } from "../../src/fleet/child.ts";
import { CLI, SOURCE_CLI } from "../../src/program.ts";

/** Started on a new SQLite store, and asked for an id. */
async function startIdle(
  door: string,
  { env = {}, build = SOURCE_CLI }: { env?: Readonly<Record<string, string>>; build?: string },
): Promise<{ readonly server: Child; readonly folder: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-idle-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const server = new Child(build, ["start-dev", "--json"], {
    name: "server",
    env: {
      IDMINT_GRPC_DOOR: door,
      IDMINT_STORE_URL: `sqlite:${path.join(folder, "idmint.db")}`,
      IDMINT_GRPC_ADDRESS: "127.0.0.1:0",
      IDMINT_HTTP_ADDRESS: "127.0.0.1:0",
      ...env,
    },
  });
  onTestFinished(async () => {
    await server.kill();
  });
  onTestFailed(() => console.log(server.describe()));
  await server.waitForOutput("grpcAddress");
  const { grpcAddress } = JSON.parse(server.stdout) as { readonly grpcAddress: string };
  using api = new Api(grpcAddress);
  expect(await api.id("demo")).toBeGreaterThan(0n);
  return { server, folder };
}

/** The files that a server had loaded when it stopped, in all of its threads, by what V8 knows to have run. */
async function loadedBy(door: string): Promise<readonly string[]> {
  const coverage = mkdtempSync(path.join(tmpdir(), "idmint-loaded-"));
  onTestFinished(() => rmSync(coverage, { recursive: true }));
  const { server } = await startIdle(door, { env: { NODE_V8_COVERAGE: coverage } });
  server.signal("SIGTERM");
  expect(await server.waitForEnd(30_000)).toEqual({ code: 0, signal: null });
  const reports = readdirSync(coverage).map((name) => {
    const text = readFileSync(path.join(coverage, name), "utf8");
    return JSON.parse(text) as { readonly result: readonly { readonly url: string }[] };
  });
  return reports.flatMap(({ result }) => result.map(({ url }) => url));
}

const isOf = (name: string) => (url: string) => url.includes(`/node_modules/${name}/`);

/** Each is needed by some servers: on grpc-js, by other stores, for exports, for unguessable ids. */
const DRIVERS = ["@grpc/grpc-js", "pg", "ioredis", "@opentelemetry/api", "@noble/ciphers"];

test("a server on the fast door with a store of its own loads no driver that it does not use", async () => {
  const loaded = await loadedBy("fast");
  for (const name of DRIVERS) expect(loaded.filter(isOf(name))).toEqual([]);
  expect(loaded.filter((url) => url.includes("/gen/descriptors"))).toEqual([]);
  expect(loaded.filter((url) => url.includes("/grpc/") && url.endsWith("door.ts"))).toEqual([]);
  // Of what it does use, to know that nothing is overlooked.
  expect(loaded.filter(isOf("pino")).length).toBeGreaterThan(0);
  expect(loaded.filter((url) => url.endsWith("/store/sqlite/thread.ts"))).toHaveLength(1);
});

test("a server on grpc-js does not load the fast door", async () => {
  const loaded = await loadedBy("grpc-js");
  expect(loaded.filter(isOf("@grpc/grpc-js")).length).toBeGreaterThan(50);
  expect(loaded.filter((url) => url.includes("/server/src/fast/"))).toEqual([]);
});

/**
 * What one takes for itself that serves nobody. Pages of Node's own file do not count: how many of its 120 MB are there is a
 * matter of the machine (45 to 75 MB), and all processes share them.
 */
const IDLE_MB = 55;

test("a server that serves nobody stays small", async () => {
  // Of the source, what compiles it would stay too: 20 to 40 MB, which are not the server's.
  const { server } = await startIdle("fast", { build: CLI });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  expect(Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) / 1_024).toBeLessThanOrEqual(IDLE_MB);
});
