import { cancelled, CoordinationError } from "../errors.ts";
import type { Listener, Wakeup, WaitOptions } from "./api.ts";
import { SeenCount } from "./count-state.ts";
import { SeenIds } from "./dedupe-state.ts";
import { envelopeIn } from "./envelope.ts";
import { Inbox } from "./inbox-state.ts";
import { type CheckedWanted, type SignalSettings, waitTimeoutMs } from "./options.ts";
import type { Subscriber, Target } from "./subscriber.ts";
import { Waiting } from "./waiting.ts";

/** A channel or pattern somebody listens to. */
interface Topic {
  readonly target: Target;
  /** The name of a channel; undefined for a pattern. */
  readonly name: string | undefined;
  readonly seen: SeenCount;
  readonly listeners: Set<BroadcastListener>;
  /** Sources through which it is heard now. */
  readonly up: Set<number>;
}

/** Channels of broadcasts, and keys of their counts. */
export function broadcastKeys(prefix: string): {
  readonly channel: string;
  readonly count: string;
} {
  return { channel: `${prefix}:signal:all:`, count: `${prefix}:signal:count:` };
}

/** Where a message came: the channel, and the channel or pattern that was listened to. */
interface Heard {
  readonly kind: Target["kind"];
  readonly target: string;
  readonly channel: string;
}

/** Counts the calls and listeners there are. */
export interface Limiter {
  /** Throws OVERLOADED, or CLOSED. */
  readonly enter: () => void;
  readonly leave: () => void;
}

/** Hands what the sources hear to the listeners, each signal once. */
export class Broadcasts {
  readonly #settings: SignalSettings;
  readonly #limiter: Limiter;
  readonly #sources: readonly Subscriber[];
  readonly #topics = new Map<string, Topic>();
  readonly #ids: SeenIds;

  /** `sources`: the primary first. */
  constructor(settings: SignalSettings, limiter: Limiter, sources: readonly Subscriber[]) {
    this.#settings = settings;
    this.#limiter = limiter;
    this.#sources = sources;
    this.#ids = new SeenIds(settings.maxRemembered);
  }

