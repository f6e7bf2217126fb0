// A fleet of small idmint servers on real gRPC: one "store" in memory, each server with segments of its own.
import {
  Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  status,
} from "@grpc/grpc-js";
import { CODE_OF_REASON, IdmintError, invalidField } from "@idmint/core";
import {
  type AllocateSegmentRequest,
  type AllocateSegmentResponse,
  type GenerateIdsRequest,
  type GenerateIdsResponse,
  IdServiceService,
  Order,
  type ReleaseSegmentRequest,
  type ReleaseSegmentResponse,
} from "@idmint/proto";
import type { HealthServer, IdServiceServer } from "@idmint/proto/grpc-js";
import { HealthCheckResponse_ServingStatus, HealthService } from "@idmint/proto/health";
import { BadRequest, ErrorInfo, RetryInfo, Status } from "@idmint/proto/rpc";
import { UNTOLD } from "./support.ts";

export interface FakeTag {
  floor: bigint;
  epoch: bigint;
  ceiling: bigint;
  order: Order;
  paused: boolean;
  maxAgeMs: number;
}

/** What all servers share. */
export class FakeStore {
  readonly tags = new Map<string, FakeTag>();

  add(name: string, tag: Partial<FakeTag> = {}): FakeTag {
    const made: FakeTag = {
      floor: 0n,
      epoch: 1n,
      ceiling: 2n ** 63n - 1n,
      order: Order.UNORDERED,
      paused: false,
      maxAgeMs: 600_000,
      ...tag,
    };
    this.tags.set(name, made);
    return made;
  }

  /** Ids (floor, floor + count], fewer at the ceiling. */
  grant(tag: FakeTag, count: number): { from: bigint; to: bigint } {
    const from = tag.floor + 1n;
    const to = tag.floor + BigInt(count) > tag.ceiling ? tag.ceiling : tag.floor + BigInt(count);
    if (to < from) throw new IdmintError("TAG_EXHAUSTED", "no id is left");
    tag.floor = to;
    return { from, to };
  }
}

function notHere(_call: unknown, done: (error: { code: status; details: string }) => void): void {
  done({ code: status.UNIMPLEMENTED, details: "not in the fake" });
}

type Verdict =
  | { readonly kind: "fail"; readonly error: IdmintError }
  | { readonly kind: "fail-plain"; readonly code: status }
  | { readonly kind: "hang" }
  | { readonly kind: "delay"; readonly ms: number }
  | { readonly kind: "lose" }
  | undefined;

/** One server: carves answers from blocks of `blockSize` ids, as a real one does. */
export class FakeServer {
  readonly store: FakeStore;
  readonly allocated: AllocateSegmentRequest[] = [];
  /** The trace that came with each of them; undefined: none did. */
  readonly traceparents: (string | undefined)[] = [];
  /** How long their callers waited, in milliseconds; Infinity: as long as it takes. */
  readonly leftMs: number[] = [];
  readonly released: ReleaseSegmentRequest[] = [];
  healthChecks = 0;
  blockSize = 1_000;
  /** What to do with an allocation instead of answering it at once. */
  verdict: (request: AllocateSegmentRequest) => Verdict = () => undefined;
  releaseVerdict: () => Verdict = () => undefined;
  /** Makes a bad answer of a good one. */
  spoil: (answer: AllocateSegmentResponse) => AllocateSegmentResponse = (answer) => answer;
  /** Answers GenerateIds; undefined: as one that has no such method. */
  generate: ((request: GenerateIdsRequest) => GenerateIdsResponse) | undefined;
  /** Most ids it hands out in one answer. */
  maxCount = 10_000_000;
  /** Answers under this epoch, as a server that has not polled yet. */
  staleEpoch: bigint | undefined;
  serving = true;
  readonly #blocks = new Map<string, { next: bigint; to: bigint; epoch: bigint }>();
  #server: Server | undefined;
  #port = 0;

