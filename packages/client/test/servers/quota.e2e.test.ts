// A quota of a real server holds an SDK back, and fails none of its calls.
import { expect, onTestFinished, test } from "vitest";
import { createIdClient, type IdClientEvent } from "../../src/index.ts";
import { RealFleet } from "../real-fleet.ts";

const PER_SECOND = 400;
const SECONDS = 3;

test("calls wait for the quota of their tag as long as the server says, and none is refused", async () => {
  const fleet = await RealFleet.start(0);
  onTestFinished(() => fleet[Symbol.asyncDispose]());
  const address = await fleet.startServer(undefined, { IDMINT_QUOTA_TAG_IDS: String(PER_SECOND) });
  await fleet.createTag("orders");
  const refusals: IdClientEvent[] = [];
  const onEvent = (event: IdClientEvent): void => {
    if (event.type === "load-failed") refusals.push(event);
  };
  const client = createIdClient({ address, min: 50, max: 50, deadlineMs: 30_000, onEvent });
  onTestFinished(() => client.close());
  const start = performance.now();
  let taken = 0;
  while (performance.now() - start < SECONDS * 1_000) {
    await client.tag("orders").take(50);
    taken += 50;
  }
  const seconds = (performance.now() - start) / 1_000;
  // What the quota gives in that time and at once, and the rest of one load.
  expect(taken).toBeLessThanOrEqual(PER_SECOND * (seconds + 1) + 100);
  expect(taken).toBeGreaterThan(PER_SECOND);
  expect(refusals.length).toBeGreaterThan(0);
  // One request for each refusal: nobody asks again before the time that the server told.
  expect(refusals.length).toBeLessThan(20 * SECONDS);
  for (const event of refusals) {
    expect(event).toMatchObject({ error: { reason: "QUOTA_EXCEEDED" } });
  }
});
