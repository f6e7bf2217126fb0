import { CoordinationError } from "../src/index.ts";

export async function sleep(ms: number): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Waits until something is true. */
export async function until(what: string, isTrue: () => boolean, withinMs = 10_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!isTrue()) {
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await sleep(5);
  }
}

/** The error of a call that must fail with one of ours. */
export async function failure(call: Promise<unknown>): Promise<CoordinationError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof CoordinationError) return error;
    throw error;
  }
  throw new Error("the call did not fail");
}
