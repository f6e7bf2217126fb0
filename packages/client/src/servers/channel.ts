import {
  type ChannelCredentials,
  type ChannelOptions,
  type ClientUnaryCall,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { IdmintError } from "@idmint/core";
import type {
  AllocateSegmentRequest,
  AllocateSegmentResponse,
  GenerateIdsRequest,
  GenerateIdsResponse,
  GetNodeTimeResponse,
  LeaseWorkerRequest,
  LeaseWorkerResponse,
  ListNodesResponse,
  Node,
  ReleaseSegmentRequest,
  ReleaseSegmentResponse,
  ReleaseWorkerLeaseRequest,
  RenewWorkerLeaseRequest,
  RenewWorkerLeaseResponse,
} from "@idmint/proto";
import {
  HealthClient,
  IdServiceClient,
  NodeServiceClient,
  WorkerServiceClient,
} from "@idmint/proto/grpc-js";
import { type HealthCheckResponse, HealthCheckResponse_ServingStatus } from "@idmint/proto/health";
import { isOnThisMachine } from "./addresses.ts";
import { credentialsOf } from "./credentials.ts";
import { failureOf, unanswered } from "./errors.ts";
import { Patience } from "./patience.ts";
import type { TlsOptions } from "../options.ts";
import { outside } from "../process/outside.ts";
import type { ListedServer, ServerList } from "./servers-state.ts";

/** What a server says of itself. */
interface Identity {
  readonly nodeId: string;
  readonly isServing: boolean;
}

/** One try each, at one endpoint, with a deadline. All reject with IdmintError; nothing is retried here. */
export interface Transport {
  allocate(
    endpoint: string,
    request: AllocateSegmentRequest,
    timeoutMs: number,
    headers?: Headers,
  ): Promise<AllocateSegmentResponse>;
  generate(
    endpoint: string,
    request: GenerateIdsRequest,
    timeoutMs: number,
    headers?: Headers,
  ): Promise<GenerateIdsResponse>;
  release(
    endpoint: string,
    request: ReleaseSegmentRequest,
    timeoutMs: number,
  ): Promise<ReleaseSegmentResponse>;
  lease(
    endpoint: string,
    request: LeaseWorkerRequest,
    timeoutMs: number,
    headers?: Headers,
  ): Promise<LeaseWorkerResponse>;
  renewLease(
    endpoint: string,
    request: RenewWorkerLeaseRequest,
    timeoutMs: number,
    headers?: Headers,
  ): Promise<RenewWorkerLeaseResponse>;
  releaseLease(
    endpoint: string,
    request: ReleaseWorkerLeaseRequest,
    timeoutMs: number,
  ): Promise<unknown>;
  /** Whether the endpoint says that it serves; undefined: it does not answer. Never rejects. */
  isServing(endpoint: string, timeoutMs: number): Promise<boolean | undefined>;
  /** The random name of the server there, and whether it serves; undefined: none answers. Never rejects. */
  identify(endpoint: string, timeoutMs: number): Promise<Identity | undefined>;
  /** The servers that the endpoint knows of; undefined: it does not answer. Never rejects. */
  listNodes(endpoint: string, timeoutMs: number): Promise<ServerList | undefined>;
  /** Closes the connection once the calls in flight are over. The next call makes another one. */
  forget(endpoint: string): void;
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
  // A proxy that the environment names would read every token that goes to this machine in plain text.
  "grpc.enable_http_proxy": 0,
  // A server that no tag prefers any more keeps no connection.
  "grpc.client_idle_timeout_ms": 300_000,
};

/** Most servers of a list: those of the first page. */
const MAX_LISTED = 1_000;

const NO_METADATA = new Metadata();

/** What goes with a request, as whoever listens to it wants. */
type Headers = Readonly<Record<string, string>>;

type Callback<T> = (error: ServiceError | null, answer: T) => void;

/** The services of an endpoint, over one connection. */
interface Services {
  readonly ids: IdServiceClient;
  readonly workers: WorkerServiceClient;
  readonly nodes: NodeServiceClient;
  readonly health: HealthClient;
}

/** Channels of grpc-js, one per endpoint, made when the endpoint is first asked. All have the same credentials. */
export class GrpcTransport implements Transport {
  readonly #credentials: ChannelCredentials;
  readonly #options: ChannelOptions;
  readonly #services = new Map<string, Services>();
  readonly #inFlight = new Set<ClientUnaryCall>();
  readonly #patience = new Patience();
  readonly #token: (() => string) | undefined;
  readonly #isPlain: boolean;
  #proved = { text: "", metadata: NO_METADATA };
  #closed = false;

  /** `token` answers what every request proves itself by. */
  constructor(tls: false | TlsOptions, token?: () => string) {
    this.#token = token;
    this.#isPlain = tls === false;
    this.#credentials = credentialsOf(tls);
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

  async allocate(
    endpoint: string,
    request: AllocateSegmentRequest,
    timeoutMs: number,
    headers?: Headers,
  ): Promise<AllocateSegmentResponse> {
    // The server is told its time; how long its answer is of use is judged here.
    const timed = { ...headers, "grpc-timeout": `${Math.ceil(timeoutMs)}m` };
    let stop: (() => void) | undefined;
    let isGivenUp = false;
    try {
      const answer = await this.#send<AllocateSegmentResponse>(timeoutMs, (_options, done) => {
        const call = this.#of(endpoint).ids.allocateSegment(
          request,
          this.#metadata(endpoint, timed),
          done,
        );
        stop = this.#patience.watch(endpoint, timeoutMs, () => {
          isGivenUp = true;
          call.cancel();
        });
        return call;
      });
      this.#patience.heard(endpoint);
      return answer;
    } catch (thrown) {
      if (thrown instanceof IdmintError) throw thrown;
      if (isGivenUp) throw unanswered(endpoint, timeoutMs, thrown);
      const failure = failureOf(endpoint, timeoutMs, thrown as ServiceError);
      if (failure.reason !== "SERVER_UNAVAILABLE") this.#patience.heard(endpoint);
      throw failure;
    } finally {
      stop?.();
    }
  }

  generate(
    endpoint: string,
    request: GenerateIdsRequest,
    timeoutMs: number,
    headers?: Headers,
  ): Promise<GenerateIdsResponse> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#of(endpoint).ids.generateIds(request, this.#metadata(endpoint, headers), options, done),
    );
  }

  release(
    endpoint: string,
    request: ReleaseSegmentRequest,
    timeoutMs: number,
  ): Promise<ReleaseSegmentResponse> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#of(endpoint).ids.releaseSegment(request, this.#metadata(endpoint), options, done),
    );
  }

  lease(
    endpoint: string,
    request: LeaseWorkerRequest,
    timeoutMs: number,
    headers?: Headers,
  ): Promise<LeaseWorkerResponse> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#of(endpoint).workers.leaseWorker(
        request,
        this.#metadata(endpoint, headers),
        options,
        done,
      ),
    );
  }

  renewLease(
    endpoint: string,
    request: RenewWorkerLeaseRequest,
    timeoutMs: number,
    headers?: Headers,
  ): Promise<RenewWorkerLeaseResponse> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#of(endpoint).workers.renewWorkerLease(
        request,
        this.#metadata(endpoint, headers),
        options,
        done,
      ),
    );
  }

  releaseLease(
    endpoint: string,
    request: ReleaseWorkerLeaseRequest,
    timeoutMs: number,
  ): Promise<unknown> {
    return this.#call(endpoint, timeoutMs, (options, done) =>
      this.#of(endpoint).workers.releaseWorkerLease(
        request,
        this.#metadata(endpoint),
        options,
        done,
      ),
    );
  }

  async isServing(endpoint: string, timeoutMs: number): Promise<boolean | undefined> {
    try {
      const { status: found } = await this.#send<HealthCheckResponse>(timeoutMs, (options, done) =>
        this.#of(endpoint).health.check({ service: "" }, NO_METADATA, options, done),
      );
      return found === HealthCheckResponse_ServingStatus.SERVING;
    } catch (thrown) {
      // A server without the health service answers, and that is all that can be known of it.
      return isUnimplemented(thrown) ? true : undefined;
    }
  }

  /** Shows nothing of this client: the server is not proved yet. */
  async identify(endpoint: string, timeoutMs: number): Promise<Identity | undefined> {
    // It could not be asked for anything afterwards.
    if (!this.#mayProve(endpoint)) return undefined;
    const [node, isServing] = await Promise.all([
      this.#send<GetNodeTimeResponse>(timeoutMs, (options, done) =>
        this.#of(endpoint).nodes.getNodeTime({}, NO_METADATA, options, done),
      ).catch(() => undefined),
      this.isServing(endpoint, timeoutMs),
    ]);
    if (node === undefined || isServing === undefined) return undefined;
    return { nodeId: node.nodeId, isServing };
  }

  async listNodes(endpoint: string, timeoutMs: number): Promise<ServerList | undefined> {
    const request = { pageSize: MAX_LISTED, pageToken: "" };
    try {
      const answer = await this.#send<ListNodesResponse>(timeoutMs, (options, done) =>
        this.#of(endpoint).nodes.listNodes(request, this.#metadata(endpoint), options, done),
      );
      const { nodeId, nodesVersion: version, nodes } = answer;
      return { nodeId, version, servers: nodes.map(listedServer) };
    } catch {
      return undefined;
    }
  }

  forget(endpoint: string): void {
    this.#services.get(endpoint)?.ids.close();
    this.#services.delete(endpoint);
    this.#patience.forget(endpoint);
  }

  close(): void {
    this.#closed = true;
    // A cancelled allocation has an unknown outcome: its ids are never used.
    for (const call of this.#inFlight) call.cancel();
    for (const { ids } of this.#services.values()) ids.close();
  }

  async #call<T>(
    endpoint: string,
    timeoutMs: number,
    start: (options: { deadline: number }, done: Callback<T>) => ClientUnaryCall,
  ): Promise<T> {
    try {
      return await this.#send(timeoutMs, start);
    } catch (thrown) {
      if (thrown instanceof IdmintError) throw thrown;
      throw failureOf(endpoint, timeoutMs, thrown as ServiceError);
    }
  }

  /** Rejects with what grpc-js says, or CLIENT_CLOSED. */
  #send<T>(
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
        else reject(error);
      };
      // The connection, its timers and sockets are of all callers. Both clocks of a deadline are those of gRPC.
      const call = outside(() => start({ deadline: Date.now() + timeoutMs }, done));
      this.#inFlight.add(call);
    });
  }

  /** Whether a token may go there: nobody on the way can read it. */
  #mayProve(endpoint: string): boolean {
    return this.#token === undefined || !this.#isPlain || isOnThisMachine(endpoint);
  }

  /** What every request to the endpoint carries: the headers, and what proves this client. */
  #metadata(endpoint: string, headers?: Headers): Metadata {
    const proof = this.#proof(endpoint);
    if (headers === undefined) return proof;
    const metadata = proof.clone();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    return metadata;
  }

  #proof(endpoint: string): Metadata {
    if (this.#token === undefined || !this.#mayProve(endpoint)) return NO_METADATA;
    const text = this.#token();
    if (text !== this.#proved.text) {
      const metadata = new Metadata();
      metadata.set("authorization", `Bearer ${text}`);
      this.#proved = { text, metadata };
    }
    return this.#proved.metadata;
  }

  #of(address: string): Services {
    const known = this.#services.get(address);
    if (known !== undefined) return known;
    const ids = new IdServiceClient(address, this.#credentials, this.#options);
    const same = { channelOverride: ids.getChannel() };
    const made = {
      ids,
      workers: new WorkerServiceClient(address, this.#credentials, same),
      nodes: new NodeServiceClient(address, this.#credentials, same),
      health: new HealthClient(address, this.#credentials, same),
    };
    this.#services.set(address, made);
    return made;
  }
}

function isUnimplemented(thrown: unknown): boolean {
  return (thrown as Partial<ServiceError>).code === status.UNIMPLEMENTED;
}

function listedServer(node: Node): ListedServer {
  const { nodeId, address, zone, weight, draining, alive, heardTime } = node;
  const heardAtMs = heardTime?.getTime() ?? 0;
  return { nodeId, address, zone, weight, isDraining: draining, isAlive: alive, heardAtMs };
}
