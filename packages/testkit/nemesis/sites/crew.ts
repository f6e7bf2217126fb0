// The processes of callers of a site.
import path from "node:path";
import { Child } from "../../src/fleet/child.ts";
import { builtOf } from "../../src/program.ts";
import type { CallerConfig, CallerLoad } from "../callers/config.ts";

/** A deadline of a call, and of a request of the SDK. */
const DEADLINE_MS = 5_000;
export const RPC_DEADLINE_MS = 1_000;
const STOP_MS = 60_000;

export type CallerKind = "http" | "python" | "raw" | "sdk";

export interface CallerPlace {
  readonly kind: CallerKind;
  readonly addresses: readonly string[];
  readonly loads: readonly CallerLoad[];
}

/** A program that is started again when it was killed: its next process writes another history. */
export class Caller {
  readonly name: string;
  readonly kind: CallerKind;
  readonly #place: CallerPlace;
  readonly #folder: string;
  /** Words that begin it, of programs that are not of Node.js. */
  readonly #words: readonly string[] | undefined;
  #generation = 0;
  #process: Child | undefined;

  constructor(name: string, folder: string, place: CallerPlace, words?: readonly string[]) {
    this.name = name;
    this.kind = place.kind;
    this.#place = place;
    this.#folder = folder;
    this.#words = words;
  }

  get process(): Child {
    if (this.#process === undefined) throw new Error(`${this.name} does not run`);
    return this.#process;
  }

  /** Of its histories so far, without what they end with. */
  get histories(): readonly string[] {
    const all = Array.from({ length: this.#generation }, (_, at) => `${this.name}.${at + 1}`);
    return all.map((name) => path.join(this.#folder, name));
  }

  async start(): Promise<void> {
    const { kind, addresses, loads } = this.#place;
    const config: CallerConfig = {
      name: `${this.name}.${++this.#generation}`,
      folder: this.#folder,
      addresses,
      instance: `${path.basename(this.#folder)}-${this.name}`,
      deadlineMs: DEADLINE_MS,
      rpcDeadlineMs: RPC_DEADLINE_MS,
      loads,
    };
    const script = builtOf(`packages/testkit/nemesis/callers/${kind}-caller.ts`);
    const child = new Child(this.#words ?? script, [JSON.stringify(config)], { name: config.name });
    this.#process = child;
    await child.waitForOutput("started");
  }

  /** Tells it to end, and fails when it ended otherwise. */
  async stop(): Promise<void> {
    const child = this.process;
    child.signal("SIGTERM");
    const { code } = await child.waitForEnd(STOP_MS);
    if (code !== 0) throw new Error(child.describe());
  }
}
