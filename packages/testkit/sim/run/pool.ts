import { Worker } from "node:worker_threads";
import type { Done, Part } from "./worker.ts";

/** Seeds that a thread runs before it tells what became of them. */
const PART = 20;
/** A history leaves much behind at once: with room for it, little is moved. */
const YOUNG_MB = 96;

export interface Run {
  readonly from: number;
  readonly histories: number;
  readonly jobs: number;
  readonly shrinks: boolean;
}

/**
 * Runs histories in threads. Which of them runs which seed is left to chance, and changes nothing: a history follows from its seed
 * alone. `heard` is told of each part; answers it false, no further one begins.
 */
export async function runAll(
  { from, histories, jobs, shrinks }: Run,
  heard: (done: Done) => boolean,
): Promise<void> {
  const size = Math.max(1, Math.min(PART, Math.ceil(histories / jobs / 4)));
  let next = 0;
  const nextPart = (): Part | undefined => {
    const count = Math.min(size, histories - next);
    if (count <= 0) return undefined;
    const part = { from: from + next, count, shrinks };
    next += count;
    return part;
  };
  const work = async (): Promise<void> => {
    const url = new URL("./worker.ts", import.meta.url);
    const worker = new Worker(url, { resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } });
    try {
      for (let part = nextPart(); part !== undefined; part = nextPart()) {
        if (!heard(await ask(worker, part))) next = histories;
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(jobs, histories) }, work));
}

function ask(worker: Worker, part: Part): Promise<Done> {
  const { promise, resolve, reject } = Promise.withResolvers<Done>();
  worker.once("message", (done: Done) => {
    worker.off("error", reject);
    resolve(done);
  });
  worker.once("error", reject);
  worker.postMessage(part);
  return promise;
}
