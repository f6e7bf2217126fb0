// Processes of a test: they die with it, and what they wrote is there when something fails.
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import type { Writable } from "node:stream";
import { afterFile } from "../after-file.ts";
import { doorEnv } from "../doors.ts";
import { CLI } from "../program.ts";
import { leakIn, secretsIn } from "./leaks.ts";
import { until } from "./until.ts";

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ChildOptions {
  /** What the process is called in messages. */
  readonly name: string;
  /** Its environment besides PATH and the door of gRPC: nothing else of the test's own reaches it. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Longest start of a process, on a machine that does much else. */
const START_TIMEOUT_MS = 60_000;
/** How much of a process's output is kept: the newest. */
const MAX_OUTPUT = 256 * 1_024;
const repository = path.resolve(import.meta.dirname, "../../../..");
/** Halves the start of a process, of which a test makes dozens. */
const COMPILE_CACHE = path.join(repository, "node_modules/.cache/idmint-compile");

const running = new Set<Child>();
let reaper: Writable | undefined;

/** A process: of Node.js, that runs TypeScript from source or JavaScript that was built, or of another program. */
export class Child {
  readonly name: string;
  /** Settles when the process has ended and its output is read. Never rejects. */
  readonly ended: Promise<Exit>;
  readonly #process: ChildProcess;
  readonly #startedAt: number = performance.now();
  #stdout = "";
  #stderr = "";
  #exit: Exit | undefined;

  /** `script` is one of Node.js', or the words that begin another program. */
  constructor(
    script: string | readonly string[],
    args: readonly string[],
    { name, env, cwd }: ChildOptions,
  ) {
    this.name = name;
    const PATH = process.env["PATH"] ?? "";
    const secrets = secretsIn(env ?? {});
    const [program = "", ...first] = typeof script === "string" ? wordsOf(script) : script;
    this.#process = spawn(program, [...first, ...args], {
      env: { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...doorEnv(), ...env },
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout = (this.#stdout + text).slice(-MAX_OUTPUT);
    });
    this.#process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-MAX_OUTPUT);
    });
    const { pid } = this.#process;
    if (pid !== undefined) tellReaper(`+${pid}\n`);
    running.add(this);
    // Whatever a test forgot dies with its file.
    afterFile(killChildren);
    this.ended = new Promise((resolve) => {
      const end = (exit: Exit): void => {
        if (pid !== undefined) tellReaper(`-${pid}\n`);
        running.delete(this);
        this.#exit = exit;
        resolve(exit);
        const leak = leakIn(this.#stderr, secrets);
        // Nobody catches it, so the whole run fails, whichever test began the process.
        if (leak !== undefined) throw new Error(`${name} said a secret: ${leak}`);
      };
      this.#process.once("error", () => end({ code: null, signal: null }));
      this.#process.once("close", (code, signal) => end({ code, signal }));
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** How long ago it was begun, in milliseconds. */
  get ageMs(): number {
    return performance.now() - this.#startedAt;
  }

  /** How it ended; undefined while it runs. */
  get exit(): Exit | undefined {
    return this.#exit;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Sends a signal; false when the process has ended. */
  signal(signal: NodeJS.Signals): boolean {
    return this.#process.kill(signal);
  }

  /** Ends it as a crash would, also when it is stopped; answers when it is gone. */
  async kill(): Promise<Exit> {
    this.signal("SIGKILL");
    return this.ended;
  }

  /** Waits for it to end by itself. */
  async waitForEnd(withinMs: number): Promise<Exit> {
    return until(`${this.name} ends`, () => this.#exit, { withinMs, everyMs: 5 });
  }

  /** Waits for a text on its standard output. Fails at once when the process ends before. */
  async waitForOutput(text: string, withinMs: number = START_TIMEOUT_MS): Promise<void> {
    await until(
      `${this.name} says ${text}`,
      () => this.#stdout.includes(text) || this.#exit !== undefined,
      { withinMs, everyMs: 5 },
    );
    if (!this.#stdout.includes(text)) throw new Error(this.describe());
  }

  /** What happened to it, for a failed test. */
  describe(): string {
    const exit = this.#exit === undefined ? "runs" : `ended: ${JSON.stringify(this.#exit)}`;
    return `${this.name} ${exit}\n--- stdout\n${tail(this.#stdout)}\n--- stderr\n${tail(this.#stderr)}`;
  }
}

/** How Node runs a file. */
function wordsOf(script: string): readonly string[] {
  const source = script.endsWith(".ts") ? ["-C", "idmint-source"] : [];
  return [process.execPath, ...source, script];
}

/** Runs one command of the CLI to its end. */
export async function runCli(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  build: string = CLI,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = new Child(build, args, { name: `idmint ${args.join(" ")}`, env });
  try {
    const { code } = await child.waitForEnd(START_TIMEOUT_MS);
    return { code, stdout: child.stdout, stderr: child.stderr };
  } finally {
    await child.kill();
  }
}

/** Ends every process that was begun here and still runs. For afterEach and afterAll. */
export async function killChildren(): Promise<void> {
  await Promise.all([...running].map((child) => child.kill()));
}

function tail(text: string): string {
  return text.slice(-6_000);
}

/** `+` and a process to end when this one is gone, however it ends; `-` and one that has ended. */
export function tellReaper(line: string): void {
  reaper ??= startReaper();
  reaper.write(line);
}

function startReaper(): Writable {
  const script = path.join(import.meta.dirname, "reaper.ts");
  const child = spawn(process.execPath, [script], {
    // In a group of its own: it must outlive whatever ends the test.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.stdin.on("error", () => undefined);
  // The test may end without it; its input ends then.
  child.unref();
  (child.stdin as Writable & { unref?: () => void }).unref?.();
  return child.stdin;
}
