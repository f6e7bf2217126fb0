// One side speaks TLS, the other does not: the way out is told.
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { selfSigned } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { against, idmint } from "../support.ts";

test("a server without TLS is told to who calls with TLS", async () => {
  const { exitCode, err } = await against({}, "status", "--tls");
  expect(exitCode).toBe(4);
  expect(err).toMatch(/no idmint server answers at .*; it speaks no TLS, so leave out --tls/);
  // What OpenSSL says has line ends of its own.
  expect(err.trimEnd().split("\n")).toHaveLength(2);
});

async function tlsServer(): Promise<string> {
  const { cert, key } = selfSigned("localhost");
  const server = new Server();
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  const port = await new Promise<number>((resolve, reject) => {
    const secure = ServerCredentials.createSsl(null, [pair]);
    server.bindAsync("127.0.0.1:0", secure, (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  onTestFinished(() => server.forceShutdown());
  return `localhost:${port}`;
}

test("--tls and --ca-file are named where a server speaks TLS", async () => {
  const address = await tlsServer();
  const plain = await idmint(["status", "--address", address]);
  expect([plain.exitCode, plain.err]).toEqual([
    4,
    expect.stringContaining("if it speaks TLS, add --tls or --ca-file"),
  ]);
  const strange = await idmint(["status", "--address", address, "--tls"]);
  expect([strange.exitCode, strange.err]).toEqual([
    4,
    expect.stringContaining("name the authority that signed its certificate with --ca-file"),
  ]);
});
