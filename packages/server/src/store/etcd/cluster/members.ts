import { readFileSync } from "node:fs";
import { credentials, type ChannelCredentials } from "@grpc/grpc-js";
import { IdmintError } from "@idmint/core";
import type { EtcdConfig } from "../../shared/config.ts";
import { CallFailure, isHopeless, isPassing } from "./failure.ts";
import { type Call, Member, type WatchListener } from "./member.ts";
import type { Methods } from "./protocol.ts";

/** Pause before all members are asked again, in milliseconds, times 1 to 2. */
const ROUND_PAUSE_MS = 20;
/** Least time that makes another attempt worth while, in milliseconds. */
const LEAST_MS = 100;
/** How long a log-in for a watch may take, in milliseconds. */
const LOG_IN_MS = 5_000;

/** How often a call may be made. */
export type Effect =
  /** Until it was certainly done or certainly not. */
  | "once"
  /** Again, whatever became of it. */
  | "any";

/** The members of one cluster, of which one at a time is asked. */
export class Members {
  readonly #all: readonly Member[];
  readonly #user: { readonly name: string; readonly password: string } | undefined;
  #current: number;
  /** Counts the watches that were begun. */
  #watched: number;
  #token: string | undefined;
  readonly #loggingIn = new Map<Member, Promise<void>>();

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

  /** What keeps members from being used, in words, of each that is not. */
  get troubles(): readonly string[] {
    return this.#all.map(({ trouble }) => trouble).filter((trouble) => trouble !== "");
  }

  /** Names what keeps a member from being used; empty: nothing. */
  name(at: string, trouble: string): void {
    for (const member of this.#all) if (member.at === at) member.trouble = trouble;
  }

  /**
   * Runs `work` with one member; with the next when it did nothing, or, where the effect allows it, when that is not known.
   * A member of another store is passed over, and one that refuses hides no other. `attemptMs`: how long one member has.
   */
  async run<T>(
    effect: Effect,
    deadlineMs: number,
    attemptMs: number,
    work: (member: Member, ask: Ask) => Promise<T>,
  ): Promise<T> {
    /** What asking again would not change. */
    const refusals = new Map<Member, CallFailure>();
    // A shorter attempt would only hide why the others failed.
    const leastMs = Math.min(LEAST_MS, attemptMs / 4);
    for (let attempt = 1; ; attempt++) {
      const at = this.#next();
      const member = this.#all[at] as Member;
      const untilMs = Math.min(deadlineMs, performance.now() + attemptMs);
      try {
        return await work(member, (name, request) => this.#ask(member, name, request, untilMs));
      } catch (error) {
        if (!isPassing(error) && !isHopeless(error)) throw error;
        if (this.#current === at) this.#current = (at + 1) % this.#all.length;
        if (isHopeless(error)) refusals.set(member, error);
        else refusals.delete(member);
        const [refusal = error] = [...refusals.values()].filter(({ kind }) => kind !== "stranger");
        // What may have been done is never told as refused.
        const told = error.kind === "unknown" && effect === "once" ? error : refusal;
        const isOver = this.#all.every((each) => refusals.has(each) || each.isAside);
        const mayAgain = !isOver && (error.kind !== "unknown" || effect === "any");
        const pauseMs = attempt % this.#all.length === 0 ? ROUND_PAUSE_MS * (1 + Math.random()) : 0;
        if (!mayAgain || performance.now() + pauseMs + leastMs >= deadlineMs) throw told;
        if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  /** Which member is asked: the present one, or the first after it that is not of another store. */
  #next(): number {
    const { length } = this.#all;
    for (let step = 0; step < length; step++) {
      const at = (this.#current + step) % length;
      if (this.#all[at]?.isAside !== false) continue;
      this.#current = at;
      return at;
    }
    const [member] = this.#all as readonly [Member];
    throw new CallFailure("stranger", member.at, member.trouble);
  }

  /** Asks all members at once. Answers by host:port what each said, or why it said nothing in time. */
  async askAll<T>(
    untilMs: number,
    work: (ask: Ask) => Promise<T>,
  ): Promise<ReadonlyMap<string, CallFailure | T>> {
    const answers = this.#all.map(async (member): Promise<readonly [string, CallFailure | T]> => {
      try {
        const ask: Ask = (name, request) => this.#ask(member, name, request, untilMs);
        return [member.at, await work(ask)];
      } catch (error) {
        if (error instanceof CallFailure) return [member.at, error];
        throw error;
      }
    });
    return new Map(await Promise.all(answers));
  }

  /** Watches keys at a member, each time at another one. */
  watch(keys: readonly Buffer[], { told, ended }: WatchListener): () => void {
    const usable = this.#all.filter(({ trouble }) => trouble === "");
    const all = usable.length > 0 ? usable : this.#all;
    const member = all[this.#watched++ % all.length] as Member;
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
    let loggingIn = this.#loggingIn.get(member);
    if (loggingIn === undefined) {
      const begin = async (): Promise<void> => {
        try {
          const user = this.#user ?? { name: "", password: "" };
          const { token } = await member.call("authenticate", user, undefined, untilMs);
          this.#token = token;
        } catch (error) {
          if (isHopeless(error)) member.trouble = error.message;
          throw error;
        } finally {
          this.#loggingIn.delete(member);
        }
      };
      loggingIn = begin();
      this.#loggingIn.set(member, loggingIn);
    }
    await loggingIn;
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
