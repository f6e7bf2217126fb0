// Servers and commands that run as the rendered chart says, as far as that goes without a cluster: with its variables, files and
// arguments. What the cluster would give is replaced: addresses, and the database's name.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { credentials } from "@grpc/grpc-js";
import { HealthClient } from "@idmint/proto/grpc-js";
import {
  type HealthCheckResponse_ServingStatus,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "@idmint/proto/health";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { selfSigned } from "../../src/certificate.ts";
import { CHART, type Manifest, renderChart, type Rendering } from "../../src/deploy/helm.ts";
import { Child, killChildren, runCli } from "../../src/fleet/child.ts";
import { CLI } from "../../src/program.ts";
import { until } from "../../src/fleet/until.ts";
import { TestPostgres } from "../../src/postgres.ts";
import { blocksOf } from "./chart-values.ts";
import {
  type Cluster,
  type Container,
  envOf,
  filesOf,
  podOf,
  type PodSpec,
  type Probe,
  type SecretKey,
} from "./pods.ts";

const PATIENCE = { withinMs: 60_000 };

let rendering: Rendering;
let postgres: TestPostgres;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "idmint-chart-server-"));
  const names = ["minimal", "three-zones", "tls-and-tokens"];
  rendering = renderChart(
    new Map(names.map((name) => [name, path.join(CHART, "examples", `${name}.yaml`)])),
  );
  postgres = await TestPostgres.start({ durable: true });
});

afterEach(killChildren);

afterAll(async () => {
  await postgres.close();
  rmSync(folder, { recursive: true, force: true });
});

function manifests(name: string, kind: string): readonly Manifest[] {
  const found = rendering.rendered.get(name);
  if (found === undefined) throw new Error(`${name}: ${rendering.refused.get(name)}`);
  return found.manifests.filter((manifest) => manifest.kind === kind);
}

interface Pod {
  readonly pod: PodSpec;
  readonly container: Container;
}

function podIn(name: string, kind: string): Pod {
  const [manifest] = manifests(name, kind);
  const pod = manifest === undefined ? undefined : podOf(manifest);
  const [container] = pod?.containers ?? [];
  if (pod === undefined || container === undefined) throw new Error(`${name} has no ${kind}`);
  return { pod, container };
}

const cluster = (secret: (key: SecretKey) => string): Cluster => ({
  secret,
  field: (field) => ({ "metadata.name": "idmint-1", "status.podIP": "127.0.0.1" })[field],
});

const unsaid = cluster(() => "unused");

/** What a container's variables say, on this machine: the database is here, and ports are free ones of loopback. */
function here(env: Readonly<Record<string, string>>, database: string): Record<string, string> {
  const local: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (/^IDMINT_(?:GRPC|HTTP|ADMIN)_ADDRESS$/.test(name)) local[name] = "127.0.0.1:0";
    else if (name === "IDMINT_STORE_URL") local[name] = postgres.url(database);
    else local[name] = value.replaceAll("/etc/idmint/", `${folder}/`);
  }
  // The test's PostgreSQL is fit for production but slow beside others.
  return { ...local, IDMINT_STORE_TIMEOUT: "30s" };
}

interface Serving {
  readonly child: Child;
  readonly grpcAddress: string;
  readonly httpAddress: string;
  readonly adminAddress: string;
}

async function serve({ container }: Pod, env: Readonly<Record<string, string>>): Promise<Serving> {
  const child = new Child(CLI, [...container.args, "--json"], { name: "a pod", env });
  await child.waitForOutput("\n");
  return { child, ...(JSON.parse(child.stdout) as Omit<Serving, "child">) };
}

/** What the kubelet finds out: true when the probe succeeds. */
async function probe(its: Probe | undefined, server: Serving): Promise<boolean> {
  if (its?.httpGet !== undefined) {
    return (await fetch(`http://${server.httpAddress}${its.httpGet.path}`)).ok;
  }
  const client = new HealthClient(server.grpcAddress, credentials.createInsecure());
  try {
    const service = its?.grpc?.service ?? "";
    const answer = await new Promise<HealthCheckResponse_ServingStatus>((resolve, reject) => {
      client.check({ service }, (error, answered) => {
        if (error === null) resolve(answered.status);
        else reject(error);
      });
    });
    return answer === ServingStatus.SERVING;
  } finally {
    client.close();
  }
}

async function migrate(name: string, database: string): Promise<void> {
  await postgres.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
  await postgres.query(`CREATE DATABASE ${database}`);
  const { container } = podIn(name, "Job");
  // Twice, as an install and an upgrade do.
  for (const _ of [1, 2]) {
    const ran = await runCli(container.args, here(envOf(container, unsaid), database));
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
  }
}

test("the job migrates, the server serves, and an outage of its store makes it unready and not dead", async () => {
  await migrate("minimal", "minimal");
  const pod = podIn("minimal", "Deployment");
  const { startupProbe, livenessProbe, readinessProbe } = pod.container;
  const server = await serve(pod, here(envOf(pod.container, unsaid), "minimal"));
  const probes = async (): Promise<readonly boolean[]> =>
    Promise.all([startupProbe, livenessProbe, readinessProbe].map((its) => probe(its, server)));
  expect(await probes()).toEqual([true, true, true]);

  await postgres.stop("kill");
  await until("it is unready", async () => !(await probe(readinessProbe, server)), PATIENCE);
  expect(await probes()).toEqual([true, true, false]);
  await postgres.start();
  await until("it is ready again", async () => probe(readinessProbe, server), PATIENCE);

  const grace = pod.pod.terminationGracePeriodSeconds ?? 0;
  server.child.signal("SIGTERM");
  expect(await server.child.waitForEnd(grace * 1_000)).toEqual({ code: 0, signal: null });
});

