import {
  Client,
  connectivityState,
  type ChannelCredentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { CallFailure, failureOf, isPassing } from "./failure.ts";
import { type Method, type Methods, type WatchAnswer, wireOf } from "./protocol.ts";

/** What is one question and one answer. */
export type Call = Exclude<Method, "watch">;

/** A page of tags is about one MiB; nothing that is asked for comes near it. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const CHANNEL_OPTIONS = {
  "grpc.max_receive_message_length": MAX_ANSWER_BYTES,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  // A watch says nothing for hours, and so would a connection that is dead. etcd takes a ping every 5 s.
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
  "grpc.enable_retries": 0,
  "grpc.service_config_disable_resolution": 1,
  "grpc.enable_http_proxy": 0,
  "grpc.use_local_subchannel_pool": 1,
} as const;
/** How long a member of another store is not asked again, in milliseconds. */
const ASIDE_MS = 1_000;

/** Who hears of a watch. */
export interface WatchListener {
  readonly told: (answer: WatchAnswer) => void;
  readonly ended: (failure: CallFailure) => void;
}

/** One address of an etcd, and the connection to it. */
export class Member {
  /** host:port. */
  readonly at: string;
  /** Whether it was proved over this connection that the cluster is the accepted one. */
  isProved = false;
  /** Why this process does not use the member, in words; empty: nothing is known against it. */
  trouble = "";
  readonly #creds: ChannelCredentials;
  #client: Client;
  /** Counts the changes of the connection. */
  #changes = 0;
  #isWatched = false;
  /** Of the monotonic clock. */
  #asideUntilMs = 0;
  /** How to end each watch. */
  readonly #watches = new Set<(code: status, said: string) => void>();

  constructor(at: string, creds: ChannelCredentials) {
    this.at = at;
    this.#creds = creds;
    this.#client = new Client(at, creds, CHANNEL_OPTIONS);
  }

  /** Differs from what it was when the connection is not the same any more. */
  get connection(): number {
    return this.#changes;
  }

  /** Whether it was found lately to be of another store. */
  get isAside(): boolean {
    return performance.now() < this.#asideUntilMs;
  }

  /**
   * Another store was found over a connection: the member is not asked for a while. It gets a new connection then, since its
   * address may lead somewhere else.
   */
  setAside(trouble: string, connection: number): CallFailure {
    if (connection === this.#changes) {
      this.trouble = trouble;
      this.isProved = false;
      this.#isWatched = false;
      this.#changes++;
      this.#asideUntilMs = performance.now() + ASIDE_MS;
      this.#client.close();
      this.#client = new Client(this.at, this.#creds, CHANNEL_OPTIONS);
      for (const end of this.#watches) end(status.UNAVAILABLE, trouble);
    }
    return new CallFailure("stranger", this.at, trouble);
  }

  /** The cluster proved itself over this connection. */
  prove(): void {
    this.isProved = true;
    this.trouble = "";
    this.#asideUntilMs = 0;
  }

  /** Makes one call; rejects with a CallFailure. */
  async call<Name extends Call>(
    name: Name,
    request: Methods[Name]["request"],
    token: string | undefined,
    deadlineMs: number,
  ): Promise<Methods[Name]["answer"]> {
    const { path, write, read } = wireOf(name);
    const metadata = metadataOf(token);
    const options = { deadline: Date.now() + Math.max(1, deadlineMs - performance.now()) };
    this.#watch();
    try {
      return await new Promise((resolve, reject) => {
        const settle = (error: ServiceError | null, answer?: Methods[Name]["answer"]): void => {
          if (error !== null) reject(failureOf(this.at, error.code, error.details));
          else if (answer === undefined) reject(new CallFailure("unknown", this.at, "no answer"));
          else resolve(answer);
        };
        if (name === "leaseKeepAlive") {
          const stream = this.#client.makeBidiStreamRequest(path, write, read, metadata, options);
          stream.on("data", (answer: Methods[Name]["answer"]) => settle(null, answer));
          stream.on("error", (error: ServiceError) => settle(error));
          stream.on("end", () => settle(null));
          stream.write(request);
          stream.end();
        } else {
          this.#client.makeUnaryRequest(path, write, read, request, metadata, options, settle);
        }
      });
    } catch (error) {
      if (isPassing(error)) this.isProved = false;
      throw error;
    }
  }

  /**
   * Watches keys from now on. `told` hears what etcd says, and `ended` once why it says no more. Answers how to end it; then
   * neither hears anything.
   */
  watch(
    keys: readonly Buffer[],
    token: string | undefined,
    { told, ended }: WatchListener,
  ): () => void {
    const { path, write, read } = wireOf("watch");
    const stream = this.#client.makeBidiStreamRequest(path, write, read, metadataOf(token));
    let isOver = false;
    const stop = (): void => {
      isOver = true;
      this.#watches.delete(end);
      stream.cancel();
    };
    const end = (code: status, said: string): void => {
      if (isOver) return;
      stop();
      ended(failureOf(this.at, code, said));
    };
    this.#watches.add(end);
    stream.on("data", (answer: WatchAnswer) => {
      if (isOver) return;
      if (answer.canceled) end(status.UNKNOWN, answer.reason);
      else told(answer);
    });
    stream.on("error", (error: ServiceError) => end(error.code, error.details));
    stream.on("end", () => end(status.UNAVAILABLE, "the member ended the watch"));
    for (const key of keys) stream.write({ create: { key } });
    return stop;
  }

  close(): void {
    this.#client.close();
  }

  /**
   * INVARIANT: a proof counts for the connection that it was made over. A cluster is only set back while its members do not
   * run, which ends their connections.
   */
  #watch(): void {
    if (this.#isWatched) return;
    const client = this.#client;
    const channel = client.getChannel();
    const state = channel.getConnectivityState(false);
    if (state !== connectivityState.READY) this.isProved = false;
    if (state === connectivityState.SHUTDOWN) return;
    this.#isWatched = true;
    channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, () => {
      if (client !== this.#client) return;
      this.#changes++;
      this.#isWatched = false;
      this.isProved = false;
      this.#watch();
    });
  }
}

/** Of every call. A member without a leader refuses it at once instead of keeping it, and ends a watch within seconds. */
function metadataOf(token: string | undefined): Metadata {
  const metadata = new Metadata();
  metadata.set("hasleader", "true");
  if (token !== undefined) metadata.set("token", token);
  return metadata;
}
