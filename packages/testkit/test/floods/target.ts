// What is attacked, and who must not notice.
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request as requestPlain } from "node:http";
import { Agent as HttpsAgent, request as requestTls } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { SegmentKind, Tag } from "@idmint/proto";
import { IdServiceClient, TagServiceClient } from "@idmint/proto/grpc-js";
import { expect, onTestFailed, onTestFinished } from "vitest";
import { BUILT_CLI } from "../../bench/lib/build.ts";
import { selfSigned } from "../../src/certificate.ts";
import { Child, runCli } from "../../src/fleet/child.ts";
import { CLI } from "../../src/program.ts";
import { freePort } from "../../src/fleet/ports.ts";
import { until } from "../../src/fleet/until.ts";
import { isLong } from "../fleet-support.ts";

export const TAG = "orders";
/** How long the other caller waits for an answer: longer than a machine on which much else runs keeps it from the server. */
const DEADLINE_MS = 20_000;
const EVERY_MS = 5;

/** A server in a process of its own, with a tag, and clients of it. */
export interface Target {
  readonly address: string;
  readonly httpAddress: string;
  readonly server: Child;
  readonly ids: IdServiceClient;
  /** Asks for an id over HTTP. Fulfils with what went wrong. */
  readonly overHttp: (deadlineMs: number) => Promise<string | undefined>;
}

export async function startTarget(door: string, tls: boolean): Promise<Target> {
  const folder = await mkdtemp(path.join(tmpdir(), "idmint-flood-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const address = `127.0.0.1:${await freePort()}`;
  const httpAddress = `127.0.0.1:${await freePort()}`;
  const { cert, key } = selfSigned("localhost");
  const [certFile, keyFile] = [path.join(folder, "server.crt"), path.join(folder, "server.key")];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const env = {
    IDMINT_GRPC_DOOR: door,
    IDMINT_STORE_URL: `sqlite:${path.join(folder, "idmint.db")}`,
    IDMINT_GRPC_ADDRESS: address,
    IDMINT_HTTP_ADDRESS: httpAddress,
    ...(tls
      ? { IDMINT_TLS_CERT_FILE: certFile, IDMINT_TLS_KEY_FILE: keyFile, IDMINT_HTTP_TLS: "on" }
      : {}),
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
  return { address, httpAddress, server, ids, overHttp: httpCaller(httpAddress, tls, cert) };
}

/** Calls on some connections, which it keeps. */
function httpCaller(address: string, tls: boolean, ca: string): Target["overHttp"] {
  const options = { keepAlive: true, maxSockets: 16 };
  const agent = tls
    ? new HttpsAgent({ ...options, ca, servername: "localhost" })
    : new Agent(options);
  onTestFinished(() => agent.destroy());
  const [host = "", port = ""] = address.split(":");
  const headers = { host: "localhost", "content-type": "application/json" };
  const path = "/idmint.v1.IdService/GenerateId";
  return (timeout) =>
    new Promise((resolve) => {
      const request = (tls ? requestTls : requestPlain)(
        { host, port, agent, headers, path, method: "POST", timeout },
        (response) => {
          const { statusCode } = response.resume();
          response.once("end", () =>
            resolve(statusCode === 200 ? undefined : `HTTP ${statusCode}`),
          );
          response.once("error", (error) => resolve(error.message));
        },
      );
      request.once("timeout", () => request.destroy(new Error("no answer over HTTP in time")));
      request.once("error", (error) => resolve(error.message));
      request.end(JSON.stringify({ tag: TAG }));
    });
}

/** Fulfils with what went wrong. */
type Ask = (deadlineMs: number) => Promise<string | undefined>;

export function overGrpc({ ids }: Target): Ask {
  return (deadlineMs) =>
    new Promise((resolve) => {
      const request = { tag: TAG, name: "" };
      const options = { deadline: Date.now() + deadlineMs };
      ids.generateId(request, new Metadata(), options, (error: ServiceError | null) =>
        resolve(error === null ? undefined : `${error.code} ${error.details}`),
      );
    });
}

/** A caller that keeps calling, whatever becomes of its calls. */
export class Victim {
  readonly #ask: Ask;
  readonly #timer: NodeJS.Timeout;
  latencies: number[] = [];
  readonly errors: string[] = [];
  #inFlight = 0;

  constructor(ask: Ask) {
    this.#ask = ask;
    this.#timer = setInterval(() => void this.call(), EVERY_MS);
    onTestFinished(() => clearInterval(this.#timer));
  }

  /** The latencies since the last time. */
  take(): readonly number[] {
    const taken = this.latencies;
    this.latencies = [];
    return taken;
  }

  /** Fulfils with how long the answer took; undefined: there was an error. */
  async call(): Promise<number | undefined> {
    const start = performance.now();
    this.#inFlight++;
    const error = await this.#ask(DEADLINE_MS);
    this.#inFlight--;
    const ms = performance.now() - start;
    if (error === undefined) this.latencies.push(ms);
    else this.errors.push(error);
    return error === undefined ? ms : undefined;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await until("the last call ends", () => this.#inFlight === 0, { withinMs: 60_000 });
  }
}

const WARM_CALLS = isLong ? 40_000 : 4_000;
const WARM_AT_ONCE = 64;

/**
 * Makes a server one that has served callers for a while: its code is compiled, and its heap and pools are as large as calls
 * make them. What a flood takes is measured from there.
 */
export async function warm({ ids }: Target): Promise<void> {
  const request = { tag: TAG, name: "" };
  const caller = async (): Promise<void> => {
    for (let call = 0; call < WARM_CALLS / WARM_AT_ONCE; call++) {
      await new Promise<void>((resolve, reject) => {
        ids.generateId(request, (error) => (error === null ? resolve() : reject(error)));
      });
    }
  };
  await Promise.all(Array.from({ length: WARM_AT_ONCE }, caller));
}

/** Memory of a server from now on, in MB. */
export class Memory {
  readonly #pid: number | undefined;
  readonly before: number;

  constructor({ server }: Target) {
    this.#pid = server.pid;
    // Linux counts the most anew from here.
    writeFileSync(`/proc/${this.#pid}/clear_refs`, "5");
    this.before = this.now;
  }

  get now(): number {
    return this.#of("VmRSS");
  }

  /** The most that it had. */
  get most(): number {
    return this.#of("VmHWM");
  }

  #of(field: "VmRSS" | "VmHWM"): number {
    const text = readFileSync(`/proc/${this.#pid}/status`, "utf8");
    return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(text)?.[1]) / 1_024;
  }
}
