import { ServerCredentials } from "@grpc/grpc-js";
import { selfSigned } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { createIdClient, type TlsOptions } from "../../src/index.ts";
import { FakeServer, FakeStore } from "../fake-fleet.ts";
import { refusal } from "../support.ts";

const own = selfSigned("ids.example");
const client = selfSigned("client.example");

async function secureServer(clientAuthority?: string): Promise<FakeServer> {
  const store = new FakeStore();
  store.add("orders");
  const server = new FakeServer(store);
  onTestFinished(() => server.kill());
  const pair = { cert_chain: Buffer.from(own.cert), private_key: Buffer.from(own.key) };
  const authority = clientAuthority === undefined ? null : Buffer.from(clientAuthority);
  await server.start(ServerCredentials.createSsl(authority, [pair], authority !== null));
  return server;
}

async function firstId(
  server: FakeServer,
  tls: boolean | TlsOptions,
  deadlineMs = 10_000,
): Promise<bigint> {
  await using ids = createIdClient({ address: server.address, tls, rpcDeadlineMs: deadlineMs });
  return await ids.tag("orders").next({ deadlineMs });
}

test("a server is trusted by its authority and the name in its certificate", async () => {
  const server = await secureServer();
  expect(await firstId(server, { ca: own.cert, serverName: "ids.example" })).toBe(1n);
  expect(
    await firstId(server, { ca: Buffer.from(own.cert), serverName: "ids.example" }),
  ).toBeGreaterThan(1n);
});

test("a wrong name, an unknown authority and plain text are each refused as unavailable", async () => {
  const server = await secureServer();
  for (const tls of [
    { ca: own.cert, serverName: "other.example" },
    { ca: client.cert, serverName: "ids.example" },
    true,
    false,
  ]) {
    expect((await refusal(firstId(server, tls, 500))).code).toBe("UNAVAILABLE");
  }
  expect(server.allocated).toEqual([]);
});

test("a server that asks for a client's certificate gets it", async () => {
  const server = await secureServer(client.cert);
  const trust = { ca: own.cert, serverName: "ids.example" };
  expect((await refusal(firstId(server, trust, 500))).code).toBe("UNAVAILABLE");
  expect(await firstId(server, { ...trust, cert: client.cert, key: client.key })).toBe(1n);
});
