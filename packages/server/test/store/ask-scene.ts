// A store that is put back while an accept asks servers, to a state in which the same ask stands, and what its servers are granted.
import { acceptAsking, type AcceptReport, type Store } from "@idmint/core/server";
import { granted, settingsOf } from "@idmint/testkit/store-suite";
import { expect } from "vitest";
import type { Poller } from "./poller.ts";

/** Where the copy is made that is put back. */
export const MOMENTS = [
  "before claims",
  "after claims",
  "after the last look",
  "accepted",
] as const;

export interface AskScene {
  /** A server that is granted ids, one that is not, and who accepts. */
  readonly busy: Poller;
  readonly other: Poller;
  readonly operator: Store;
  /** Copies the store, and answers how to put the copy in its place. */
  readonly keep: () => Promise<() => Promise<void>>;
}

const LOOK_MS = 250;

/** An accept whose time goes on as the test says. */
class Accepting {
  readonly #report: Promise<AcceptReport>;
  #now = 0;
  #waiting: (() => void) | undefined;
  #isOver = false;

  constructor(store: Store, nonce: string) {
    const after = (_ms: number, run: () => void): (() => void) => {
      this.#waiting = run;
      return () => (this.#waiting = undefined);
    };
    const asking = { store, clock: { now: () => this.#now }, timers: { after }, nonce };
    this.#report = acceptAsking(asking, { gap: 0n });
    const end = (): void => void (this.#isOver = true);
    this.#report.then(end, end);
  }

  async expectAccepted(): Promise<void> {
    const { claims } = await this.#report;
    expect(claims.servers.map(({ told }) => told)).toContain("all");
  }

  async expectRefused(reason: RegExp): Promise<void> {
    await expect(this.#report).rejects.toThrow(reason);
  }

  /** Until it waits for its next look, or is over. */
  async rested(): Promise<void> {
    await expect
      .poll(() => this.#isOver || this.#waiting !== undefined, { timeout: 20_000 })
      .toBe(true);
  }

  /** Looks for so long, and lets servers do something after each look. */
  async looks(ms: number, between: () => Promise<unknown> = async () => undefined): Promise<void> {
    for (const endMs = this.#now + ms; this.#now < endMs && !this.#isOver;) {
      await this.rested();
      const run = this.#waiting;
      this.#waiting = undefined;
      this.#now += LOOK_MS;
      run?.();
      await this.rested();
      if (!this.#isOver) await between();
    }
  }
}

/** Polls, and says what it was granted when another ask stands than the one that it answered last. */
class Voice {
  readonly #poller: Poller;
  #answered: string | undefined;

  constructor(poller: Poller) {
    this.#poller = poller;
  }

  async poll(): Promise<void> {
    // A server whose store was started again finds that out first.
    const { parts } = await this.#poller.poll().catch(() => this.#poller.poll());
    const nonce = parts[0]?.ask;
    if (nonce === undefined || nonce === this.#answered) return;
    expect(await this.#poller.speak(nonce)).toBe("heard");
    this.#answered = nonce;
  }
}

/** What the busy server is granted after it has spoken, and the store loses, is granted to nobody after the accept. */
export async function expectNoneAgain(
  { busy, other, operator, keep }: AskScene,
  moment: (typeof MOMENTS)[number],
): Promise<void> {
  await operator.createTag(settingsOf("t"));
  await busy.grant("t");
  const voices = [new Voice(busy), new Voice(other)];
  const pollAll = async (): Promise<void> => {
    for (const voice of voices) await voice.poll();
  };
  await pollAll();
  let accepting = new Accepting(operator, "first");
  await accepting.rested();
  let putBack = await keep();
  await accepting.looks(500, pollAll);
  if (moment !== "before claims") putBack = await keep();
  if (moment !== "after the last look") {
    await accepting.looks(moment === "accepted" ? 20_000 : 500, pollAll);
  }
  if (moment === "accepted") await accepting.expectAccepted();
  await pollAll();
  let last = 0n;
  for (let grants = 0; grants < 5; grants++) last = (await busy.grant("t")) + 9n;
  await putBack();
  if (moment === "accepted") {
    // Its ask stands there still, for a minute, but nobody accepts with what was said for it.
    await pollAll();
    await new Accepting(operator, "second").expectRefused(/another accept of this store/);
    await operator.withdrawAsk("first");
    accepting = new Accepting(operator, "third");
  }
  // Whoever lost something finds it, and marks the store, before the accept looks again.
  if (moment === "after the last look") await pollAll();
  await accepting.looks(60_000, pollAll);
  await accepting.expectAccepted();
  expect((await granted(other.store, "t")).base).toBe(last + 1n);
}
