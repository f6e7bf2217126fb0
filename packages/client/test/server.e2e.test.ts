// The SDK against real servers on a real SQLite file.
import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { Order } from "@idmint/proto";
import { expect, test } from "vitest";
import { createIdClient, type IdClientEvent, idsOf } from "../src/index.ts";
import { RealFleet } from "./real-fleet.ts";
import { pause, reasonOf, refusal } from "./support.ts";

test("ids come from the server to a variable, in every form", async () => {
  await using fleet = await RealFleet.start(1);
  await fleet.createTag("orders");
  await using client = createIdClient({ addresses: fleet.addresses });
  const tag = client.tag("orders");
  expect(await tag.next()).toBe(1n);
  expect(tag.nextSync()).toBe(2n);
  expect(await tag.nextString()).toBe("3");
  expect(tag.nextNumberSync()).toBe(4);
  const ids = [...idsOf(await tag.take(1_000))];
  expect(ids.length).toBe(1_000);
  expect(new Set([1n, 2n, 3n, 4n, ...ids]).size).toBe(1_004);
  const error = await refusal(client.tag("nobody").next());
  expect([error.reason, error.code, error.retryable]).toEqual([
    "TAG_NOT_FOUND",
    "NOT_FOUND",
    false,
  ]);
});

test("what a client gives back at close, the next one gets", async () => {
  await using fleet = await RealFleet.start(1);
  await fleet.createTag("orders");
  const events: IdClientEvent[] = [];
  const options = {
    addresses: fleet.addresses,
    min: 100,
    max: 100,
    onEvent: (event: IdClientEvent) => events.push(event),
  };
  const seen = new Set<bigint>();
  for (let i = 0; i < 10; i++) {
    await using client = createIdClient(options);
    for (let j = 0; j < 5; j++) seen.add(await client.tag("orders").next());
  }
  expect(seen.size).toBe(50);
  const released = events.filter((event) => event.type === "released");
  expect(released.length).toBe(10);
  for (const { unusedCount, reclaimedCount } of released) expect(reclaimedCount).toBe(unusedCount);
  // The server's first block of a thousand: all the rest of it is still to be had.
  await using client = createIdClient(options);
  for (const id of idsOf(await client.tag("orders").take(950))) seen.add(id);
  expect(seen).toEqual(new Set(Array.from({ length: 1_000 }, (_, i) => BigInt(i + 1))));
});

test("a thousand first calls on a new tag get a thousand ids", async () => {
  await using fleet = await RealFleet.start(1);
  await fleet.createTag("orders");
  await using client = createIdClient({ addresses: fleet.addresses, min: 10 });
  const ids = await Promise.all(Array.from({ length: 1_000 }, () => client.tag("orders").next()));
  expect(new Set(ids).size).toBe(1_000);
});

test.each([2n ** 53n - 50n, 2n ** 63n - 50n])(
  "from %d ids are exact to the last",
  async (start) => {
    await using fleet = await RealFleet.start(1);
    const ceiling = start + 49n;
    await fleet.createTag("last", { start, ceiling });
    await using client = createIdClient({ addresses: fleet.addresses, min: 7 });
    const tag = client.tag("last");
    for (let i = 0n; i < 20n; i++) expect(await tag.next()).toBe(start + i);
    for (let i = 20n; i < 40n; i++) expect(await tag.nextString()).toBe(String(start + i));
    expect([...idsOf(await tag.take(10))]).toEqual(
      Array.from({ length: 10 }, (_, i) => start + 40n + BigInt(i)),
    );
    expect(await reasonOf(tag.next())).toBe("TAG_EXHAUSTED");
  },
);

