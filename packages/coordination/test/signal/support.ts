import { randomBytes } from "node:crypto";
import { sharedRedisUrl } from "@idmint/testkit/redis";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import type { SignalEvent, Signals, SignalsOptions, Wakeup } from "../../src/signal/api.ts";
import { createSignals } from "../../src/signal/signals.ts";

/** Signals of a test's own, which several instances may share. */
export class TestSignals {
  readonly prefix: string = `s${randomBytes(6).toString("hex")}`;
  readonly events: SignalEvent[] = [];
  readonly url: string;
  /** What the test itself looks and meddles with. */
  readonly redis: Redis;

  constructor(url: string) {
    this.url = url;
    this.redis = new Redis(url);
    this.redis.on("error", () => undefined);
    onTestFinished(() => this.redis.disconnect());
  }

  static async shared(): Promise<TestSignals> {
    return new TestSignals(await sharedRedisUrl());
  }

  open(options: Partial<SignalsOptions> = {}): Signals {
    const onEvent = (event: SignalEvent): void => {
      this.events.push(event);
    };
    const signals = createSignals({ redis: this.url, prefix: this.prefix, onEvent, ...options });
    onTestFinished(() => signals.close());
    return signals;
  }

  /** How often something happened. */
  count(type: SignalEvent["type"]): number {
    return this.events.filter((event) => event.type === type).length;
  }

  /** Waits until so many wait for one of a name. */
  async waiters(name: string): Promise<number> {
    return this.redis.zcard(`${this.prefix}:signal:one:{${name}}:waiters`);
  }
}

/** What came, as `name=data`. */
export function heard(wakeup: Wakeup | undefined): readonly string[] {
  return (wakeup?.signals ?? []).map(({ name, data }) => `${name}=${data}`);
}
