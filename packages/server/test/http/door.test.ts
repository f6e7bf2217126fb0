import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { probeRoutes } from "../../src/http/probes.ts";
import type { HttpAnswer } from "../../src/http/route.ts";
import { doorOf, openDoor } from "./doors.ts";

const grpcAddressOf = (): string => "127.0.0.1:7600";

function open(
  state: { ready: boolean; state: string },
  metrics?: () => Promise<string>,
): Promise<number> {
  return openDoor(probeRoutes({ ready: () => state, grpcAddress: grpcAddressOf, metrics }));
}

test("the process is alive as long as it answers, whatever its state", async () => {
  const port = await open({ ready: false, state: "DRAINING" });
  const response = await fetch(`http://127.0.0.1:${port}/healthz`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toContain("application/json");
  expect(await response.json()).toEqual({
    status: "alive",
    service: "idmint",
    grpcAddress: "127.0.0.1:7600",
  });
});

test("readiness follows the server's state", async () => {
  const state = { ready: true, state: "SERVING" };
  const url = `http://127.0.0.1:${await open(state)}/readyz?verbose`;
  expect((await fetch(url)).status).toBe(200);
  Object.assign(state, { ready: false, state: "DEGRADED" });
  const response = await fetch(url);
  expect(response.status).toBe(503);
  expect(await response.json()).toEqual({ ready: false, state: "DEGRADED" });
});

test("other paths are not found, other methods not allowed", async () => {
  const port = await open({ ready: true, state: "SERVING" });
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
  const posted = await fetch(`http://127.0.0.1:${port}/readyz`, { method: "POST", body: "x" });
  expect(posted.status).toBe(405);
  expect(posted.headers.get("allow")).toBe("GET, HEAD");
  expect((await fetch(`http://127.0.0.1:${port}/readyz`, { method: "HEAD" })).status).toBe(200);
});

test("headers of more than 16 KiB are refused", async () => {
  const port = await open({ ready: true, state: "SERVING" });
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => {
    socket.destroy();
  });
  socket.write(`GET /healthz HTTP/1.1\r\nhost: x\r\nlong: ${"x".repeat(20_000)}\r\n\r\n`);
  const answer = await new Promise<string>((resolve) => {
    socket.once("data", (bytes: Buffer) => resolve(bytes.toString()));
  });
  expect(answer).toContain("431");
});

test("a body that nobody wants is dropped as it comes", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const answer = async (): Promise<HttpAnswer> => {
    await promise;
    return { status: 200, headers: {}, body: "" };
  };
  const port = await openDoor([{ matches: () => true, methods: "any", answer }]);
  const socket = connect(port, "127.0.0.1").resume();
  onTestFinished(() => {
    socket.destroy();
  });
  // More than sockets take that nobody reads.
  const size = 32 * 1_024 * 1_024;
  socket.write(`GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${size}\r\n\r\n`);
  await new Promise((written) => socket.write(Buffer.alloc(size), written));
  resolve();
});

test("an address that is taken cannot be had", async () => {
  const port = await open({ ready: true, state: "SERVING" });
  const second = await doorOf([], port);
  await expect(second.listen()).rejects.toMatchObject({ code: "EADDRINUSE" });
});

test("metrics are text where there are any, and a failure tells nothing of what went wrong", async () => {
  const ready = { ready: true, state: "SERVING" };
  expect((await fetch(`http://127.0.0.1:${await open(ready)}/metrics`)).status).toBe(404);
  const port = await open(ready, async () => "idmint_calls_total 1\n");
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(await answer.text()).toBe("idmint_calls_total 1\n");
  const failing = await open(ready, () => Promise.reject(new Error("secret")));
  const failed = await fetch(`http://127.0.0.1:${failing}/metrics`);
  expect(failed.status).toBe(500);
  expect(await failed.text()).not.toContain("secret");
});
