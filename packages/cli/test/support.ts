import {
  Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type StatusObject,
  type UntypedHandleCall,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import {
  ClockPolicy,
  IdServiceService,
  NodeServiceService,
  SequenceKind,
  type SnowflakeKind,
  Tag,
  TagServiceService,
  WorkerRegistry,
  WorkerServiceService,
} from "@idmint/proto";
import { HealthService } from "@idmint/proto/health";
import { type Any, BadRequest, ErrorInfo, RetryInfo, Status } from "@idmint/proto/rpc";
import { onTestFinished } from "vitest";
import type { Io } from "../src/process/io.ts";
import { run } from "../src/program.ts";

/** What one command line did. */
export interface CommandResult {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line in this process. */
export async function idmint(
  args: readonly string[],
  {
    env = {},
    signal = new AbortController().signal,
    ask,
  }: { env?: Record<string, string>; signal?: AbortSignal; ask?: Io["ask"] } = {},
): Promise<CommandResult> {
  let out = "";
  let err = "";
  const exitCode = await run(args, {
    env,
    signal,
    ask,
    out: async (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
  });
  return { exitCode, out, err };
}

/** Answers of a server that is played: by method, a function of the request. What it throws is the refusal. */
export type Play = Readonly<Record<string, (request: never) => unknown>>;

/** A gRPC server on a free port that answers as told; `stop` when done. */
export async function playServer(play: Play): Promise<{ address: string; stop: () => void }> {
  const server = new Server();
  const services = [
    IdServiceService,
    TagServiceService,
    WorkerServiceService,
    NodeServiceService,
    HealthService,
  ];
  for (const service of services) {
    const methods: UntypedServiceImplementation = {};
    for (const name of Object.keys(service)) {
      methods[name] = ((
        call: ServerUnaryCall<unknown, unknown>,
        callback: sendUnaryData<unknown>,
      ) => {
        const method = play[name];
        if (method === undefined) return;
        try {
          callback(null, method(call.request as never));
        } catch (thrown) {
          callback(thrown as StatusObject);
        }
      }) as UntypedHandleCall;
    }
    server.addService(service, methods);
  }
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  return {
    address: `127.0.0.1:${port}`,
    stop: () => {
      server.forceShutdown();
    },
  };
}

/** Runs a command line against a server that is played, until the test ends. */
export async function against(play: Play, ...args: readonly string[]): Promise<CommandResult> {
  const { address, stop } = await playServer(play);
  onTestFinished(stop);
  return idmint([...args, "--address", address]);
}

function anyOf(name: string, value: Uint8Array): Any {
  return { typeUrl: `type.googleapis.com/google.rpc.${name}`, value: Buffer.from(value) };
}

/** An error as an idmint server sends it, to be thrown by a play. */
export function refusal(
  code: number,
  reason: string,
  details: string,
  more: {
    metadata?: Record<string, string>;
    fields?: { field: string; description: string }[];
    retryAfterMs?: number;
  } = {},
): Error {
  const info = ErrorInfo.create({ reason, domain: "idmint", metadata: more.metadata ?? {} });
  const entries = [anyOf("ErrorInfo", ErrorInfo.encode(info).finish())];
  if (more.fields !== undefined) {
    const request = BadRequest.create({ fieldViolations: more.fields });
    entries.push(anyOf("BadRequest", BadRequest.encode(request).finish()));
  }
  if (more.retryAfterMs !== undefined) {
    const retryDelay = { seconds: 0n, nanos: more.retryAfterMs * 1_000_000 };
    entries.push(anyOf("RetryInfo", RetryInfo.encode(RetryInfo.create({ retryDelay })).finish()));
  }
  const status = Status.create({ code, message: details, details: entries });
  const metadata = new Metadata();
  metadata.set("grpc-status-details-bin", Buffer.from(Status.encode(status).finish()));
  return Object.assign(new Error(details), { code, details, metadata });
}

/** A tag as a server answers it. */
export function someTag(name: string, floor = 0n): Tag {
  return Tag.create({
    name,
    kind: {
      $case: "segment",
      value: {
        start: 1n,
        min: 1_000,
        max: 100_000_000,
        holdFor: { seconds: 900n, nanos: 0 },
        maxAge: { seconds: 0n, nanos: 500_000_000 },
      },
    },
    order: 2,
    ceiling: 2n ** 63n - 1n,
    floor,
    epoch: 1n,
    state: 1,
    createTime: new Date("2026-01-02T03:04:05.678Z"),
    updateTime: new Date("2026-01-02T03:04:06Z"),
    etag: "e1",
  });
}

/** A sequence that counts in Redis, as a server answers it. */
export function sequenceTag(name: string): Tag {
  const value = SequenceKind.create({ start: 1n, backend: 2, step: 10_000, redisServer: "a" });
  return { ...someTag(name), order: 3, kind: { $case: "sequence", value } };
}

/** A snowflake tag of the standard layout, as a server answers it. */
export function snowflakeTag(name: string, more: Partial<SnowflakeKind> = {}): Tag {
  const layout = {
    timeUnit: { seconds: 0n, nanos: 1_000_000 },
    timeOrigin: new Date("2026-01-01T00:00:00Z"),
    timeBits: 41,
    extensionBits: 0,
    dataCenterBits: 0,
    workerBits: 10,
    sequenceBits: 12,
  };
  const clockWait = { seconds: 0n, nanos: 5_000_000 };

  const endTime = new Date("2095-09-07T15:47:35.552Z");
  const value: SnowflakeKind = {
    layout,
    dataCenter: 0,
    clockPolicy: ClockPolicy.REFUSE,
    clockWait,
    registry: WorkerRegistry.STORE,
    allowShortLife: false,
    endTime,
    idsPerSecond: 4_096_000n,
    redisServer: "",
    ...more,
  };
  return { ...someTag(name), order: 1, kind: { $case: "snowflake", value } };
}
