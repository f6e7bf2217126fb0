// Clients that others made, against a real server: in plain text and over TLS. TEST_DOOR says on which door of gRPC.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import {
  type ChannelOptions,
  compressionAlgorithms,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { GenerateIdRequest } from "@idmint/proto";
import { IdServiceClient } from "@idmint/proto/grpc-js";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { framed } from "../bench/lib/h2load.ts";
import { selfSigned } from "../src/certificate.ts";
import { debianFiles, type Program, programOf } from "../src/debian.ts";
import { Child, CLI } from "../src/fleet/child.ts";
import { freePort } from "../src/fleet/ports.ts";
import { cacheOf, runLocked } from "../src/prepared.ts";
import { isLong } from "./fleet-support.ts";

const DEADLINE_MS = 30_000;
const STREAMS = 1_000;
const METHOD = "idmint.v1.IdService/GenerateId";
const root = path.resolve(import.meta.dirname, "../../..");
const folder = mkdtempSync(path.join(tmpdir(), "idmint-clients-"));
const authority = path.join(folder, "tls.crt");
const run = promisify(execFile);
const { cert, key } = selfSigned("localhost");
writeFileSync(authority, cert);
writeFileSync(path.join(folder, "tls.key"), key, { mode: 0o400 });

afterAll(() => rmSync(folder, { recursive: true }));

/** Begins a server with a tag `demo`; with TLS where that is wanted. */
async function start(name: string, isSecure: boolean): Promise<{ child: Child; port: number }> {
  const port = await freePort();
  const own = path.join(folder, name);
  mkdirSync(own);
  const child = new Child(CLI, ["start-dev", "--json"], {
    name,
    cwd: own,
    env: {
      IDMINT_GRPC_ADDRESS: `127.0.0.1:${port}`,
      IDMINT_HTTP_ADDRESS: "none",
      IDMINT_STORE_TIMEOUT: "30s",
      IDMINT_LOG_LEVEL: "warn",
      ...(isSecure
        ? { IDMINT_TLS_CERT_FILE: authority, IDMINT_TLS_KEY_FILE: path.join(folder, "tls.key") }
        : {}),
    },
  });
  await child.waitForOutput("grpcAddress");
  return { child, port };
}

/** A client of grpc-js with a connection of its own. */
function client(port: number, isSecure: boolean, options: ChannelOptions = {}): IdServiceClient {
  const channel = isSecure
    ? credentials.createSsl(Buffer.from(cert))
    : credentials.createInsecure();
  const made = new IdServiceClient(`localhost:${port}`, channel, {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
    ...options,
  });
  onTestFinished(() => made.close());
  return made;
}

interface Asked {
  readonly tag?: string;
  readonly metadata?: Metadata;
  readonly deadlineMs?: number;
}

/** The id, or the name of the status. */
function ask(through: IdServiceClient, asked: Asked = {}): Promise<bigint | string> {
  const { tag = "demo", metadata = new Metadata(), deadlineMs = DEADLINE_MS } = asked;
  return new Promise((resolve) => {
    const options = { deadline: Date.now() + deadlineMs };
    const done = (error: ServiceError | null, answer?: { id: bigint }): void =>
      resolve(error === null ? (answer?.id ?? 0n) : (status[error.code] ?? ""));
    through.generateId({ tag, name: "" }, metadata, options, done);
  });
}

