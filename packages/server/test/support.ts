import { type Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { StoreCall } from "@idmint/core/server";
import {
  CreateTagRequest,
  IdServiceService,
  type Segment,
  type Tag,
  TagServiceService,
} from "@idmint/proto";
import {
  IdServiceClient,
  NodeServiceClient,
  TagServiceClient,
  WorkerServiceClient,
} from "@idmint/proto/grpc-js";
import { BadRequest, ErrorInfo, RetryInfo, Status } from "@idmint/proto/rpc";
import { doorEnv, MemoryStore } from "@idmint/testkit";
import { onTestFinished } from "vitest";
import { type ServerParts, startServer } from "../src/main/app.ts";
import { loadConfig } from "../src/config/load.ts";
import type { RunningServer } from "../src/main/running.ts";
import type { ServerEvent } from "../src/service/events.ts";

/** A server on free ports, its store, and clients; all closed when the test ends. */
export interface TestServer {
  readonly server: RunningServer;
  readonly store: MemoryStore;
  readonly events: ServerEvent[];
  readonly ids: IdServiceClient;
  readonly tags: TagServiceClient;
  readonly nodes: NodeServiceClient;
  readonly workers: WorkerServiceClient;
}

export async function startTest(
  options: {
    store?: MemoryStore;
    flags?: Record<string, string>;
    env?: Record<string, string>;
    parts?: ServerParts;
  } = {},
): Promise<TestServer> {
  const store = options.store ?? new MemoryStore();
  const events: ServerEvent[] = [];
  const defaults = {
    "grpc.address": "127.0.0.1:0",
    "http.address": "127.0.0.1:0",
    "log.level": "silent",
    drain_delay: "0ms",
    drain_time: "500ms",
  };
  const config = loadConfig({
    env: { ...doorEnv(), ...options.env },
    flags: options.flags ?? {},
    defaults,
  });
  const server = await startServer(config, {
    store,
    onEvent: (event) => events.push(event),
    ...options.parts,
  });
  onTestFinished(() => server.close());
  return { server, store, events, ...clientsOf(server.grpcAddress) };
}

export function clientsOf(address: string): {
  ids: IdServiceClient;
  tags: TagServiceClient;
  nodes: NodeServiceClient;
  workers: WorkerServiceClient;
} {
  const plain = credentials.createInsecure();
  // A connection of its own for each test, and no waiting for reconnects.
  const settings = { "grpc.use_local_subchannel_pool": 1, "grpc.enable_retries": 0 };
  const ids = new IdServiceClient(address, plain, settings);
  const tags = new TagServiceClient(address, plain, settings);
  const nodes = new NodeServiceClient(address, plain, settings);
  const workers = new WorkerServiceClient(address, plain, settings);
  onTestFinished(() => {
    for (const client of [ids, tags, nodes, workers]) client.close();
  });
  return { ids, tags, nodes, workers };
}

/** A method as the generated services define it. */
interface Method<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

/** What a refused call carried. */
export class Refusal extends Error {
  readonly code: keyof typeof status;
  readonly reason: string;
  readonly domain: string;
  readonly metadata: Record<string, string>;
  readonly fields: readonly { field: string; description: string; reason: string }[];
  readonly retryAfterMs: number | undefined;
  /** Names of the detail messages. */
  readonly details: readonly string[];

  constructor(error: ServiceError) {
    super(error.details);
    this.code = status[error.code] as keyof typeof status;
    const bytes = error.metadata.get("grpc-status-details-bin")[0];
    const found = Buffer.isBuffer(bytes) ? Status.decode(bytes).details : [];
    const detail = (name: string): Buffer | undefined =>
      found.find((each) => each.typeUrl === `type.googleapis.com/google.rpc.${name}`)?.value;
    this.details = found.map((each) => each.typeUrl.split(".").at(-1) ?? "");
    const info = ErrorInfo.decode(detail("ErrorInfo") ?? new Uint8Array());
    this.reason = info.reason;
    this.domain = info.domain;
    this.metadata = info.metadata;
    this.fields = BadRequest.decode(detail("BadRequest") ?? new Uint8Array()).fieldViolations;
    const retry = detail("RetryInfo");
    const delay = retry === undefined ? undefined : RetryInfo.decode(retry).retryDelay;
    this.retryAfterMs =
      delay === undefined ? undefined : Number(delay.seconds) * 1_000 + delay.nanos / 1e6;
  }
}

/** One call; rejects with Refusal. */
export function call<Request, Response>(
  client: Client,
  method: Method<Request, Response>,
  request: Request,
  timeoutMs = 5_000,
  token?: string,
): Promise<Response> {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      method.path,
      (value: Request) => method.requestSerialize(value),
      (bytes: Buffer) => method.responseDeserialize(bytes),
      request,
      metadata,
      { deadline: Date.now() + timeoutMs },
      (error: ServiceError | null, response?: Response) => {
        if (error !== null) reject(new Refusal(error));
        else if (response === undefined) reject(new Error("neither an answer nor an error"));
        else resolve(response);
      },
    );
  });
}

/** What a call was refused with; throws when it was answered. */
export async function refusalOf(answer: Promise<unknown>): Promise<Refusal> {
  try {
    await answer;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error("the call was answered");
}

export function generateId({ ids }: Pick<TestServer, "ids">, tag: string, timeoutMs?: number) {
  return call(ids, IdServiceService.generateId, { tag, name: "" }, timeoutMs);
}

/** Makes a tag of kind segment. */
export async function createTag(
  { tags }: Pick<TestServer, "tags">,
  name: string,
  settings: { min?: number; max?: number; ceiling?: bigint; order?: number; maxAgeS?: bigint } = {},
): Promise<Tag> {
  const { min = 0, max = 0, ceiling = 0n, order = 0, maxAgeS } = settings;
  const request = CreateTagRequest.fromPartial({
    tag: {
      name,
      ceiling,
      order: order as 0,
      kind: {
        $case: "segment",
        value: {
          min,
          max,
          ...(maxAgeS === undefined ? {} : { maxAge: { seconds: maxAgeS, nanos: 0 } }),
        },
      },
    },
  });
  const { tag } = await call(tags, TagServiceService.createTag, request);
  if (tag === undefined) throw new Error("an answer without a tag");
  return tag;
}

/** All ids of segments. */
export function idsOf(segments: readonly Segment[]): bigint[] {
  return segments.flatMap(({ base, increment, count }) =>
    Array.from({ length: count }, (_, at) => base + BigInt(at) * BigInt(increment)),
  );
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Waits until something holds; fails after `boundMs`. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  boundMs = 20_000,
): Promise<void> {
  const end = performance.now() + boundMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`did not happen within ${boundMs} ms`);
    await sleep(5);
  }
}

/** Holds an operation of a store back, before it is done or before it is answered. The answer lets go of it. */
export function holdBack(
  store: MemoryStore,
  operation: StoreCall,
  when: "before" | "after" = "before",
): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  store.faults = { [when]: (each: StoreCall) => (each === operation ? promise : undefined) };
  return () => {
    store.faults = {};
    resolve();
  };
}
