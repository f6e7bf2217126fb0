import { FakeTime } from "@idmint/testkit";
import type { Runtime } from "../src/time.ts";

/** Time that moves when told to; its wall clock can be set. */
export class FakeRuntime implements Runtime {
  readonly time = new FakeTime();
  /** How far the wall clock is off. */
  wallOffsetMs = 0;
  readonly random = (): number => 0.5;

  readonly now = (): { monotonicMs: number; wallMs: number } => ({
    monotonicMs: this.time.now(),
    wallMs: this.time.now() + this.wallOffsetMs,
  });

  readonly after = (delayMs: number, run: () => void): (() => void) =>
    this.time.after(delayMs, run);

  /** Moves time on in small steps, and lets promises go on between them. */
  async pass(byMs: number, stepMs = 5): Promise<void> {
    for (let left = byMs; left > 0; left -= stepMs) {
      this.time.advance(Math.min(stepMs, left));
      await settle();
    }
  }
}

/** Lets everything run that waits for nothing but promises. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}
