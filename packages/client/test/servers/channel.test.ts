// Connections of the transport: one for each endpoint, until it is forgotten.
import { connect, createServer, type AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { createIdClient } from "../../src/index.ts";
import { GrpcTransport } from "../../src/servers/channel.ts";
import { type FakeServer, startFleet } from "../fake-fleet.ts";
import { until } from "../support.ts";

/** A way to a server that knows how many connections are open on it. */
async function doorTo({ address }: FakeServer): Promise<{ address: string; open: () => number }> {
  const port = Number(address.split(":")[1]);
  let open = 0;
  const door = createServer((near) => {
    open++;
    const far = connect(port, "127.0.0.1");
    near.on("close", () => {
      open--;
      far.destroy();
    });
    for (const [one, other] of [[near, far] as const, [far, near] as const]) {
      one.on("error", () => undefined);
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => door.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void door.close());
  return {
    address: `127.0.0.1:${(door.address() as AddressInfo).port}`,
    open: () => open,
  };
}

test("an endpoint that is forgotten keeps no connection; a call in flight ends first, and the next one connects anew", async () => {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  const [server] = servers;
  const door = await doorTo(server!);
  const transport = new GrpcTransport(false);
  onTestFinished(() => transport.close());
  const allocate = () =>
    transport.allocate(door.address, { tag: "orders", count: 5, after: 0n, instance: "" }, 5_000);
  await Promise.all([allocate(), allocate()]);
  expect(await transport.isServing(door.address, 5_000)).toBe(true);
  expect(door.open()).toBe(1);
  server!.verdict = () => ({ kind: "delay", ms: 300 });
  const inFlight = allocate();
  await until(() => server!.allocated.length === 3);
  transport.forget(door.address);
  expect((await inFlight).segments).toHaveLength(1);
  await until(() => door.open() === 0);
  server!.verdict = () => undefined;
  expect((await allocate()).segments).toHaveLength(1);
  expect(door.open()).toBe(1);
  // Nobody is there who was never asked.
  transport.forget("127.0.0.1:1");
});

test("looks at a server that is away, or is none of idmint, answer that nothing is known", async () => {
  const { servers } = await startFleet(1, onTestFinished);
  const transport = new GrpcTransport(false);
  onTestFinished(() => transport.close());
  // It has the health service and no NodeService.
  const { address } = servers[0]!;
  expect(await transport.isServing(address, 5_000)).toBe(true);
  expect(await transport.identify(address, 5_000)).toBeUndefined();
  expect(await transport.listNodes(address, 5_000)).toBeUndefined();
  servers[0]!.serving = false;
  expect(await transport.isServing(address, 5_000)).toBe(false);
  servers[0]!.kill();
  expect(await transport.isServing(address, 1_000)).toBeUndefined();
});

/** A proxy that is asked and never answers: how often, and what it was told. */
async function startProxy(): Promise<{ readonly url: string; readonly told: readonly string[] }> {
  const told: string[] = [];
  const proxy = createServer((caller) => {
    caller.on("error", () => undefined);
    caller.on("data", (bytes) => told.push(bytes.toString("latin1")));
    onTestFinished(() => void caller.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void proxy.close());
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, told };
}

test.each(["grpc_proxy", "https_proxy", "http_proxy"])(
  "a proxy that %s names hears nothing of a client, and no token",
  async (variable) => {
    const { store, servers } = await startFleet(1, onTestFinished);
    store.add("orders");
    const proxy = await startProxy();
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const name of ["no_grpc_proxy", "no_proxy"]) vi.stubEnv(name, undefined);
    vi.stubEnv(variable, proxy.url);
    const address = servers[0]!.address.replace("127.0.0.1", "localhost");
    const client = createIdClient({ address, token: "secret-of-a-test", rpcDeadlineMs: 500 });
    onTestFinished(() => client.close());
    expect(await client.tag("orders").next()).toBe(1n);
    expect(proxy.told).toEqual([]);
  },
);
