import type { Socket } from "node:net";
import {
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import type { Clock } from "@idmint/core";
import type { Api } from "../api/api.ts";
import { InFlight } from "../in-flight.ts";
import { draining, isDraining } from "../api/draining.ts";
import type { Handler, StreamHandler, UnaryHandler, WatchHandler } from "../api/method.ts";
import { statusOf } from "../api/status/status.ts";
import type { CallTimes, MethodTimes } from "../service/call-times.ts";
import type { Admission } from "../service/admission/admission.ts";
import type { Counters } from "../service/counters.ts";
import type { Emit } from "../service/events.ts";
import { type CallTrace, runFor, type Tracing } from "../service/trace.ts";
import { nodeTimers } from "../timers.ts";
import { type Callers, GrpcCallContext, GrpcStreamContext } from "./call-context.ts";
import { CallStream } from "../doors/call-stream.ts";
import { bufferOf, streamPeerOf } from "./stream-peer.ts";
import { boundHttp2, MAX_STREAMS, SERVER_OPTIONS } from "./bounds.ts";
import type { TlsCredentials } from "./credentials.ts";
import { FairReading } from "./fair-reading.ts";
import { limitedSession } from "./limited-session.ts";
import { OpenSessions } from "./open-sessions.ts";
import { guardSessions } from "./sessions.ts";
import { type ConnectionSource, Listener } from "../doors/listener.ts";
import { StreamLimits } from "../doors/stream-limits.ts";

const PREFACE_TIMEOUT_MS = 10_000;

export interface GrpcDoorOptions {
  readonly host: string;
  readonly port: number;
  /** Undefined: in plain text. */
  readonly tls: TlsCredentials | undefined;
  readonly maxConnections: number;
  readonly maxConnectionAgeMs: number;
  /** Connections come from here; host and port are not listened on. */
  readonly source?: ConnectionSource | undefined;
}

export interface GrpcDoorPorts {
  readonly api: Api;
  readonly clock: Clock;
  readonly callers: Callers;
  readonly counters: Counters;
  /** Undefined: calls are not timed. */
  readonly callTimes?: CallTimes | undefined;
  /** Undefined: no call is traced. */
  readonly tracing?: Tracing | undefined;
  readonly emit: Emit;
  readonly admission: Pick<Admission, "holdAll">;
}

/** A row of the table, and how long its calls took. */
interface Timed<Row extends Handler> {
  readonly handler: Row;
  readonly times: MethodTimes | undefined;
}

/** A call of one message that has begun. */
interface Taken {
  readonly row: Timed<UnaryHandler>;
  readonly startedAt: number;
  readonly call: ServerUnaryCall<Buffer, Buffer>;
  readonly callback: sendUnaryData<Buffer>;
}

const OK = 0;

/** The grpc-js door: registers the table of handlers, and listens. */
export class GrpcDoor {
  readonly #ports: GrpcDoorPorts;
  readonly #server: Server;
  readonly #tls: TlsCredentials | undefined;
  readonly #listener: Listener;
  readonly #streamLimits: StreamLimits;
  readonly #streams = new Map<CallStream, GrpcStreamContext>();
  readonly #inFlight = new InFlight(nodeTimers);
  readonly #sessions: OpenSessions;

  /** It is closed until `listen`. It closes the credentials when it is closed. */
  constructor(ports: GrpcDoorPorts, options: GrpcDoorOptions) {
    const { tls } = options;
    this.#ports = ports;
    this.#tls = tls;
    this.#server = new Server({
      ...SERVER_OPTIONS,
      "grpc.max_connection_age_ms": options.maxConnectionAgeMs,
    });
    boundHttp2(this.#server);
    const { clock, admission } = ports;
    this.#streamLimits = new StreamLimits(
      { clock, timers: nodeTimers, holdAll: (callers) => admission.holdAll(callers) },
      MAX_STREAMS,
    );
    const onRefused = (peer: string, why: string): void =>
      ports.emit({ type: "connection-refused", peer, why });
    const sessions = new OpenSessions({ isSecure: tls !== undefined, onRefused, clock });
    this.#sessions = sessions;
    const fair = new FairReading({
      idleMs: () => performance.eventLoopUtilization().idle,
      timers: nodeTimers,
      afterTurn: setImmediate,
    });
    guardSessions(this.#server, {
      session: (session) => {
        fair.watch(session);
        session.once("close", this.#streamLimits.add(limitedSession(session)));
        sessions.add(session);
      },
      stream: (stream, begin) => fair.opened(stream, begin),
    });
    for (const handler of ports.api.values()) this.#register(handler);
    const injector = this.#server.createConnectionInjector(
      tls?.credentials ?? ServerCredentials.createInsecure(),
    );
    const take = (socket: Socket): void =>
      sessions.take(socket, () => injector.injectConnection(socket));
    this.#listener = new Listener(take, {
      ...options,
      areUnread: tls !== undefined,
      prefaceTimeoutMs: PREFACE_TIMEOUT_MS,
      giveWay: (socket) => sessions.giveWay(socket),
      onRefused,
    });
  }

  /** Fulfils with the port. */
  listen(): Promise<number> {
    return this.#listener.listen();
  }

  get connections(): number {
    return this.#listener.connections;
  }

  /**
   * To be called about once a second, with the refusals that are held of each caller: where many are, its connections become
   * narrow. Answers all callers whose connections are.
   */
  limitStreams(held: ReadonlyMap<string, number>): ReadonlySet<string> {
    return this.#streamLimits.look(held);
  }

  /** Tells connections to go, spread over that time, those too that come meanwhile. */
  leave(forMs: number): void {
    this.#sessions.leave.begin(forMs);
  }

  /** Calls are refused from now on: tells the connections that are left. */
  refuse(): void {
    this.#sessions.leave.finish();
  }

  /** Calls are taken again. */
  stay(): void {
    this.#sessions.leave.stop();
  }

  /** Fulfils when no call is in flight, or after `boundMs`. */
  idle(boundMs: number): Promise<void> {
    return this.#inFlight.idle(boundMs);
  }

  /** Takes no more connections, lets answers go out for at most `graceMs`, and closes every connection. */
  async close(graceMs: number): Promise<void> {
    this.#listener.stop();
    for (const stream of this.#streams.keys()) stream.stop(draining("stopping"));
    this.#tls?.close();
    // grpc-js takes a session that began to close for one that is closed, so the sockets tell when all was sent.
    this.#server.tryShutdown(() => undefined);
    await this.#listener.empty(graceMs);
    this.#server.forceShutdown();
    this.#listener.destroy();
  }

  #register(handler: Handler): void {
    const { tracing, callTimes } = this.#ports;
    const times = callTimes?.of(handler.path);
    if (handler.kind === "unary") {
      const row = { handler, times };
      const take: handleUnaryCall<Buffer, Buffer> = (call, callback) => {
        const trace = tracing?.begin(handler.path, call.metadata);
        if (trace === undefined) this.#call(row, call, callback);
        else runFor(trace, () => this.#call(row, call, ending(trace, callback)));
      };
      this.#server.register(handler.path, take, asBytes, asBytes, "unary");
    } else if (handler.kind === "watch") {
      const row = { handler, times };
      const take: handleServerStreamingCall<Buffer, Buffer> = (call) => this.#watch(row, call);
      this.#server.register(handler.path, take, asBytes, asBytes, "serverStream");
    } else {
      const row = { handler, times };
      const take: handleBidiStreamingCall<Buffer, Buffer> = (call) => {
        const trace = tracing?.begin(handler.path, call.metadata);
        if (trace === undefined) this.#stream(row, call);
        else runFor(trace, () => this.#stream(row, call, trace));
      };
      this.#server.register(handler.path, take, asBytes, asBytes, "bidi");
    }
  }

  #stream(
    { handler, times }: Timed<StreamHandler>,
    call: ServerDuplexStream<Buffer, Buffer>,
    trace?: CallTrace,
  ): void {
    const { clock, callers, counters } = this.#ports;
    const startedAt = performance.now();
    let code = OK;
    const context = new GrpcStreamContext(call, clock, callers);
    const answer = handler.open(context);
    const stream = new CallStream(streamPeerOf(call, handler), {
      answer: (...its) => {
        const answered = trace === undefined ? answer(...its) : runFor(trace, () => answer(...its));
        if (answered instanceof Promise) void this.#track(answered);
        return answered;
      },
      onRequest: () => counters.calls++,
      refuse: (thrown) => {
        const refusal = this.#refusal(handler, thrown, call);
        code = refusal.code ?? OK;
        call.emit("error", refusal);
      },
      onEnd: () => {
        this.#streams.delete(stream);
        times?.answered(code, startedAt);
        trace?.end(code);
      },
    });
    call.on("data", (bytes: Buffer) => stream.take(bytes, 0, bytes.length));
    call.on("end", () => stream.end());
    call.on("drain", () => stream.drained());
    call.on("cancelled", () => stream.gone());
    call.on("error", () => stream.gone());
    // What is answered to everybody asks nobody who they are.
    if (handler.rule.isOpen) return;
    this.#streams.set(stream, context);
    this.#recheck(stream, context);
  }

  #watch(
    { handler, times }: Timed<WatchHandler>,
    call: ServerWritableStream<Buffer, Buffer>,
  ): void {
    const startedAt = performance.now();
    this.#ports.counters.calls++;
    let stop: (() => void) | undefined;
    const over = (code: number): void => {
      if (stop === undefined) return;
      stop();
      stop = undefined;
      times?.answered(code, startedAt);
    };
    try {
      stop = handler.open(call.request, {
        peer: call.getPeer(),
        send: (bytes) => call.write(bufferOf(bytes)),
        end: () => {
          over(OK);
          call.end();
        },
      });
      const gone = (): void => over(status.CANCELLED);
      call.on("cancelled", gone).on("close", gone).on("error", gone);
    } catch (thrown) {
      const refusal = this.#refusal(handler, thrown, call);
      call.emit("error", refusal);
      times?.answered(refusal.code ?? OK, startedAt);
    }
  }

  /** Ends the streams of callers who are not known any more: their token was revoked, or it expired. */
  recheck(): void {
    for (const [stream, context] of this.#streams) this.#recheck(stream, context);
  }

  #recheck(stream: CallStream, context: GrpcStreamContext): void {
    try {
      this.#ports.callers.access.assertKnown(context.principal);
    } catch (thrown) {
      stream.stop(thrown);
    }
  }

  #call(
    row: Timed<UnaryHandler>,
    call: ServerUnaryCall<Buffer, Buffer>,
    callback: sendUnaryData<Buffer>,
  ): void {
    const { handler, times } = row;
    const { clock, callers, counters } = this.#ports;
    const startedAt = times === undefined ? 0 : performance.now();
    counters.calls++;
    try {
      const answer = handler.handle(call.request, new GrpcCallContext(call, clock, callers));
      if (answer instanceof Promise) {
        void this.#later({ row, startedAt, call, callback }, answer);
      } else {
        callback(null, bufferOf(answer));
        times?.answered(OK, startedAt);
      }
    } catch (thrown) {
      this.#refuse({ row, startedAt, call, callback }, thrown);
    }
  }

  async #later(taken: Taken, answer: Promise<Uint8Array>): Promise<void> {
    const { row, startedAt, callback } = taken;
    void this.#track(answer);
    try {
      callback(null, bufferOf(await answer));
      row.times?.answered(OK, startedAt);
    } catch (thrown) {
      this.#refuse(taken, thrown);
    }
  }

  /** Counts what is in flight, for `idle`. */
  async #track(answer: Promise<unknown>): Promise<void> {
    this.#inFlight.begun();
    // How it ends is told to its caller.
    await answer.catch(() => undefined);
    // After the turn in which the answer is handed to grpc-js.
    setImmediate(() => this.#inFlight.ended());
  }

  #refuse({ row, startedAt, call, callback }: Taken, thrown: unknown): void {
    const { handler, times } = row;
    const refusal = this.#refusal(handler, thrown, call);
    callback(refusal);
    times?.answered(refusal.code ?? OK, startedAt);
  }

  /** As on the fast door, whoever is refused because this server takes no calls reads GOAWAY before that. */
  #refusal(
    handler: Handler,
    thrown: unknown,
    call: { readonly getPeer: () => string },
  ): Partial<ServiceError> {
    if (isDraining(thrown)) this.#sessions.tell(call.getPeer());
    const { code, message, details } = statusOf(thrown, handler.path, this.#ports);
    const metadata = new Metadata();
    metadata.set("grpc-status-details-bin", bufferOf(details));
    // The code is one of grpc-js's, which knows them as an enum.
    const refusal: unknown = { code, details: message, metadata };
    return refusal as Partial<ServiceError>;
  }
}

/** Tells a traced call's end to its caller and to the trace. */
function ending(trace: CallTrace, callback: sendUnaryData<Buffer>): sendUnaryData<Buffer> {
  return (refusal, answer) => {
    trace.end(refusal?.code ?? OK);
    callback(refusal, answer);
  };
}

/** Messages stay bytes in the door: what is wrong with them is the table's to say. */
function asBytes(bytes: Buffer): Buffer {
  return bytes;
}
