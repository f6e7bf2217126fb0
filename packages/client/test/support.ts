import { IdmintError, type Reason, type Segment } from "@idmint/core";
import { type AllocateSegmentResponse, Order } from "@idmint/proto";
import { expect } from "vitest";

/** The IdmintError that a call rejects with. */
export async function refusal(call: Promise<unknown>): Promise<IdmintError> {
  const outcome = await call.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if (!("error" in outcome)) expect.fail(`answered ${String(outcome.value)} instead of refusing`);
  expect(outcome.error).toBeInstanceOf(IdmintError);
  return outcome.error as IdmintError;
}

/** The IdmintError that a synchronous call throws. */
export function thrown(call: () => unknown): IdmintError {
  let value: unknown;
  try {
    value = call();
  } catch (error) {
    expect(error).toBeInstanceOf(IdmintError);
    return error as IdmintError;
  }
  return expect.fail(`answered ${String(value)} instead of refusing`);
}

export async function reasonOf(call: Promise<unknown>): Promise<Reason> {
  return (await refusal(call)).reason;
}

/** Waits until a condition holds; fails after two seconds. */
export async function until(holds: () => boolean): Promise<void> {
  const end = performance.now() + 2_000;
  while (!holds()) {
    if (performance.now() > end) expect.fail("the condition did not come to hold within 2 s");
    await pause(2);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

export function rangesOf(segments: readonly Segment[]): string {
  return segments.map(({ base, count }) => `${base}+${count}`).join(" ");
}

/** What the answers of a server tell of it when it has no list of servers. */
export const UNTOLD = { nodesVersion: 0, nodeId: "" };

/** A server's answer with one segment. */
export function allocated(
  base: bigint,
  count = 100,
  more: Partial<AllocateSegmentResponse> = {},
): AllocateSegmentResponse {
  return {
    segments: [{ base, count, increment: 1 }],
    epoch: 1n,
    releaseToken: "",
    maxAge: { seconds: 600n, nanos: 0 },
    order: Order.UNORDERED,
    maxCount: 10_000_000,
    ...UNTOLD,
    ...more,
  };
}
