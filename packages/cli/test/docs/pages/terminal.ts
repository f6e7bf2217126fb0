// A reader's shell: bash, which keeps what a block exports for the next one.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const LIMIT_MS = 60_000;
const SERVES = /^(?:\w+=\S+ )*(?:\.\/|npx --yes )?(?:idmint (?:serve|start-dev)|pnpm@10 start)\b/;

/** Whether a last line starts a server, which stays: its reader opens another terminal. */
export function serves(code: string): boolean {
  return SERVES.test(code.trimEnd().split("\n").at(-1) ?? "");
}

export class Terminal implements AsyncDisposable {
  /** For what the test types and what is printed, apart from the reader's folder. */
  readonly #folder: string;
  readonly #bash: ChildProcess;
  readonly #ended: Promise<void>;
  /** Groups of processes by the addresses on which they serve. */
  readonly #servers = new Map<string, number>();
  #typed = 0;
  #hasEnded = false;

  constructor(place: { cwd: string; env: Readonly<Record<string, string>>; folder: string }) {
    this.#folder = place.folder;
    this.#bash = spawn("bash", ["--noprofile", "--norc"], {
      cwd: place.cwd,
      env: place.env,
      stdio: ["pipe", "ignore", "ignore"],
    });
    this.#bash.stdin?.on("error", () => undefined);
    // Job control gives each server a group of its own, which ends with the shell, as Ctrl-C ends it.
    const end = `trap 'for job in $(jobs -p); do kill -INT -- "-$job" || :; done; wait' EXIT`;
    this.#bash.stdin?.write(`set -em -o pipefail\n${end}\n`);
    this.#ended = new Promise((resolve) => {
      this.#bash.once("close", () => {
        this.#hasEnded = true;
        resolve();
      });
    });
  }

  /** Types lines, and answers what they print on standard output. Each of them must succeed; a last one that serves stays. */
  async type(code: string): Promise<string> {
    const lines = code.trimEnd().split("\n");
    const last = serves(code) ? lines.pop() : undefined;
    const printed = await this.#run(lines.join("\n"));
    if (last !== undefined) await this.#serve(last);
    return printed;
  }

  async #run(code: string): Promise<string> {
    const name = this.#write(code);
    this.#bash.stdin?.write(
      `. ${name}.sh < /dev/null > ${name}.out 2> ${name}.err\n: > ${name}.done\n`,
    );
    await this.#until(name, code, () => isThere(`${name}.done`));
    return readFileSync(`${name}.out`, "utf8");
  }

  /** Starts a server in place of the one that was there, and waits until it takes calls. */
  async #serve(code: string): Promise<void> {
    const address = /--http-address (\S+)/.exec(code)?.[1] ?? "127.0.0.1:7601";
    const before = this.#servers.get(address);
    const name = this.#write(code);
    if (before !== undefined) {
      process.kill(-before, "SIGINT");
      await this.#until(name, code, () => !isAlive(before));
    }
    const place = `< /dev/null > ${name}.out 2> ${name}.err`;
    this.#bash.stdin?.write(`. ${name}.sh ${place} &\necho $! > ${name}.pid\n`);
    await this.#until(name, code, () => isThere(`${name}.pid`));
    const group = Number(readFileSync(`${name}.pid`, "utf8"));
    this.#servers.set(address, group);
    await this.#until(name, code, async () => {
      if (!isAlive(group)) throw new Error(told(name, code));
      return isReady(address);
    });
  }

  /** Waits for what comes of something that was typed. The shell ends when a command fails. */
  async #until(name: string, code: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const end = performance.now() + LIMIT_MS;
    while (!(await isSo())) {
      if (this.#hasEnded || performance.now() > end) throw new Error(told(name, code));
      await pause(5);
    }
  }

  #write(code: string): string {
    const name = path.join(this.#folder, String(++this.#typed));
    writeFileSync(`${name}.sh`, `${code}\n`);
    return name;
  }

  /** Ends the shell, and its servers first. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#bash.stdin?.end();
    await this.#ended;
  }
}

function isAlive(group: number): boolean {
  try {
    return process.kill(-group, 0);
  } catch {
    return false;
  }
}

function isThere(file: string): boolean {
  try {
    readFileSync(file);
    return true;
  } catch {
    return false;
  }
}

function told(name: string, code: string): string {
  const said = [".out", ".err"].map((end) =>
    isThere(name + end) ? readFileSync(name + end, "utf8") : "",
  );
  return `${code}\n${said.join("")}`;
}

async function isReady(address: string): Promise<boolean> {
  try {
    return (await fetch(`http://${address}/readyz`)).ok;
  } catch {
    return false;
  }
}
