import {
  type ConnectionInjector,
  Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceError,
} from "@grpc/grpc-js";
import type { Clock } from "@idmint/core";
import { HealthService } from "@idmint/proto/health";
import type { Api } from "../api/api.ts";
import type { Handler } from "../api/method.ts";
import { statusOf } from "../api/status.ts";
import type { Counters } from "../service/counters.ts";
import type { Emit } from "../service/events.ts";
import { GrpcCallContext } from "./call-context.ts";
import type { TlsCredentials } from "./credentials.ts";
import { cureSessionsOf, verifyStreamRingCure } from "./gc-cures.ts";
import { Health } from "./health.ts";
import { Listener } from "./listener.ts";
import { addReflection } from "./reflection.ts";

/**
 * Bounds of one connection. Requests are small, so a message of 64 KiB is generous; together with the memory of a
 * session they keep a hostile connection at a few megabytes. The age sends callers to new servers now and then, and
 * pings find connections whose other end is gone without a word.
 */
const SERVER_OPTIONS = {
  "grpc.max_receive_message_length": 64 * 1_024,
  "grpc.max_concurrent_streams": 256,
  "grpc-node.max_session_memory": 8,
  "grpc.max_connection_age_ms": 30 * 60_000,
  "grpc.max_connection_age_grace_ms": 30_000,
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 20_000,
  "grpc.enable_channelz": 0,
};
const MAX_METADATA_BYTES = 8 * 1_024;
/** Calls a caller may cancel in a burst, and each second after that, before its connection is taken for an attack. */
const CANCEL_BURST = 10_000;
const CANCEL_RATE = 1_000;
const PREFACE_TIMEOUT_MS = 10_000;

export interface GrpcDoorOptions {
  readonly host: string;
  readonly port: number;
  /** Undefined: in plain text. */
  readonly tls: TlsCredentials | undefined;
  readonly maxConnections: number;
}

export interface GrpcDoorPorts {
  readonly api: Api;
  readonly clock: Clock;
  readonly counters: Counters;
  readonly emit: Emit;
}

/** The grpc-js door: registers the table of handlers, health and reflection, and listens. */
export class GrpcDoor {
  readonly #ports: GrpcDoorPorts;
  readonly #server: Server;
  readonly #health: Health;
  readonly #tls: TlsCredentials | undefined;
  readonly #injector: ConnectionInjector;
  readonly #listener: Listener;
  #inFlight = 0;
  #onIdle: (() => void) | undefined;

  private constructor(ports: GrpcDoorPorts, options: GrpcDoorOptions) {
    const { tls } = options;
    this.#ports = ports;
    this.#tls = tls;
    this.#server = new Server(SERVER_OPTIONS);
    boundHttp2(this.#server);
    cureSessionsOf(this.#server);
    for (const handler of ports.api.values()) this.#register(handler);
    const services = new Set([...ports.api.keys()].map((path) => path.split("/")[1] ?? ""));
    this.#health = new Health([...services]);
    this.#server.addService(HealthService, this.#health.implementation());
    addReflection(this.#server);
    this.#injector = this.#server.createConnectionInjector(
      tls?.credentials ?? ServerCredentials.createInsecure(),
    );
    this.#listener = new Listener(this.#injector, {
      host: options.host,
      port: options.port,
      maxConnections: options.maxConnections,
      prefaceTimeoutMs: PREFACE_TIMEOUT_MS,
      onRefused: (peer, why) => ports.emit({ type: "connection-refused", peer, why }),
    });
  }

  /** Makes the door; it is closed until `listen`. It closes the credentials when it is closed. */
  static async create(ports: GrpcDoorPorts, options: GrpcDoorOptions): Promise<GrpcDoor> {
    await verifyStreamRingCure();
    return new GrpcDoor(ports, options);
  }

  /** Fulfils with the port. */
  listen(): Promise<number> {
    return this.#listener.listen();
  }

  /** What health answers from now on. */
  setServing(serving: boolean): void {
    this.#health.setServing(serving);
  }

  get connections(): number {
    return this.#listener.connections;
  }

  /** Fulfils when no call is in flight, or after `boundMs`. */
  idle(boundMs: number): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, boundMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Takes no more connections, lets answers go out for at most `graceMs`, and closes every connection. */
  async close(graceMs: number): Promise<void> {
    this.#listener.stop();
    this.#tls?.close();
    this.#health.close();
    // grpc-js takes a session that began to close for one that is closed, so the sockets tell when all was sent.
    this.#server.tryShutdown(() => undefined);
    await this.#listener.empty(graceMs);
    this.#server.forceShutdown();
    this.#listener.destroy();
  }

  #register(handler: Handler): void {
    this.#server.register(
      handler.path,
      (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) =>
        this.#call(handler, call, callback),
      // Messages stay bytes here: what is wrong with them is the table's to say.
      (bytes) => bytes,
      (bytes) => bytes,
      "unary",
    );
  }

  #call(
    handler: Handler,
    call: ServerUnaryCall<Buffer, Buffer>,
    callback: sendUnaryData<Buffer>,
  ): void {
    this.#ports.counters.calls++;
    try {
      const answer = handler.handle(call.request, new GrpcCallContext(call, this.#ports.clock));
      if (answer instanceof Promise) void this.#later(handler, answer, callback);
      else callback(null, bufferOf(answer));
    } catch (thrown) {
      this.#refuse(handler, thrown, callback);
    }
  }

  async #later(
    handler: Handler,
    answer: Promise<Uint8Array>,
    callback: sendUnaryData<Buffer>,
  ): Promise<void> {
    this.#inFlight++;
    try {
      callback(null, bufferOf(await answer));
    } catch (thrown) {
      this.#refuse(handler, thrown, callback);
    }
    this.#inFlight--;
    if (this.#inFlight === 0) this.#onIdle?.();
  }

  #refuse(handler: Handler, thrown: unknown, callback: sendUnaryData<Buffer>): void {
    this.#ports.counters.refusedCalls++;
    const { code, message, details } = statusOf(thrown, handler.path, this.#ports.emit);
    const metadata = new Metadata();
    metadata.set("grpc-status-details-bin", bufferOf(details));
    // The code is one of grpc-js's, which knows them as an enum.
    const refusal: unknown = { code, details: message, metadata };
    callback(refusal as Partial<ServiceError>);
  }
}

/** The same bytes, as the class that grpc-js asks for. */
function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * HTTP/2 bounds that grpc-js has no options for. The field is private, so it is only touched when it is as expected;
 * otherwise Node's own bounds hold (64 KiB of headers, a burst of 1,000 cancels).
 */
function boundHttp2(server: Server): void {
  const { commonServerOptions } = server as unknown as {
    commonServerOptions?: { settings?: Record<string, number> } & Record<string, unknown>;
  };
  if (typeof commonServerOptions?.settings !== "object") return;
  commonServerOptions.settings["maxHeaderListSize"] = MAX_METADATA_BYTES;
  commonServerOptions["streamResetBurst"] = CANCEL_BURST;
  commonServerOptions["streamResetRate"] = CANCEL_RATE;
}
