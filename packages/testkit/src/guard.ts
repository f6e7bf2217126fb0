// Servers that end with the test that started them, whatever ends it.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";

/**
 * A shell script: runs a server as its child, tells its process id, and ends it when the test is gone: then the standard
 * input ends. The word "keep" says that the end is meant, and that the folder stays. Only the server holds the standard
 * output then, so that its end is seen.
 */
const GUARD = `
"$@" 3>&1 >>"$IDMINT_FOLDER.log" 2>&1 </dev/null & server=$!
echo $server
exec >&-
read -r word
if [ "$word" != keep ]; then
  kill -KILL $server 2>/dev/null; wait $server; rm -rf "$IDMINT_FOLDER" "$IDMINT_FOLDER"[.-]*; exit
fi
wait $server`;

/** A server in a folder of its own, one process after another. Its log lies beside the folder. */
export class GuardedServer {
  readonly folder: string;
  #guard: ChildProcess | undefined;
  #pid = 0;
  #hasEnded = false;

  constructor(folder: string) {
    this.folder = folder;
  }

  get runs(): boolean {
    return this.#guard !== undefined;
  }

  /** Of its last process. */
  get pid(): number {
    return this.#pid;
  }

  /** Whether its process has ended by itself. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** What the server wrote so far. */
  get log(): string {
    return readFileSync(`${this.folder}.log`, "utf8");
  }

  /** Starts a process, and does not wait until it answers. */
  async start(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<void> {
    if (this.#guard !== undefined) throw new Error("the server runs already");
    const guard = spawn("/bin/sh", ["-c", GUARD, "sh", ...words], {
      env: { PATH: process.env["PATH"], LC_ALL: "C", ...env, IDMINT_FOLDER: this.folder },
      stdio: ["pipe", "pipe", "ignore"],
      // An interrupt of the terminal must not end the guard before it has cleaned up.
      detached: true,
    });
    guard.stdin.on("error", () => undefined);
    this.#guard = guard;
    this.#hasEnded = false;
    guard.stdout.once("end", () => {
      this.#hasEnded = true;
    });
    const [first] = (await once(guard.stdout, "data")) as [Buffer];
    this.#pid = Number(first.toString());
    guard.stdout.resume();
  }

  /** Ends its process with a signal, also when it is stopped, and keeps its files. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const guard = this.#guard;
    if (guard === undefined) throw new Error("the server does not run");
    this.#guard = undefined;
    const ended = new Promise((resolve) => guard.once("exit", resolve));
    if (guard.exitCode !== null) return;
    guard.stdin?.end("keep\n");
    try {
      process.kill(this.#pid, signal);
      if (signal === "SIGTERM") process.kill(this.#pid, "SIGCONT");
    } catch {
      // It has ended by itself.
    }
    await ended;
  }

  /** Stops its process where it is; connections stay, and nothing answers. */
  pause(): void {
    process.kill(this.#pid, "SIGSTOP");
  }

  resume(): void {
    process.kill(this.#pid, "SIGCONT");
  }
}