describe.each([
  ["in plain text", false],
  ["over TLS", true],
] as const)("%s", (where, isSecure) => {
  let port = 0;
  let server: Child;

  beforeAll(async () => {
    ({ child: server, port } = await start(where, isSecure));
    return () => server.kill();
  });

  test("grpc-js: compression, large metadata, deadlines, cancellation, and 1,000 calls at once", async () => {
    const zipped = client(port, isSecure, {
      "grpc.default_compression_algorithm": compressionAlgorithms.gzip,
    });
    const metadata = new Metadata();
    metadata.set("x-large", "x".repeat(7_000));
    metadata.set("x-bytes-bin", Buffer.from([0, 1, 255]));
    const ids = await Promise.all(
      Array.from({ length: STREAMS }, (_, at) => ask(zipped, at % 100 === 0 ? { metadata } : {})),
    );
    expect(ids.filter((id) => typeof id === "string")).toEqual([]);
    expect(new Set(ids).size).toBe(STREAMS);
    expect(await ask(zipped, { deadlineMs: -1 })).toBe("DEADLINE_EXCEEDED");
    expect(await ask(zipped, { tag: "ghost" })).toBe("NOT_FOUND");
    const outcomes = Array.from({ length: STREAMS }, () => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const call = zipped.generateId({ tag: "demo", name: "" }, (error) =>
        resolve(error === null ? "OK" : (status[error.code] ?? "")),
      );
      setImmediate(() => call.cancel());
      return promise;
    });
    const ends = new Set(await Promise.all(outcomes));
    expect([...ends].filter((end) => end !== "OK" && end !== "CANCELLED")).toEqual([]);
    expect(typeof (await ask(zipped))).toBe("bigint");
  });

  test("h2load: 1,000 streams of one connection", async () => {
    const { command, env } = debianFiles<Program>({
      name: "nghttp2",
      packages: ["nghttp2-client"],
      find: (unpacked) => programOf(unpacked, ["h2load"]),
      hint: "no h2load for the tests: install nghttp2-client",
    });
    const body = path.join(folder, "body");
    writeFileSync(body, framed(GenerateIdRequest.encode({ tag: "demo", name: "" }).finish()));
    const count = isLong ? 200_000 : 10_000;
    const address = `${isSecure ? "https" : "http"}://localhost:${port}/${METHOD}`;
    const headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"];
    const amount = ["-n", String(count), "-c", "1", "-m", String(STREAMS)];
    const { stdout } = await run(command, [...amount, ...headers, "-d", body, address], {
      env: { ...process.env, ...env },
    });
    expect(stdout).toMatch(new RegExp(`${count} succeeded, 0 failed, 0 errored, 0 timeout`));
    // Each answer is a message with an id: its prefix and at least four bytes.
    const [, bytes] = /\((\d+)\) data$/m.exec(stdout) ?? [];
    expect(Number(bytes)).toBeGreaterThanOrEqual(count * 9);
  });

  test.runIf(isLong)("grpcurl, by reflection", { timeout: 600_000 }, async () => {
    const grpcurl = goProgram("github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3");
    const how = isSecure ? ["-cacert", authority] : ["-plaintext"];
    const call = (...more: readonly string[]): Promise<{ stdout: string }> =>
      run(grpcurl, [...how, "-max-time", "30", ...more]);
    const at = `localhost:${port}`;
    expect((await call(at, "list")).stdout).toContain("idmint.v1.IdService");
    const large = ["-H", `x-large: ${"x".repeat(7_000)}`];
    const { stdout } = await call(...large, "-d", '{"tag":"demo"}', at, METHOD);
    expect(Number((JSON.parse(stdout) as { id: string }).id)).toBeGreaterThan(0);
    await expect(call("-d", '{"tag":"ghost"}', at, METHOD)).rejects.toMatchObject({
      stderr: expect.stringContaining("NotFound") as unknown,
    });
  });

  test.runIf(isLong)("ghz: many connections, with gzip", { timeout: 600_000 }, async () => {
    const ghz = goProgram("github.com/bojand/ghz/cmd/ghz@v0.121.0");
    const how = isSecure ? ["--cacert", authority] : ["--insecure"];
    const load = ["-n", "20000", "-c", "400", "--connections", "8", "--enable-compression"];
    const call = ["--call", METHOD.replace("/", "."), "-d", '{"tag":"demo"}', "-O", "json"];
    const { stdout } = await run(ghz, [...how, ...load, ...call, `localhost:${port}`], {
      maxBuffer: 2 ** 28,
    });
    const { statusCodeDistribution } = JSON.parse(stdout) as Record<string, unknown>;
    expect(statusCodeDistribution).toEqual({ OK: 20_000 });
  });

  test.runIf(isLong)("buf curl --protocol grpc", { timeout: 120_000 }, async () => {
    const how = isSecure ? ["--cacert", authority] : ["--http2-prior-knowledge"];
    const { stdout } = await run(path.join(root, "node_modules/.bin/buf"), [
      "curl",
      "--protocol",
      "grpc",
      ...how,
      "-d",
      '{"tag":"demo"}',
      `${isSecure ? "https" : "http"}://localhost:${port}/${METHOD}`,
    ]);
    expect(Number((JSON.parse(stdout) as { id: string }).id)).toBeGreaterThan(0);
  });

  test.runIf(isLong)("nginx in between", { timeout: 300_000 }, async () => {
    const front = await startNginx(port, isSecure);
    const through = client(front, false);
    const ids = await Promise.all(Array.from({ length: 200 }, () => ask(through)));
    expect(ids.filter((id) => typeof id === "string")).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(await ask(through, { tag: "ghost" })).toBe("NOT_FOUND");
  });

  test("calls that fly when the server stops are answered, and none is lost without a word", async () => {
    const through = client(port, isSecure);
    const calls: Promise<bigint | string>[] = [];
    const over = { isSo: false };
    const flying = (async () => {
      while (!over.isSo) {
        for (let i = 0; i < 50; i++) calls.push(ask(through, { deadlineMs: 10_000 }));
        // oxlint-disable-next-line no-await-in-loop
        await calls.at(-1);
      }
    })();
    await ask(through);
    server.signal("SIGTERM");
    await server.waitForEnd(60_000);
    over.isSo = true;
    await flying;
    const ends = await Promise.all(calls);
    const ids = ends.filter((end) => typeof end === "bigint");
    expect(ids.length).toBeGreaterThan(0);
    expect(new Set(ids).size).toBe(ids.length);
    // Refused while it stops, or not begun because nobody listens any more: both may be tried again.
    expect(ends.filter((end) => typeof end === "string" && end !== "UNAVAILABLE")).toEqual([]);
  });
});