  constructor(store: FakeStore) {
    this.store = store;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  async start(credentials: ServerCredentials = ServerCredentials.createInsecure()): Promise<void> {
    const server = new Server();
    server.addService(IdServiceService, this.#ids());
    server.addService(HealthService, this.#health());
    this.#port = await new Promise<number>((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${this.#port}`, credentials, (error, port) => {
        if (error === null) resolve(port);
        else reject(error);
      });
    });
    this.#server = server;
  }

  /** Gone at once, connections included; blocks in memory are lost, as in a crash. */
  kill(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    this.#blocks.clear();
  }

  #ids(): IdServiceServer {
    return {
      generateId: notHere,
      generateIds: (call, done) => {
        if (this.generate === undefined) notHere(call, done);
        else done(null, this.generate(call.request));
      },
      streamIds: (call) => {
        call.destroy(new Error("not here"));
      },
      allocateSegment: (call, done) => this.#onAllocate(call, done),
      releaseSegment: (call, done) => this.#onRelease(call, done),
      decodeId: notHere,
    };
  }

  #health(): HealthServer {
    return {
      check: (_call, done) => {
        this.healthChecks++;
        const { SERVING, NOT_SERVING } = HealthCheckResponse_ServingStatus;
        done(null, { status: this.serving ? SERVING : NOT_SERVING });
      },
      list: notHere,
      watch: (call) => {
        call.destroy();
      },
    };
  }

  #onAllocate(
    call: ServerUnaryCall<AllocateSegmentRequest, AllocateSegmentResponse>,
    done: sendUnaryData<AllocateSegmentResponse>,
  ): void {
    this.allocated.push(call.request);
    this.leftMs.push(Number(call.getDeadline()) - Date.now());
    this.traceparents.push(call.metadata.get("traceparent")[0]?.toString());
    const verdict = this.verdict(call.request);
    const answer = (): void => {
      try {
        done(null, this.spoil(this.allocate(call.request)));
      } catch (error) {
        done(serviceError(IdmintError.from(error)));
      }
    };
    this.#obey(verdict, call, done, answer);
  }

  #onRelease(
    call: ServerUnaryCall<ReleaseSegmentRequest, ReleaseSegmentResponse>,
    done: sendUnaryData<ReleaseSegmentResponse>,
  ): void {
    this.released.push(call.request);
    this.#obey(this.releaseVerdict(), call, done, () => {
      done(null, { reclaimedCount: call.request.unusedCount });
    });
  }

  #obey<T>(
    verdict: Verdict,
    call: { request: unknown },
    done: sendUnaryData<T>,
    answer: () => void,
  ): void {
    switch (verdict?.kind) {
      case undefined:
        answer();
        break;
      case "fail":
        done(serviceError(verdict.error));
        break;
      case "fail-plain":
        done({ code: verdict.code, details: "from somewhere else" });
        break;
      case "hang":
        break;
      case "delay":
        setTimeout(answer, verdict.ms);
        break;
      case "lose":
        // The store granted, and the answer never leaves: an unknown outcome for the client.
        this.allocate(call.request as AllocateSegmentRequest);
        break;
    }
  }

  allocate({ tag: name, count, after }: AllocateSegmentRequest): AllocateSegmentResponse {
    const tag = this.store.tags.get(name);
    if (tag === undefined) throw new IdmintError("TAG_NOT_FOUND", `no tag "${name}"`);
    if (count > this.maxCount) throw new IdmintError("INVALID_ARGUMENT", "count is over the limit");
    if (tag.paused) throw new IdmintError("TAG_PAUSED", "paused", { metadata: { tag: name } });
    const epoch = this.staleEpoch ?? tag.epoch;
    const bound = tag.order === Order.PER_CLIENT ? after : 0n;
    if (bound > tag.floor) throw invalidField("after", "is above the floor", "VALUE_OUT_OF_RANGE");
    const { base, to } = this.#carve(name, tag, epoch, count, bound);
    return {
      segments: [{ base, increment: 1, count: Number(to - base) + 1 }],
      epoch,
      releaseToken: tag.order === Order.UNORDERED ? `${this.address}/${name}/${base}` : "",
      maxAge: {
        seconds: BigInt(Math.floor(tag.maxAgeMs / 1_000)),
        nanos: (tag.maxAgeMs % 1_000) * 1_000_000,
      },
      order: tag.order,
      maxCount: this.maxCount,
      ...UNTOLD,
    };
  }

  #carve(
    name: string,
    tag: FakeTag,
    epoch: bigint,
    count: number,
    bound: bigint,
  ): { base: bigint; to: bigint } {
    const held = this.#blocks.get(name);
    const isGood =
      held !== undefined &&
      held.epoch === epoch &&
      held.next > bound &&
      held.next <= held.to &&
      // At the tag's end, what is left.
      (held.next + BigInt(count) - 1n <= held.to || tag.floor === tag.ceiling);
    let block = held;
    if (!isGood) {
      const { from, to } = this.store.grant(tag, Math.max(count, this.blockSize));
      block = { next: from, to, epoch };
      this.#blocks.set(name, block);
    }
    if (block === undefined) throw new Error("no block");
    const base = block.next;
    const wanted = base + BigInt(count) - 1n;
    const to = wanted > block.to ? block.to : wanted;
    block.next = to + 1n;
    return { base, to };
  }
}

/** An error as idmint's servers send it. */
export function serviceError(error: IdmintError): {
  code: status;
  details: string;
  metadata: Metadata;
} {
  const type = "type.googleapis.com/google.rpc.";
  const info = { reason: error.reason, domain: "idmint", metadata: { ...error.metadata } };
  const details = [
    { typeUrl: `${type}ErrorInfo`, value: Buffer.from(ErrorInfo.encode(info).finish()) },
  ];
  if (error.retryAfterMs !== undefined) {
    const seconds = BigInt(Math.floor(error.retryAfterMs / 1_000));
    const nanos = (error.retryAfterMs % 1_000) * 1_000_000;
    const value = Buffer.from(RetryInfo.encode({ retryDelay: { seconds, nanos } }).finish());
    details.push({ typeUrl: `${type}RetryInfo`, value });
  }
  if (error.violations.length > 0) {
    const fieldViolations = error.violations.map(
      ({ field, description }) =>
        BadRequest.fromPartial({ fieldViolations: [{ field, description }] }).fieldViolations[0]!,
    );
    const value = Buffer.from(BadRequest.encode({ fieldViolations }).finish());
    details.push({ typeUrl: `${type}BadRequest`, value });
  }
  const code = status[CODE_OF_REASON[error.reason]];
  const metadata = new Metadata();
  const message = { code, message: error.message, details };
  metadata.set("grpc-status-details-bin", Buffer.from(Status.encode(message).finish()));
  return { code, details: error.message, metadata };
}

/** A started fleet of `count` servers, killed at the end of the test. */
export async function startFleet(
  count: number,
  onEnd: (end: () => void) => void,
): Promise<{ store: FakeStore; servers: readonly FakeServer[] }> {
  const store = new FakeStore();
  const servers = Array.from({ length: count }, () => new FakeServer(store));
  onEnd(() => {
    for (const server of servers) server.kill();
  });
  for (const server of servers) await server.start();
  return { store, servers };
}
