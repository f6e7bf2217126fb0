// A program that begins with more tags than its server can look up at once, beside others that call the same server.
import { setTimeout as pause } from "node:timers/promises";
import { createIdClient } from "@idmint/client";
import { expect, onTestFinished, test } from "vitest";
import { sqliteFile, startFleet } from "../fleet-support.ts";

const TAGS = 12_000;
/** Calls in flight while the tags are made. */
const PARALLEL = 64;
/** On a machine that does much else too; alone it takes a few seconds. */
const WITHIN_MS = 90_000;

test(
  "12,000 cold tags of one SDK at once all get their ids, each by about one request, and another program's calls go on",
  { timeout: 300_000 },
  async () => {
    const fleet = await startFleet({ servers: 1, storeUrl: `sqlite:${await sqliteFile()}` });
    const { api, address } = fleet.first;
    const names = Array.from({ length: TAGS }, (_, at) => `order-${at}`);
    const unmade = [...names, "bills"];
    const make = async (): Promise<void> => {
      for (let name = unmade.pop(); name !== undefined; name = unmade.pop())
        await api.createTag({ name });
    };
    await Promise.all(Array.from({ length: PARALLEL }, make));
    const others = await fleet.startCallers("grpc", {
      tag: "bills",
      activities: [{ kind: "id", perSecond: 50, parallel: 2 }],
      deadlineMs: 5_000,
    });
    await others.waitForOutput("first answer");
    let loads = 0;
    const client = createIdClient({
      address,
      maxTags: TAGS,
      deadlineMs: WITHIN_MS,
      onEvent: ({ type }) => {
        if (type === "load-started") loads++;
      },
    });
    onTestFinished(() => client.close());
    const start = performance.now();
    const ids = await Promise.all(names.map((name) => client.tag(name).next()));
    console.log(
      `${TAGS} cold tags took ${Math.round(performance.now() - start)} ms, ${loads} loads`,
    );
    expect(ids.length).toBe(TAGS);
    expect(loads).toBeLessThan(1.1 * TAGS);
    const { answered, errors } = await fleet.stopCallers(others);
    expect([errors, answered > 0]).toEqual([{}, true]);
  },
);

test("a program that was busy for longer than the rpc deadline uses the answers that came meanwhile", async () => {
  const fleet = await startFleet({ servers: 1, storeUrl: `sqlite:${await sqliteFile()}` });
  const { api, address } = fleet.first;
  await api.createTag({ name: "bills" });
  await api.createTag({ name: "orders" });
  const failed: unknown[] = [];
  const client = createIdClient({
    address,
    rpcDeadlineMs: 300,
    onEvent: (event) => {
      if (event.type === "load-failed") failed.push(event.error);
    },
  });
  onTestFinished(() => client.close());
  await client.tag("bills").next({ deadlineMs: 5_000 });
  failed.length = 0;
  const id = client.tag("orders").next({ deadlineMs: 5_000 });
  // The request leaves, and then nothing is read for long. Timers come before sockets after that.
  await pause(5);
  await new Promise(setImmediate);
  const end = performance.now() + 1_000;
  while (performance.now() < end);
  expect(await id).toBe(1n);
  expect(failed).toEqual([]);
});