/** A program of Go's, built once. */
function goProgram(from: string): string {
  const [place = ""] = from.split("@");
  const cache = cacheOf("clients");
  const file = path.join(cache, path.basename(place));
  const why = runLocked(cache, `[ -x '${file}' ] || GOBIN='${cache}' go install '${from}'`);
  if (why !== undefined)
    throw new Error(`no ${from} for the tests: install Go 1.24 or newer (${why})`);
  return file;
}

/** nginx in front of a server, in plain text; answers its port. */
async function startNginx(port: number, isSecure: boolean): Promise<number> {
  const { command, env } = debianFiles<Program>({
    name: "nginx",
    packages: ["nginx"],
    libraries: ["libpcre2-8-0"],
    isUnpacked: true,
    find: (unpacked) => programOf(unpacked, ["nginx"], ["/usr/sbin"]),
    hint: "no nginx for the tests: install nginx",
  });
  const own = mkdtempSync(path.join(folder, "nginx-"));
  const front = await freePort();
  const tls = `grpc_ssl_trusted_certificate ${authority}; grpc_ssl_verify on; grpc_ssl_name localhost; grpc_ssl_protocols TLSv1.3;`;
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${own}/${name};`,
  );
  writeFileSync(
    path.join(own, "nginx.conf"),
    `daemon off; master_process off; pid ${own}/pid; error_log stderr warn;
events { worker_connections 256; }
http {
  access_log off; ${temporary.join(" ")}
  upstream ids { server 127.0.0.1:${port}; keepalive 4; }
  server {
    listen 127.0.0.1:${front} http2;
    location / { grpc_pass ${isSecure ? "grpcs" : "grpc"}://ids; ${isSecure ? tls : ""} }
  }
}
`,
  );
  const nginx = new Child(
    [command],
    ["-p", own, "-c", path.join(own, "nginx.conf"), "-e", "stderr"],
    {
      name: "nginx",
      env,
    },
  );
  onTestFinished(async () => {
    await nginx.kill();
  });
  return front;
}
