// Addresses where no idmint server is: the error names the address and the cause, soon.
import { createServer } from "node:http";
import { type AddressInfo, createServer as listen } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createIdClient, type IdClient, type IdClientOptions } from "../../src/index.ts";
import { startFleet } from "../fake-fleet.ts";
import { pause, refusal, thrown } from "../support.ts";

function clientOf(options: IdClientOptions): IdClient {
  const client = createIdClient(options);
  onTestFinished(() => client.close());
  return client;
}

/** A port that nobody listens on. */
async function closedPort(): Promise<number> {
  const server = listen();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

async function webServer(): Promise<number> {
  const server = createServer((_request, response) => {
    response.end("hello");
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

test("a port where nobody listens is named with the cause, long before the deadline", async () => {
  const address = `127.0.0.1:${await closedPort()}`;
  const tag = clientOf({ address, deadlineMs: 60_000 }).tag("orders");
  const calls = [tag.next(), tag.take(5), tag.warm(), tag.nextString()];
  for (const error of await Promise.all(calls.map(refusal))) {
    expect([error.reason, error.retryable]).toEqual(["SERVER_UNAVAILABLE", true]);
    expect(error.message).toContain(
      `${address} cannot be reached: connect ECONNREFUSED ${address}`,
    );
  }
  const sync = thrown(() => tag.nextSync());
  expect(sync.reason).toBe("SEGMENT_NOT_READY");
  expect(sync.message).toContain(`${address} cannot be reached`);
}, 20_000);

test("a host that does not exist is named", async () => {
  const error = await refusal(clientOf({ address: "no-such-host.invalid:7600" }).tag("t").next());
  expect(error.message).toContain(
    "no-such-host.invalid:7600 cannot be reached: Name resolution failed",
  );
}, 20_000);

test("every address that cannot be reached is named", async () => {
  const addresses = [`127.0.0.1:${await closedPort()}`, `127.0.0.1:${await closedPort()}`];
  const { message } = await refusal(clientOf({ addresses }).tag("t").next());
  for (const address of addresses) expect(message).toContain(`${address} cannot be reached`);
}, 20_000);

test("a server that is no idmint server is named", async () => {
  const address = `127.0.0.1:${await webServer()}`;
  const errors = await Promise.all(
    [false, true].map((tls) => refusal(clientOf({ address, tls }).tag("t").next())),
  );
  for (const { message } of errors) {
    expect(message).toContain(`${address} cannot be reached`);
    expect(message).toContain("check the address and the option tls");
  }
}, 20_000);

test("a call that says itself how long it waits does so", async () => {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  const [server] = servers;
  server!.kill();
  const { address } = server!;
  const tag = clientOf({ address }).tag("orders");
  const waiting = tag.next({ deadlineMs: 60_000 });
  expect((await refusal(tag.next())).reason).toBe("SERVER_UNAVAILABLE");
  const error = await refusal(tag.next({ deadlineMs: 100 }));
  expect(error.reason).toBe("SEGMENT_NOT_READY");
  expect(error.message).toContain(`${address} cannot be reached: connect ECONNREFUSED`);
  await server!.start();
  expect(await waiting).toBe(1n);
}, 20_000);

test("once a server was reached, calls wait through an outage until their deadline", async () => {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  const [server] = servers;
  const client = clientOf({ address: server!.address, min: 2, max: 2, deadlineMs: 60_000 });
  await client.tag("orders").next();
  server!.kill();
  const waiting = client.tag("orders").take(10);
  // Long enough for tries after the second that a first contact is given: they are at most 2 s apart.
  await pause(4_000);
  await server!.start();
  expect(await waiting).not.toEqual([]);
}, 20_000);