/** The code block of a chapter of the page that begins so. */
function snippet(chapter: string, language: string, first: string): string {
  const found = blocksOf(chapter, language).find((code) => code.startsWith(first));
  if (found === undefined) throw new Error(`${chapter} has no block that begins with ${first}`);
  return found;
}

/** Puts the keys of Secrets where a container finds them. */
function mount({ pod, container }: Pod, contents: Readonly<Record<string, string>>): void {
  for (const [file, { key }] of filesOf(pod, container)) {
    const place = file.replace("/etc/idmint/", `${folder}/`);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, contents[key] ?? "");
    const [volume] = pod.volumes ?? [];
    chmodSync(place, volume?.projected?.defaultMode ?? 0);
  }
}

test("TLS, the page's first token, administrators' own port, and the metrics that are scaled and scraped by", async () => {
  await migrate("tls-and-tokens", "tokens");
  const made = spawnSync("sh", ["-ec", snippet("The first token", "sh", "id=")], { cwd: folder });
  expect([made.status, made.stderr.toString()]).toEqual([0, ""]);
  const { cert, key } = selfSigned("localhost");
  const pod = podIn("tls-and-tokens", "Deployment");
  mount(pod, {
    "tls.crt": cert,
    "tls.key": key,
    "ca.crt": cert,
    "access.yaml": readFileSync(path.join(folder, "access.yaml"), "utf8"),
    "key-1": `${"ab".repeat(32)}\n`,
  });
  const variables = here(
    envOf(
      pod.container,
      cluster(({ key: its }) => (its === "url" ? "http://127.0.0.1:9/hook" : "secret")),
    ),
    "tokens",
  );
  // An emptyDir.
  const cache = path.join(folder, "leases");
  const server = await serve(pod, { ...variables, IDMINT_SNOWFLAKE_CACHE_FILE: cache });
  const { readinessProbe, livenessProbe } = pod.container;
  expect(await probe(livenessProbe, server)).toBe(true);
  expect(await probe(readinessProbe, server)).toBe(true);

  const secured = ["--ca-file", path.join(folder, "extra/store-ca.crt")];
  const run = (address: string, ...args: readonly string[]) =>
    runCli([...args, "--address", address.replace("127.0.0.1", "localhost"), ...secured]);
  const withToken = ["--token-file", path.join(folder, "ops.token")];
  const { grpcAddress, adminAddress } = server;
  expect(await run(grpcAddress, "tag", "create", "orders", ...withToken)).toMatchObject({
    stderr: expect.stringContaining("METHOD_NOT_FOUND") as string,
  });
  const words = ["token", "create", "orders", "--issue", "orders", "--admin", "orders"];
  const token = await run(adminAddress, ...words, ...withToken);
  expect(token).toMatchObject({ code: 0 });
  const file = path.join(folder, "orders.token");
  writeFileSync(file, token.stdout);
  const asOrders = ["--token-file", file];
  const tag = await run(adminAddress, "tag", "create", "orders", ...asOrders);
  expect([tag.code, tag.stderr]).toEqual([0, ""]);
  const id = await run(grpcAddress, "id", "next", "orders", ...asOrders);
  expect([id.code, id.stdout]).toEqual([0, "1\n"]);
  expect(await run(grpcAddress, "id", "next", "orders")).toMatchObject({
    stderr: expect.stringContaining("UNAUTHENTICATED") as string,
  });

  const endpoints = manifests("three-zones", "ServiceMonitor").flatMap(
    ({ spec }) => (spec as { endpoints: { port: string; path: string }[] }).endpoints,
  );
  expect(endpoints.map(({ port }) => port)).toEqual(["http"]);
  const scraped = await fetch(`http://${server.httpAddress}${endpoints[0]?.path}`);
  const names = manifests("tls-and-tokens", "HorizontalPodAutoscaler").flatMap(({ spec }) => {
    const { metrics } = spec as { metrics: { pods: { metric: { name: string } } }[] };
    return metrics.map(({ pods }) => pods.metric.name);
  });
  expect(names).toHaveLength(1);
  const text = await scraped.text();
  for (const name of names) expect(text).toMatch(new RegExp(`^${name}(\\{.*\\})? [0-9.e-]+$`, "m"));
  // The page's rule for the adapter names the same one.
  expect(snippet("Autoscaling", "yaml", "rules:")).toContain(`seriesQuery: ${names[0]}{`);
});

test("the pod of `helm test` finds a server well, with TLS too", async () => {
  await migrate("three-zones", "zones");
  const pod = podIn("three-zones", "Deployment");
  const { cert, key } = selfSigned("localhost");
  const principals = { ops: { admin: ["*"], certificates: ["ops.example"] } };
  mount(pod, { "tls.crt": cert, "tls.key": key, "access.yaml": JSON.stringify({ principals }) });
  const server = await serve(pod, here(envOf(pod.container, unsaid), "zones"));
  const tester = podIn("three-zones", "Pod");
  mount(tester, { "ca.crt": cert });
  const args = tester.container.args.map((word) =>
    word
      .replace("idmint.ids.svc:7600", server.grpcAddress.replace("127.0.0.1", "localhost"))
      .replace("/etc/idmint/", `${folder}/`),
  );
  expect(args).toContain(server.grpcAddress.replace("127.0.0.1", "localhost"));
  expect(await runCli(args)).toEqual({ code: 0, stdout: "SERVING\n", stderr: "" });
  await server.child.kill();
  expect((await runCli(args)).code).not.toBe(0);
});
