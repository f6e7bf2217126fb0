// What was done to whom, and when: the judges need it, and people who read a finding.
import { writeFileSync } from "node:fs";

/**
 * `fault`: something was done; `server`: a server could not be reached or did not run; `store`: the store did not answer; `back`: it
 * had gone back and was not accepted yet; `caller`: a process of callers could not run; `operator`: an operator kept a tag from issuing.
 */
type WindowOf = "back" | "caller" | "fault" | "operator" | "server" | "store";

/** In microseconds of the monotonic clock. */
export interface Window {
  readonly site: string;
  readonly of: WindowOf;
  /** The kind of a fault. */
  readonly kind: string;
  /** A server, a process of callers, a tag, or what the fault was done to. */
  readonly target: string;
  readonly from: number;
  readonly to: number;
}

export class Journal {
  readonly #windows: Window[] = [];
  readonly #open = new Set<Omit<Window, "to">>();

  /** Begins a window; the answer ends it. */
  begin(site: string, of: WindowOf, kind: string, target = ""): () => void {
    const window = { site, of, kind, target, from: nowUs() };
    this.#open.add(window);
    return () => {
      if (!this.#open.delete(window)) return;
      this.#windows.push({ ...window, to: nowUs() });
    };
  }

  /** All windows so far; those that are open end never. */
  get windows(): readonly Window[] {
    const open = [...this.#open].map((window) => ({ ...window, to: Number.MAX_SAFE_INTEGER }));
    return [...this.#windows, ...open].toSorted((a, b) => a.from - b.from);
  }

  writeTo(file: string): void {
    writeFileSync(file, this.windows.map((window) => `${JSON.stringify(window)}\n`).join(""));
  }
}

/** The monotonic clock in microseconds, as histories have it. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}
