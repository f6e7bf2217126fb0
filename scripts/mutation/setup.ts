// Runs in front of each test file: switches one fault on, or notes which of them the file reaches.
import fc from "fast-check";
import { afterAll, inject, vi } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** The fault that is on; 0: what is reached is noted. */
    readonly fault: number;
    /** How long a test may take. */
    readonly timeoutMs: number;
  }
  interface TaskMeta {
    reached?: readonly number[];
  }
}

/** A loop that looks at one fault as often has no end. */
const MOST_LOOKS = 20_000_000;

const fault = inject("fault");
const reached = new Set<number>();
let looks = 0;

function isOn(asked: number): boolean {
  if (asked !== fault) return false;
  if (++looks > MOST_LOOKS) throw new Error("timed out in a loop");
  return true;
}

function note(asked: number): boolean {
  reached.add(asked);
  return false;
}

(globalThis as { $idmintFault?: (asked: number) => boolean }).$idmintFault =
  fault === 0 ? note : isOn;
// The same cases each time, and no search for the smallest one.
fc.configureGlobal({ seed: 1, endOnFailure: true });
vi.setConfig({ testTimeout: inject("timeoutMs"), hookTimeout: inject("timeoutMs") });
if (fault === 0) {
  // oxlint-disable-next-line no-empty-pattern -- Vitest wants a pattern there.
  afterAll(({}, suite) => {
    suite.file.meta.reached = [...reached];
  });
}