test("a raised floor, a pause and a resume reach a client that asks for more", async () => {
  await using fleet = await RealFleet.start(2);
  await fleet.createTag("orders");
  await using client = createIdClient({ addresses: fleet.addresses, min: 20, max: 20 });
  const tag = client.tag("orders");
  await tag.next();
  await fleet.advance("orders", 1_000_000n);
  // Seen by every server within a second; by the client at its next load, here after twenty ids at most.
  await pause(1_100);
  for (let i = 0; i < 20; i++) await tag.next();
  for (let i = 0; i < 100; i++) expect(await tag.next()).toBeGreaterThan(1_000_000n);
  await fleet.pause("orders");
  await pause(1_100);
  let refused = "";
  for (let i = 0; i < 60 && refused === ""; i++) {
    try {
      await tag.next();
    } catch {
      refused = await reasonOf(tag.next());
    }
  }
  expect(refused).toBe("TAG_PAUSED");
  await fleet.resume("orders");
  await pause(1_100);
  expect(await tag.next({ deadlineMs: 4_000 })).toBeGreaterThan(1_000_000n);
});

test("PER_CLIENT ids never go down while servers stop and start under a client", async () => {
  await using fleet = await RealFleet.start(2);
  await fleet.createTag("orders", { order: Order.PER_CLIENT });
  const [first, second] = fleet.addresses;
  await using client = createIdClient({ addresses: fleet.addresses, min: 10, max: 10 });
  await using other = createIdClient({ addresses: fleet.addresses.toReversed(), min: 10, max: 10 });
  let last = 0n;
  const others = new Set<bigint>();
  const ascend = async (): Promise<void> => {
    for (let i = 0; i < 50; i++) {
      const id = await client.tag("orders").next({ deadlineMs: 5_000 });
      expect(id).toBeGreaterThan(last);
      expect(others.has(id)).toBe(false);
      last = id;
      others.add(await other.tag("orders").next({ deadlineMs: 5_000 }));
    }
  };
  await ascend();
  for (const address of [first, second, first, second]) {
    await fleet.stop(address!);
    await ascend();
    await fleet.startServer(address);
    await pause(100);
    await ascend();
  }
  expect(others.size).toBe(450);
});

test("forked children and worker threads each have their own ids", async () => {
  await using fleet = await RealFleet.start(2);
  await fleet.createTag("orders");
  const script = path.join(import.meta.dirname, "process/child/issue-ids.ts");
  const execArgv = ["-C", "idmint-source"];
  const addresses = fleet.addresses.join(",");
  const children = [
    fork(script, [addresses, "500"], { execArgv }),
    fork(script, [addresses, "500"], { execArgv }),
    new Worker(script, { workerData: [addresses, 500], execArgv }),
    new Worker(script, { workerData: [addresses, 500], execArgv }),
  ];
  const answers = await Promise.all(
    children.map(async (child) => {
      const [ids] = (await once(child, "message")) as [readonly string[]];
      return ids;
    }),
  );
  const all = answers.flat();
  expect(all.length).toBe(2_000);
  expect(new Set(all).size).toBe(2_000);
});

test("the README's programs run as printed", async () => {
  await using fleet = await RealFleet.start(1);
  await fleet.createTag("demo");
  const home = path.resolve(import.meta.dirname, "..");
  const text = readFileSync(path.join(home, "README.md"), "utf8");
  const programs = [...text.matchAll(/```js\n(.*?)```/gs)].map((match) => match[1] ?? "");
  expect(programs.length).toBe(2);
  const outputs: string[] = [];
  for (const program of programs) {
    // Only the port differs from what is printed: 7600 may be taken here.
    const code = program.replace("127.0.0.1:7600", fleet.addresses[0] ?? "");
    const args = ["-C", "idmint-source", "--input-type=module", "--eval", code];
    outputs.push((await promisify(execFile)(process.execPath, args, { cwd: home })).stdout);
  }
  expect(outputs[0]).toMatch(/^1n\n2\n3\n4n\n\[\n? *\{ base: 5n, increment: 1, count: \d+ \}/);
  expect(outputs[1]).toBe("");
});