  /** Answers as soon as one source hears every topic; NODE_UNAVAILABLE when none does in time. */
  async listen(wanted: CheckedWanted, options: WaitOptions): Promise<Listener> {
    const timeoutMs = waitTimeoutMs(options);
    const { signal } = options;
    if (signal?.aborted === true) throw cancelled("listening", signal);
    this.#limiter.enter();
    const { names, pattern, isAll } = wanted;
    const inbox = new Inbox(this.#settings.maxBuffered, isAll ? names : undefined);
    const listener: BroadcastListener = new BroadcastListener(inbox, this.#limiter, (over) =>
      this.#leave(over),
    );
    if (pattern !== undefined) this.#join("pattern", pattern, listener);
    for (const name of names) this.#join("channel", name, listener);
    const waiting = new Waiting<Listener>(
      "listening",
      { timeoutMs, signal },
      {
        onTimeout: () => waiting.refuse(notListening()),
        onEnd: () => undefined,
      },
    );
    listener.onceUp((error) => {
      if (error === undefined) waiting.answer(listener);
      else waiting.refuse(error);
    });
    try {
      return await waiting.promise;
    } catch (error) {
      listener.close();
      throw error;
    }
  }

  /** A source hears a topic, from the first time on or again. */
  onUp(source: number, { kind, channel }: Target, count: number): void {
    const topic = this.#topics.get(keyOf(kind, channel));
    if (topic === undefined) return;
    topic.up.add(source);
    if (topic.target.countKey !== undefined && topic.seen.began(source, count)) this.#miss(topic);
    for (const listener of topic.listeners) listener.look();
  }

  onDown(source: number): void {
    for (const { up, seen } of this.#topics.values()) {
      up.delete(source);
      seen.ended(source);
    }
  }

  onMessage(source: number, { kind, target, channel }: Heard, text: string): void {
    const key = keyOf(kind, target);
    const topic = this.#topics.get(key);
    if (topic === undefined) return;
    const envelope = envelopeIn(channel.slice(this.#channel.length), text);
    if (envelope === undefined) {
      this.#settings.onEvent({ type: "foreign-ignored", channel });
      return;
    }
    const { signal, place } = envelope;
    // A name and a pattern that matches it each hear it once.
    if (this.#sources.length > 1 && !this.#ids.isNew(`${key} ${signal.id}`)) return;
    if (place !== undefined && topic.seen.heard(source, place)) this.#miss(topic);
    for (const listener of topic.listeners) {
      listener.inbox.add(signal);
      listener.look();
    }
  }

  close(error: CoordinationError): void {
    for (const { listeners } of this.#topics.values()) {
      for (const listener of listeners) listener.end(error);
    }
  }

  get #channel(): string {
    return broadcastKeys(this.#settings.prefix).channel;
  }

  #join(kind: Target["kind"], name: string, listener: BroadcastListener): void {
    const channel = this.#channel + name;
    const key = keyOf(kind, channel);
    const { prefix, isCounted } = this.#settings;
    let topic = this.#topics.get(key);
    if (topic === undefined) {
      const countKey = isCounted ? broadcastKeys(prefix).count + name : undefined;
      topic = {
        target: { kind, channel, countKey },
        name: kind === "channel" ? name : undefined,
        seen: new SeenCount(),
        listeners: new Set(),
        up: new Set(),
      };
      this.#topics.set(key, topic);
      for (const source of this.#sources) source.add(topic.target);
    }
    topic.listeners.add(listener);
    listener.topics.add(topic);
  }

  #leave(listener: BroadcastListener): void {
    for (const topic of listener.topics) {
      topic.listeners.delete(listener);
      if (topic.listeners.size > 0) continue;
      const { target } = topic;
      this.#topics.delete(keyOf(target.kind, target.channel));
      for (const source of this.#sources) source.remove(target);
    }
  }

  #miss({ name, listeners }: Topic): void {
    if (name === undefined) return;
    this.#settings.onEvent({ type: "signals-missed", name });
    for (const listener of listeners) {
      listener.inbox.miss(name);
      listener.look();
    }
  }
}

class BroadcastListener implements Listener {
  readonly inbox: Inbox;
  readonly topics = new Set<Topic>();
  readonly #limiter: Limiter;
  readonly #onOver: (listener: BroadcastListener) => void;
  readonly #waiting = new Set<Waiting<Wakeup>>();
  #whenUp: ((error?: CoordinationError) => void) | undefined;
  #over: CoordinationError | undefined;

  constructor(inbox: Inbox, limiter: Limiter, onOver: (listener: BroadcastListener) => void) {
    this.inbox = inbox;
    this.#limiter = limiter;
    this.#onOver = onOver;
  }

  async wait(options: WaitOptions = {}): Promise<Wakeup> {
    const timeoutMs = waitTimeoutMs(options);
    const { signal } = options;
    if (signal?.aborted === true) throw cancelled("waiting for a signal", signal);
    if (this.#over !== undefined) throw this.#over;
    this.#limiter.enter();
    const waiting = new Waiting<Wakeup>(
      "waiting for a signal",
      { timeoutMs, signal },
      {
        onTimeout: () => {
          const text = `no signal came within ${timeoutMs} ms`;
          const late = new CoordinationError("DEADLINE_EXCEEDED", text);
          waiting.refuse(this.isUp ? late : notListening());
        },
        onEnd: () => {
          this.#waiting.delete(waiting);
          this.#limiter.leave();
        },
      },
    );
    this.#waiting.add(waiting);
    this.look();
    return waiting.promise;
  }

  tryWait(): Wakeup | undefined {
    if (this.#over !== undefined) throw this.#over;
    return this.inbox.take();
  }

  close(): void {
    this.end(new CoordinationError("CLOSED", "the listener was closed"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /** Whether each topic is heard through some source. */
  get isUp(): boolean {
    return [...this.topics].every(({ up }) => up.size > 0);
  }

  /** Calls `run` once everything is heard, maybe at once, or with an error when it is over before. */
  onceUp(run: (error?: CoordinationError) => void): void {
    this.#whenUp = run;
    this.look();
  }

  /** Something may have changed: serves who waits, in the order of their coming. */
  look(): void {
    if (this.#whenUp !== undefined && this.isUp) {
      this.#whenUp();
      this.#whenUp = undefined;
    }
    for (const waiting of this.#waiting) {
      const wakeup = this.inbox.take();
      if (wakeup === undefined) return;
      waiting.answer(wakeup);
    }
  }

  end(error: CoordinationError): void {
    if (this.#over !== undefined) return;
    this.#over = error;
    this.#whenUp?.(error);
    for (const waiting of this.#waiting) waiting.refuse(error);
    this.#onOver(this);
    this.#limiter.leave();
  }
}

function notListening(): CoordinationError {
  const text =
    "nothing was listening to Redis at the end of the wait; signals may have been missed";
  return new CoordinationError("NODE_UNAVAILABLE", text);
}

function keyOf(kind: Target["kind"], channel: string): string {
  return `${kind} ${channel}`;
}
