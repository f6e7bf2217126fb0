import { readFileSync } from "node:fs";
import {
  Client,
  connectivityState,
  credentials,
  type ChannelCredentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { IdmintError } from "@idmint/core";
import type { EtcdConfig } from "../../shared/config.ts";
import { CallFailure, failureOf, isPassing } from "./failure.ts";
import { type Method, type Methods, type WatchAnswer, wireOf } from "./protocol.ts";

/** What is one question and one answer. */
type Call = Exclude<Method, "watch">;

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
/** Pause before all members are asked again, in milliseconds, times 1 to 2. */
const ROUND_PAUSE_MS = 20;
/** How long a log-in for a watch may take, in milliseconds. */
const LOG_IN_MS = 5_000;

/** How often a call may be made. */
export type Effect =
  /** Until it was certainly done or certainly not. */
  | "once"
  /** Again, whatever became of it. */
  | "any";

/** A member of the cluster, and the connection to it. */
export class Member {
  /** host:port. */
  readonly at: string;
  /** Whether it was proved over this connection that the cluster is the accepted one. */
  isProved = false;
  readonly #client: Client;
  #isWatched = false;

  constructor(at: string, creds: ChannelCredentials) {
    this.at = at;
    this.#client = new Client(at, creds, CHANNEL_OPTIONS);
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
      stream.cancel();
    };
    const end = (code: status, said: string): void => {
      if (isOver) return;
      stop();
      ended(failureOf(this.at, code, said));
    };
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
    const channel = this.#client.getChannel();
    const state = channel.getConnectivityState(false);
    if (state !== connectivityState.READY) this.isProved = false;
    if (state === connectivityState.SHUTDOWN) return;
    this.#isWatched = true;
    channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, () => {
      this.#isWatched = false;
      this.isProved = false;
      this.#watch();
    });
  }
}

/** Who hears of a watch. */
export interface WatchListener {
  readonly told: (answer: WatchAnswer) => void;
  readonly ended: (failure: CallFailure) => void;
}

/** Of every call. A member without a leader refuses it at once instead of keeping it, and ends a watch within seconds. */
function metadataOf(token: string | undefined): Metadata {
  const metadata = new Metadata();
  metadata.set("hasleader", "true");
  if (token !== undefined) metadata.set("token", token);
  return metadata;
}

/** The members of one cluster, of which one at a time is asked. */
export class Members {
  readonly #all: readonly Member[];
  readonly #user: { readonly name: string; readonly password: string } | undefined;
  #current: number;
  /** Counts the watches that were begun. */
  #watched: number;
  #token: string | undefined;
  #loggingIn: Promise<void> | undefined;

  constructor({ hosts, tls, user, password = "" }: EtcdConfig) {
    const creds = tls === undefined ? credentials.createInsecure() : tlsOf(tls);
    this.#all = hosts.map((at) => new Member(at, creds));
    this.#user = user === undefined ? undefined : { name: user, password };
    // Servers are spread over the members.
    this.#current = Math.floor(Math.random() * hosts.length);
    this.#watched = this.#current;
  }

  close(): void {
    for (const member of this.#all) member.close();
  }

  /**
   * Runs `work` with one member; with the next when it did nothing, or, where the effect allows it, when that is not known.
   * `attemptMs`: how long one member has.
   */
  async run<T>(
    effect: Effect,
    deadlineMs: number,
    attemptMs: number,
    work: (member: Member, ask: Ask) => Promise<T>,
  ): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const at = this.#current;
      const member = this.#all[at] as Member;
      const untilMs = Math.min(deadlineMs, performance.now() + attemptMs);
      try {
        // oxlint-disable-next-line no-await-in-loop
        return await work(member, (name, request) => this.#ask(member, name, request, untilMs));
      } catch (error) {
        if (!isPassing(error)) throw error;
        if (this.#current === at) this.#current = (at + 1) % this.#all.length;
        const mayAgain = error.kind === "not done" || effect === "any";
        const pauseMs = attempt % this.#all.length === 0 ? ROUND_PAUSE_MS * (1 + Math.random()) : 0;
        if (!mayAgain || performance.now() + pauseMs >= deadlineMs) throw error;
        // oxlint-disable-next-line no-await-in-loop
        if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  /** Watches keys at a member, each time at another one. */
  watch(keys: readonly Buffer[], { told, ended }: WatchListener): () => void {
    const member = this.#all[this.#watched++ % this.#all.length] as Member;
    let isOver = false;
    let stop: (() => void) | undefined;
    const end = (failure: CallFailure): void => {
      if (!isOver) ended(failure);
    };
    const begin = async (): Promise<void> => {
      const isKnown = this.#user === undefined || this.#token !== undefined;
      if (!isKnown) await this.#logIn(member, performance.now() + LOG_IN_MS);
      if (isOver) return;
      const token = this.#token;
      const forget = (failure: CallFailure): void => {
        if (failure.kind === "token" && this.#token === token) this.#token = undefined;
        end(failure);
      };
      stop = member.watch(keys, token, { told, ended: forget });
    };
    begin().catch((error: unknown) => {
      end(
        error instanceof CallFailure ? error : new CallFailure("refused", member.at, "no log-in"),
      );
    });
    return () => {
      isOver = true;
      stop?.();
    };
  }

  async #ask<Name extends Call>(
    member: Member,
    name: Name,
    request: Methods[Name]["request"],
    untilMs: number,
  ): Promise<Methods[Name]["answer"]> {
    if (this.#user === undefined) return member.call(name, request, undefined, untilMs);
    if (this.#token === undefined) await this.#logIn(member, untilMs);
    const token = this.#token;
    try {
      return await member.call(name, request, token, untilMs);
    } catch (error) {
      // Nothing was done: etcd looks at the token first.
      if (!(error instanceof CallFailure) || error.kind !== "token") throw error;
      if (this.#token === token) this.#token = undefined;
      if (this.#token === undefined) await this.#logIn(member, untilMs);
      return member.call(name, request, this.#token, untilMs);
    }
  }

  async #logIn(member: Member, untilMs: number): Promise<void> {
    this.#loggingIn ??= (async () => {
      try {
        const user = this.#user ?? { name: "", password: "" };
        const { token } = await member.call("authenticate", user, undefined, untilMs);
        this.#token = token;
      } finally {
        this.#loggingIn = undefined;
      }
    })();
    await this.#loggingIn;
  }
}

/** Makes a call of one member. */
export type Ask = <Name extends Call>(
  name: Name,
  request: Methods[Name]["request"],
) => Promise<Methods[Name]["answer"]>;

function tlsOf({ caFile, certFile, keyFile }: NonNullable<EtcdConfig["tls"]>): ChannelCredentials {
  const [ca, key, cert] = [
    contentOf("store.tls_ca_file", caFile),
    contentOf("store.tls_key_file", keyFile),
    contentOf("store.tls_cert_file", certFile),
  ];
  try {
    return credentials.createSsl(ca, key, cert);
  } catch (error) {
    throw new IdmintError(
      "STORE_REFUSED",
      `the files of store.tls_ca_file, store.tls_cert_file and store.tls_key_file are no certificates and key that belong together (${(error as Error).message})`,
      { cause: error },
    );
  }
}

function contentOf(option: string, file: string | undefined): Buffer | null {
  if (file === undefined) return null;
  try {
    return readFileSync(file);
  } catch (error) {
    throw new IdmintError(
      "STORE_REFUSED",
      `cannot read the file of ${option} (${(error as Error).message})`,
      { cause: error },
    );
  }
}
