import { checkName } from "../checks.ts";
import { CoordinationError } from "../errors.ts";
import { RedisNode } from "../redis/node.ts";
import { scriptOnce } from "../redis/outcome.ts";
import { defineScript } from "../redis/script.ts";
import type {
  Listener,
  Signal,
  Signals,
  SignalsOptions,
  WaitOptions,
  Wakeup,
  Wanted,
} from "./api.ts";
import { broadcastKeys, Broadcasts, type Limiter } from "./broadcasts.ts";
import { envelopeOf } from "./envelope.ts";
import { checkWanted, resolveSettings, type SignalSettings, waitTimeoutMs } from "./options.ts";
import { BROADCAST } from "./scripts.ts";
import { SingleCast } from "./single-cast.ts";
import { Subscriber, type SubscriberHandlers } from "./subscriber.ts";

const PUBLISH = defineScript(`return tostring(redis.call('PUBLISH', ARGV[1], ARGV[2]))`);

/**
 * Makes signals. Connections are made at once, and broken ones again and again; nothing is sent or listened to before the
 * first use. Throws INVALID_ARGUMENT that names a bad option.
 */
export function createSignals(options: SignalsOptions): Signals {
  return new RedisSignals(options);
}

class RedisSignals implements Signals {
  readonly #settings: SignalSettings;
  readonly #nodes: readonly RedisNode[];
  readonly #primary: RedisNode;
  readonly #subscribers: readonly Subscriber[];
  readonly #broadcasts: Broadcasts;
  readonly #single: SingleCast;
  #entered = 0;
  #closed: CoordinationError | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: SignalsOptions) {
    this.#settings = resolveSettings(options);
    const { redis, replica } = options;
    this.#primary = new RedisNode(redis);
    this.#nodes = [this.#primary, ...(replica === undefined ? [] : [new RedisNode(replica)])];
    const { commandTimeoutMs } = this.#settings;
    this.#subscribers = this.#nodes.map(
      (node, source) => new Subscriber(node, commandTimeoutMs, this.#handlersOf(source)),
    );
    const limiter: Limiter = { enter: () => this.#enter(), leave: () => this.#entered-- };
    this.#broadcasts = new Broadcasts(this.#settings, limiter, this.#subscribers);
    const [subscriber] = this.#subscribers as readonly [Subscriber];
    this.#single = new SingleCast(this.#settings, limiter, this.#primary, subscriber);
  }

  async broadcast(name: string, data = ""): Promise<number> {
    this.#assertOpen();
    const { prefix, isCounted, maxBytes, commandTimeoutMs } = this.#settings;
    const keys = broadcastKeys(prefix);
    const channel = keys.channel + checkName("name", name);
    const receivers = await scriptOnce(
      this.#primary,
      `broadcasting ${name}`,
      isCounted ? BROADCAST : PUBLISH,
      {
        keys: isCounted ? [keys.count + name] : [],
        args: [channel, envelopeOf(data, maxBytes)],
      },
      commandTimeoutMs,
    );
    return Number(receivers);
  }

  async listen(wanted: Wanted, options: WaitOptions = {}): Promise<Listener> {
    this.#assertOpen();
    return this.#broadcasts.listen(checkWanted(wanted, this.#settings.isCounted), options);
  }

  async wait(wanted: Wanted, options: WaitOptions = {}): Promise<Wakeup> {
    const endMs = performance.now() + waitTimeoutMs(options);
    await using listener = await this.listen(wanted, options);
    const timeoutMs = Math.max(1, Math.ceil(endMs - performance.now()));
    return await listener.wait({ ...options, timeoutMs });
  }

  async tryWait(wanted: Wanted, options: WaitOptions = {}): Promise<Wakeup | undefined> {
    try {
      return await this.wait(wanted, options);
    } catch (error) {
      const isLate = error instanceof CoordinationError && error.reason === "DEADLINE_EXCEEDED";
      if (isLate) return undefined;
      throw error;
    }
  }

  async signalOne(name: string, data = ""): Promise<"given" | "kept"> {
    this.#assertOpen();
    return this.#single.signal(checkName("name", name), data);
  }

  async waitOne(name: string, options: WaitOptions = {}): Promise<Signal> {
    const signal = await this.tryWaitOne(name, options);
    if (signal !== undefined) return signal;
    const text = `no signal for one of ${name} came in time`;
    throw new CoordinationError("DEADLINE_EXCEEDED", text, { metadata: { signal: name } });
  }

  async tryWaitOne(name: string, options: WaitOptions = {}): Promise<Signal | undefined> {
    this.#assertOpen();
    return this.#single.wait(checkName("name", name), options);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#closed = new CoordinationError("CLOSED", "these signals were closed");
    this.#broadcasts.close(this.#closed);
    await this.#single.close(this.#closed);
    await Promise.all([...this.#subscribers, ...this.#nodes].map((each) => each.close()));
  }

  #handlersOf(source: number): SubscriberHandlers {
    const isWake = (channel: string): boolean =>
      source === 0 && channel === this.#single.target.channel;
    return {
      onUp: (target, count) => {
        if (isWake(target.channel)) this.#single.onUp();
        else this.#broadcasts.onUp(source, target, count);
      },
      onDown: () => {
        this.#broadcasts.onDown(source);
        if (source === 0) this.#single.onDown();
      },
      onMessage: (kind, target, channel, text) => {
        if (isWake(channel)) this.#single.onWake(text);
        else this.#broadcasts.onMessage(source, { kind, target, channel }, text);
      },
      emit: this.#settings.onEvent,
    };
  }

  #enter(): void {
    this.#assertOpen();
    const { maxWaiters } = this.#settings;
    if (this.#entered >= maxWaiters) {
      const text = `${maxWaiters} calls and listeners wait already; wait for less at once, or raise maxWaiters`;
      throw new CoordinationError("OVERLOADED", text);
    }
    this.#entered++;
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw this.#closed;
  }
}
