// Draws inputs from a seed, hands them to a target, and judges.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { inspect } from "node:util";
import { Dice } from "../sim/world/random.ts";
import type { Heartbeat } from "./judge/watchdog.ts";
import type { Target } from "./target.ts";

export interface FuzzOptions {
  readonly seed: string;
  readonly corpus: readonly string[];
  /** Drawn besides the corpus; 0: none. */
  readonly inputs: number;
  /** Whichever comes first. */
  readonly seconds: number;
  readonly heartbeat?: Heartbeat;
  /** So many are enough. */
  readonly mostFindings?: number;
}

interface Finding {
  /** The number of the input in its run; -1: nobody knows which input it was. */
  readonly at: number;
  readonly input: string;
  readonly fault: string;
}

export interface FuzzResult {
  readonly inputs: number;
  readonly perSecond: number;
  readonly grownMb: number;
  readonly rssMb: number;
  readonly findings: readonly Finding[];
}

const MOST_FINDINGS = 10;
const GROW_MB = 32;
const QUARTER = 0.25;
/** Fewer inputs than these show nothing of memory: what is loaded once would be all of it. */
const SHOWS_MEMORY = 1_000;

/** Bytes that are in use when all garbage is gone. */
function inUse(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** What is the same of two findings: numbers and bytes in them differ. */
function kindOf(fault: string): string {
  return fault.replaceAll(/[0-9a-f]{8,}|\d+/gi, "#").slice(0, 120);
}

class Run {
  readonly #target: Target;
  readonly #options: FuzzOptions;
  readonly #findings = new Map<string, Finding>();
  readonly #endAt: number;
  #last: Finding = { at: -1, input: "", fault: "" };
  #started = 0;
  #quarter: { readonly bytes: number; readonly at: number } | undefined;

  constructor(target: Target, options: FuzzOptions) {
    this.#target = target;
    this.#options = options;
    this.#endAt = performance.now() + options.seconds * 1_000;
  }

  get findings(): readonly Finding[] {
    return [...this.#findings.values()];
  }

  /** What was thrown where nobody caught it is one, too. */
  readonly uncaught = (thrown: unknown): void => {
    this.#note({ ...this.#last, fault: `nobody caught: ${inspect(thrown)}` });
  };

  #note(finding: Finding): void {
    const kind = kindOf(finding.fault);
    if (!this.#findings.has(kind)) this.#findings.set(kind, finding);
  }

  get #isOver(): boolean {
    const { mostFindings = MOST_FINDINGS } = this.#options;
    return performance.now() >= this.#endAt || this.#findings.size >= mostFindings;
  }

  async all(): Promise<number> {
    const { corpus, inputs, seed } = this.#options;
    const beganAt = performance.now();
    for (const [at, input] of corpus.entries()) await this.#one(at - corpus.length, input);
    const worker = async (): Promise<void> => {
      while (this.#started < inputs && !this.#isOver) {
        const at = this.#started++;
        this.#lookAtMemory();
        await this.#one(at, this.#target.draw(new Dice(`${seed}/${at}`)));
      }
    };
    await Promise.all(Array.from({ length: this.#target.atOnce }, worker));
    return performance.now() - beganAt;
  }

  async #one(at: number, input: string): Promise<void> {
    const { withinMs, faults } = this.#target;
    this.#last = { at, input, fault: "" };
    this.#options.heartbeat?.begins(input, this.#target.atOnce);
    const beganAt = performance.now();
    const fault = await this.#faultOf(input);
    const ms = performance.now() - beganAt;
    if (fault !== undefined) this.#note({ at, input, fault });
    else if (ms > withinMs) this.#note({ at, input, fault: `took ${Math.round(ms)} ms` });
    for (const each of faults?.() ?? []) this.#note({ at, input, fault: each });
    // Timers and the watchdog have their turns between inputs of code that never waits.
    if (this.#target.atOnce === 1 && at % 64 === 0) await new Promise(setImmediate);
  }

  async #faultOf(input: string): Promise<string | undefined> {
    try {
      const running = this.#target.run(input);
      return running instanceof Promise ? await this.#within(running) : running;
    } catch (thrown) {
      return `threw ${inspect(thrown)}`;
    }
  }

  async #within(running: Promise<string | undefined>): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const { withinMs } = this.#target;
    const timer = setTimeout(() => resolve(`no end after ${withinMs} ms`), withinMs);
    try {
      return await Promise.race([running, promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #lookAtMemory(): void {
    const { inputs, seconds } = this.#options;
    const left = (this.#endAt - performance.now()) / (seconds * 1_000);
    const share = Math.max(this.#started / inputs, 1 - left);
    if (this.#quarter === undefined && share >= QUARTER)
      this.#quarter = { bytes: inUse(), at: this.#started };
  }

  grownMb(): number {
    const { bytes, at } = this.#quarter ?? { bytes: inUse(), at: this.#started };
    const grownMb = (inUse() - bytes) / 2 ** 20;
    const since = this.#started - at;
    const most = this.#target.growMb ?? GROW_MB;
    if (grownMb > most && since >= SHOWS_MEMORY) {
      const fault = `${grownMb.toFixed(0)} MB more after ${since} inputs`;
      this.#note({ at: -1, input: "", fault });
    }
    return grownMb;
  }

  get started(): number {
    return this.#started;
  }
}

/** Fuzzes until the inputs or the time are used up, or too much was found. */
export async function fuzz(target: Target, options: FuzzOptions): Promise<FuzzResult> {
  const run = new Run(target, options);
  process.on("uncaughtException", run.uncaught);
  process.on("unhandledRejection", run.uncaught);
  try {
    const ms = await run.all();
    const grownMb = run.grownMb();
    const { findings, started } = run;
    const inputs = started + options.corpus.length;
    const rssMb = process.memoryUsage.rss() / 2 ** 20;
    return { inputs, perSecond: (inputs / ms) * 1_000, grownMb, rssMb, findings };
  } finally {
    process.off("uncaughtException", run.uncaught);
    process.off("unhandledRejection", run.uncaught);
  }
}
