import {
  type ChannelCredentials,
  type ChannelOptions,
  type ClientUnaryCall,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { IdmintError } from "@idmint/core";
import {
  type AllocateSegmentRequest,
  type AllocateSegmentResponse,
  type GenerateIdsRequest,
  type GenerateIdsResponse,
  IdServiceClient,
  type LeaseWorkerRequest,
  type LeaseWorkerResponse,
  type ReleaseSegmentRequest,
  type ReleaseSegmentResponse,
  type ReleaseWorkerLeaseRequest,
  type RenewWorkerLeaseRequest,
  type RenewWorkerLeaseResponse,
  WorkerServiceClient,
} from "@idmint/proto";
import {
  HealthClient,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
} from "@idmint/proto/health";
import { fromCallTo } from "./errors.ts";
import type { TlsOptions } from "../options.ts";

/** One try each, at one endpoint, with a deadline. All reject with IdmintError; nothing is retried here. */
export interface Transport {
  allocate(
    endpoint: number,
    request: AllocateSegmentRequest,
    timeoutMs: number,
  ): Promise<AllocateSegmentResponse>;
  generate(
    endpoint: number,
    request: GenerateIdsRequest,
    timeoutMs: number,
  ): Promise<GenerateIdsResponse>;
  release(
    endpoint: number,
    request: ReleaseSegmentRequest,
    timeoutMs: number,
  ): Promise<ReleaseSegmentResponse>;
  lease(
    endpoint: number,
    request: LeaseWorkerRequest,
    timeoutMs: number,
  ): Promise<LeaseWorkerResponse>;
  renewLease(
    endpoint: number,
    request: RenewWorkerLeaseRequest,
    timeoutMs: number,
  ): Promise<RenewWorkerLeaseResponse>;
  releaseLease(
    endpoint: number,
    request: ReleaseWorkerLeaseRequest,
    timeoutMs: number,
  ): Promise<unknown>;
  /** Whether the endpoint says that it serves. Never rejects. */
  isServing(endpoint: number, timeoutMs: number): Promise<boolean>;
  /** Cancels what is in flight and closes the connections. */
  close(): void;
}

const CHANNEL_OPTIONS: ChannelOptions = {
  // One layer retries at one level each (see tag.ts); grpc-js would be another one.
  "grpc.enable_retries": 0,
  // A connection that is dead without a word is noticed within 13 s, also before it is needed again.
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 3_000,
  "grpc.keepalive_permit_without_calls": 1,
  // A server that restarts is found again within about the buffer's own longest back-off.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 2_000,
  // Connections belong to one client, so that closing it closes them.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.service_config_disable_resolution": 1,
  "grpc.enable_channelz": 0,
};

const NO_METADATA = new Metadata();

type Callback<T> = (error: ServiceError | null, answer: T) => void;

/** Channels of grpc-js, one per endpoint, made when the endpoint is first asked. */
export class GrpcTransport implements Transport {
  readonly #addresses: readonly string[];
  readonly #credentials: ChannelCredentials;
  readonly #options: ChannelOptions;
  readonly #ids: (IdServiceClient | undefined)[] = [];
  readonly #workers: (WorkerServiceClient | undefined)[] = [];
  readonly #health: (HealthClient | undefined)[] = [];
  readonly #inFlight = new Set<ClientUnaryCall>();
  #closed = false;

  constructor(addresses: readonly string[], tls: false | TlsOptions) {
    this.#addresses = addresses;
    this.#credentials = tls === false ? credentials.createInsecure() : tlsCredentials(tls);
    const serverName = tls === false ? undefined : tls.serverName;
    this.#options =
      serverName === undefined
        ? CHANNEL_OPTIONS
        : {
            ...CHANNEL_OPTIONS,
            "grpc.ssl_target_name_override": serverName,
            "grpc.default_authority": serverName,
          };
  }

  allocate(
    endpoint: number,
    request: AllocateSegmentRequest,
    timeoutMs: number,
  ): Promise<AllocateSegmentResponse> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#idsOf(endpoint).allocateSegment(request, NO_METADATA, options, done),
    );
  }

  generate(
    endpoint: number,
    request: GenerateIdsRequest,
    timeoutMs: number,
  ): Promise<GenerateIdsResponse> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#idsOf(endpoint).generateIds(request, NO_METADATA, options, done),
    );
  }

  release(
    endpoint: number,
    request: ReleaseSegmentRequest,
    timeoutMs: number,
  ): Promise<ReleaseSegmentResponse> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#idsOf(endpoint).releaseSegment(request, NO_METADATA, options, done),
    );
  }

  lease(
    endpoint: number,
    request: LeaseWorkerRequest,
    timeoutMs: number,
  ): Promise<LeaseWorkerResponse> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#workersOf(endpoint).leaseWorker(request, NO_METADATA, options, done),
    );
  }

  renewLease(
    endpoint: number,
    request: RenewWorkerLeaseRequest,
    timeoutMs: number,
  ): Promise<RenewWorkerLeaseResponse> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#workersOf(endpoint).renewWorkerLease(request, NO_METADATA, options, done),
    );
  }

  releaseLease(
    endpoint: number,
    request: ReleaseWorkerLeaseRequest,
    timeoutMs: number,
  ): Promise<unknown> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#workersOf(endpoint).releaseWorkerLease(request, NO_METADATA, options, done),
    );
  }

  isServing(endpoint: number, timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#closed) {
        resolve(false);
        return;
      }
      const done: Callback<HealthCheckResponse> = (error, answer) => {
        this.#inFlight.delete(call);
        // A server without the health service answers, and that is all that can be known of it.
        if (error !== null) resolve(error.code === status.UNIMPLEMENTED);
        else resolve(answer.status === HealthCheckResponse_ServingStatus.SERVING);
      };
      const options = { deadline: Date.now() + timeoutMs };
      const call = this.#healthOf(endpoint).check({ service: "" }, NO_METADATA, options, done);
      this.#inFlight.add(call);
    });
  }

  close(): void {
    this.#closed = true;
    // A cancelled allocation has an unknown outcome: its ids are never used.
    for (const call of this.#inFlight) call.cancel();
    for (const client of this.#ids) client?.close();
  }

  #call<T>(
    endpoint: number,
    timeoutMs: number,
    start: (options: { deadline: number }, done: Callback<T>) => ClientUnaryCall,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new IdmintError("CLIENT_CLOSED", "the client was closed"));
        return;
      }
      const done: Callback<T> = (error, answer) => {
        this.#inFlight.delete(call);
        if (error === null) resolve(answer);
        else reject(this.#failure(endpoint, timeoutMs, error));
      };
      const options = { deadline: Date.now() + timeoutMs };
      const call = start(options, done);
      this.#inFlight.add(call);
    });
  }

  #failure(endpoint: number, timeoutMs: number, error: ServiceError): IdmintError {
    const address = this.#addresses[endpoint] ?? "";
    const failure = fromCallTo(address, error);
    if (failure.reason !== "DEADLINE_EXCEEDED") return failure;
    // The deadline was this try's, not the caller's: what the caller asked for may still be had in time.
    const text = `${address} did not answer within ${timeoutMs} ms`;
    return new IdmintError("SERVER_UNAVAILABLE", text, { cause: error });
  }

  #idsOf(endpoint: number): IdServiceClient {
    const known = this.#ids[endpoint];
    if (known !== undefined) return known;
    const address = this.#addresses[endpoint];
    if (address === undefined) throw new RangeError(`endpoint ${endpoint}`);
    const client = new IdServiceClient(address, this.#credentials, this.#options);
    this.#ids[endpoint] = client;
    return client;
  }

  /** The other services of an endpoint share its connection. */
  #workersOf(endpoint: number): WorkerServiceClient {
    const known = this.#workers[endpoint];
    if (known !== undefined) return known;
    const channelOverride = this.#idsOf(endpoint).getChannel();
    const address = this.#addresses[endpoint] ?? "";
    const client = new WorkerServiceClient(address, this.#credentials, { channelOverride });
    this.#workers[endpoint] = client;
    return client;
  }

  #healthOf(endpoint: number): HealthClient {
    const known = this.#health[endpoint];
    if (known !== undefined) return known;
    const channelOverride = this.#idsOf(endpoint).getChannel();
    const address = this.#addresses[endpoint] ?? "";
    const client = new HealthClient(address, this.#credentials, { channelOverride });
    this.#health[endpoint] = client;
    return client;
  }
}

function tlsCredentials({ ca, cert, key }: TlsOptions): ChannelCredentials {
  return credentials.createSsl(bytes(ca), bytes(key), bytes(cert));
}

function bytes(pem: string | Uint8Array | undefined): Buffer | null {
  if (pem === undefined) return null;
  return typeof pem === "string" ? Buffer.from(pem, "utf8") : Buffer.from(pem);
}
