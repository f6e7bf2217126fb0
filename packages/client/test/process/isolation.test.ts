import { serialize } from "node:v8";
import { MessageChannel } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { BufferedIdClient } from "../../src/client.ts";
import { createIdClient } from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime.ts";
import { GrpcTransport } from "../../src/servers/channel.ts";
import { startFleet } from "../fake-fleet.ts";
import { reasonOf, thrown } from "../support.ts";

test("neither a client nor a tag can be cloned or posted, and nothing they hold is serialised", async () => {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  await using client = createIdClient({ address: servers[0]!.address });
  const tag = client.tag("orders");
  expect(await tag.next()).toBe(1n);
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => {
    port1.close();
    port2.close();
  });
  for (const held of [client, tag, { nested: [tag] }]) {
    expect(() => structuredClone(held)).toThrow(/clone/i);
    expect(() => port1.postMessage(held)).toThrow(/clone/i);
  }
  // What a child process is sent goes through one of these two; all there is to see is the name.
  for (const held of [client, tag]) {
    expect(JSON.parse(JSON.stringify(held))).not.toHaveProperty("base");
    expect(serialize(held).byteLength).toBeLessThan(100);
  }
  expect(Object.keys(client)).toEqual([]);
  expect(Object.keys(tag)).toEqual(["name"]);
});

test("no client is made while a startup snapshot is built", () => {
  const runtime = nodeRuntime(() => true);
  const make = (): BufferedIdClient =>
    new BufferedIdClient(
      { address: "127.0.0.1:1" },
      { runtime, transport: ({ tls }) => new GrpcTransport(tls) },
    );
  expect(thrown(make).reason).toBe("CLIENT_CLOSED");
});

test("a client found in another process than its own loads nothing", async () => {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  let processId = 1;
  const runtime = { ...nodeRuntime(() => false), processId: () => processId };
  await using client = new BufferedIdClient(
    { address: servers[0]!.address, min: 1, max: 1 },
    { runtime, transport: ({ tls }) => new GrpcTransport(tls) },
  );
  const tag = client.tag("orders");
  expect(await tag.next()).toBe(1n);
  processId = 2;
  await tag.next().catch(() => undefined);
  expect(await reasonOf(tag.next())).toBe("CLIENT_CLOSED");
  expect(thrown(() => client.tag("other")).reason).toBe("CLIENT_CLOSED");
});
