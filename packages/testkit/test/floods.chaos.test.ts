// Hostile callers of every kind we know, one after the other, while another caller goes about its work.
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { IdServiceClient, SegmentKind, Tag, TagServiceClient } from "@idmint/proto";
import { expect, onTestFailed, onTestFinished, test } from "vitest";
import { selfSigned } from "../src/certificate.ts";
import { BUILT_CLI, buildPackages } from "../bench/lib/build.ts";
import { Child, CLI, runCli } from "../src/fleet/child.ts";
import { freePort } from "../src/fleet/ports.ts";
import { until } from "../src/fleet/until.ts";
import type { FloodResult, FloodWish } from "./child/flood.ts";
import { isLong } from "./fleet-support.ts";
import { type FloodName, FLOODS } from "./floods/flood-table.ts";

const FLOOD = path.resolve(import.meta.dirname, "child/flood.ts");
const TAG = "orders";
const SECONDS = isLong ? 3 : 0.5;
/** How long the other caller waits for an answer. In CI other tests take the processor's time as well. */
const DEADLINE_MS = isLong ? 2_000 : 20_000;
const EVERY_MS = 5;
/**
 * A long form runs what is published, which takes 50 MB less than its source does. Beside other tests the garbage collector
 * has less time. Without the division of work it is 500 and more.
 */
const MAX_MEMORY_MB = isLong ? 256 : 320;
const RECOVERY_MS = isLong ? 2_000 : 20_000;
const NAMES = Object.keys(FLOODS) as FloodName[];

interface Target {
  readonly address: string;
  readonly server: Child;
  readonly ids: IdServiceClient;
}

async function startTarget(tls: boolean): Promise<Target> {
  const folder = await mkdtemp(path.join(tmpdir(), "idmint-flood-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const address = `127.0.0.1:${await freePort()}`;
  const { cert, key } = selfSigned("localhost");
  const [certFile, keyFile] = [path.join(folder, "server.crt"), path.join(folder, "server.key")];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const env = {
    IDMINT_STORE_URL: `sqlite:${path.join(folder, "idmint.db")}`,
    IDMINT_GRPC_ADDRESS: address,
    IDMINT_HTTP_ADDRESS: `127.0.0.1:${await freePort()}`,
    ...(tls ? { IDMINT_TLS_CERT_FILE: certFile, IDMINT_TLS_KEY_FILE: keyFile } : {}),
  };
  expect(await runCli(["migrate"], env)).toMatchObject({ code: 0 });
  const server = new Child(isLong ? BUILT_CLI : CLI, ["serve", "--json"], { name: "server", env });
  onTestFinished(async () => {
    await server.kill();
  });
  onTestFailed(() => console.log(server.describe()));
  await server.waitForOutput("grpcAddress");
  const trust = tls ? credentials.createSsl(Buffer.from(cert)) : credentials.createInsecure();
  const settings = {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
    "grpc.ssl_target_name_override": "localhost",
  };
  const ids = new IdServiceClient(address, trust, settings);
  const tags = new TagServiceClient(address, trust, settings);
  onTestFinished(() => {
    ids.close();
    tags.close();
  });
  const kind = { $case: "segment", value: SegmentKind.create() } as const;
  const request = { tag: { ...Tag.create(), name: TAG, kind }, validateOnly: false };
  await until("the tag is made", () => {
    return new Promise<boolean>((resolve) => {
      tags.createTag(request, (error) => resolve(error === null));
    });
  });
  return { address, server, ids };
}

/** A caller that keeps calling, whatever becomes of its calls. */
class Victim {
  readonly #ids: IdServiceClient;
  readonly #timer: NodeJS.Timeout;
  readonly latencies: number[] = [];
  readonly errors: string[] = [];
  #inFlight = 0;

  constructor({ ids }: Target) {
    this.#ids = ids;
    this.#timer = setInterval(() => void this.call(), EVERY_MS);
  }

  /** Fulfils with how long the answer took; undefined: there was an error. */
  call(): Promise<number | undefined> {
    const start = performance.now();
    this.#inFlight++;
    const options = { deadline: Date.now() + DEADLINE_MS };
    return new Promise((resolve) => {
      const request = { tag: TAG, name: "" };
      this.#ids.generateId(request, new Metadata(), options, (error: ServiceError | null) => {
        this.#inFlight--;
        const ms = performance.now() - start;
        if (error === null) this.latencies.push(ms);
        else this.errors.push(`${error.code} ${error.details}`);
        resolve(error === null ? ms : undefined);
      });
    });
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await until("the last call ends", () => this.#inFlight === 0, { withinMs: 60_000 });
  }
}

/** Most memory that the process has had so far, in MB. */
function peakMemory({ server }: Target): number {
  const text = readFileSync(`/proc/${server.pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+)/.exec(text)?.[1]) / 1_024;
}

async function withstand(target: Target, flood: FloodName, tls: boolean): Promise<void> {
  const victim = new Victim(target);
  const wish: FloodWish = { address: target.address, flood, tag: TAG, seconds: SECONDS, tls };
  const child = new Child(FLOOD, [JSON.stringify(wish)], { name: flood });
  const exit = await child.waitForEnd(120_000);
  const over = performance.now();
  await until(
    `it answers as before ${flood}`,
    async () => ((await victim.call()) ?? Infinity) < (isLong ? 100 : 2_000),
    { withinMs: 60_000 },
  );
  const recoveryMs = performance.now() - over;
  await victim.stop();
  expect(exit, child.describe()).toEqual({ code: 0, signal: null });
  const { connected, bytes } = JSON.parse(child.stdout) as FloodResult;
  expect(connected, flood).toBeGreaterThanOrEqual(FLOODS[flood].connections);
  if ("chunks" in FLOODS[flood]) expect(bytes, flood).toBeGreaterThan(100_000);
  expect(target.server.exit, target.server.describe()).toBeUndefined();
  const memory = peakMemory(target);
  const sorted = victim.latencies.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(0);
  if (isLong) {
    console.log(
      `${flood}${tls ? ", TLS" : ""}: ${sorted.length} answers, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ` +
        `recovery ${recoveryMs.toFixed(0)} ms, memory ${memory.toFixed(0)} MB, ${connected} connections`,
    );
  }
  expect(victim.errors, flood).toEqual([]);
  expect(memory, flood).toBeLessThanOrEqual(MAX_MEMORY_MB);
  expect(recoveryMs, flood).toBeLessThanOrEqual(RECOVERY_MS);
}

test.each(isLong ? [false, true] : [false])(
  "no flood takes the server from another caller, or more memory than it has (TLS: %s)",
  { timeout: 600_000 },
  async (tls) => {
    if (isLong && !tls) await buildPackages();
    // A long form has a server of its own for each flood, so that each is judged by itself.
    let target = await startTarget(tls);
    for (const [at, flood] of NAMES.entries()) {
      // oxlint-disable-next-line no-await-in-loop
      if (isLong && at > 0) target = await startTarget(tls);
      // oxlint-disable-next-line no-await-in-loop
      await withstand(target, flood, tls);
    }
  },
);
