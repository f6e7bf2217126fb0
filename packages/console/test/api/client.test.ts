// The client of the API, against a real HTTP server that plays what a server of idmint may answer.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { call } from "../../src/api/client.ts";
import { ApiError } from "../../src/api/errors.ts";
import { unansweredSince } from "../../src/state/connection.ts";
import { forgetToken, keepToken, mustSignIn, useToken } from "../../src/state/session.ts";

const realFetch = fetch;

interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
}

/** Plays a server; a page asks the one that it came from, so addresses are relative there. */
async function playing(
  answer: (response: ServerResponse, attempt: number) => void,
): Promise<readonly Asked[]> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    request.resume();
    asked.push({ path: request.url ?? "", headers: request.headers });
    answer(response, asked.length);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  vi.stubGlobal("fetch", (path: string, init: RequestInit) =>
    realFetch(`http://127.0.0.1:${port}${path}`, init),
  );
  return asked;
}

afterEach(() => {
  vi.unstubAllGlobals();
  forgetToken();
  keepToken();
});

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

const BUSY = { code: "unavailable", message: "the store is away" };
const NODES = { nodes: [], nextPageToken: "", nodesVersion: 7, nodeId: "n" };

async function refused(work: Promise<unknown>): Promise<ApiError> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof ApiError) return thrown;
    throw thrown;
  }
  throw new Error("it was answered");
}

test("a read that fails for a moment is made again", async () => {
  const asked = await playing((response, attempt) =>
    attempt < 3 ? send(response, 503, BUSY) : send(response, 200, NODES),
  );
  expect(await call("NodeService", "listNodes", {})).toEqual(NODES);
  expect(asked.map(({ path }) => path)).toEqual(Array(3).fill("/idmint.v1.NodeService/ListNodes"));
});

test("a read is made three times at most", async () => {
  const asked = await playing((response) => send(response, 503, BUSY));
  expect(await refused(call("NodeService", "listNodes", {}))).toMatchObject({
    code: "unavailable",
    message: "the store is away",
  });
  expect(asked).toHaveLength(3);
});

test("a change is made once, whatever becomes of it", async () => {
  for (const fail of [
    (response: ServerResponse) => send(response, 503, BUSY),
    (response: ServerResponse) => response.destroy(),
    (response: ServerResponse) => response.end("<html>bad gateway</html>"),
  ]) {
    const asked = await playing(fail);
    await refused(call("NodeService", "drainNode", { node: "a" }));
    expect(asked).toHaveLength(1);
  }
});

test("an error that lasts is not tried again", async () => {
  const body = { code: "permission_denied", message: "no" };
  const asked = await playing((response) => send(response, 403, body));
  const error = await refused(call("NodeService", "listNodes", {}));
  expect(error).toMatchObject({ code: "permission_denied", isNoAnswer: false });
  expect(asked).toHaveLength(1);
  expect(unansweredSince.value).toBeUndefined();
});

test("a server that never answers is given up after its time, and the banner knows", async () => {
  const asked = await playing(() => undefined);
  const work = call("NodeService", "listNodes", {}, { timeoutMs: 300 });
  expect(await refused(work)).toMatchObject({ reason: "CONSOLE_TIMEOUT" });
  expect(Number(asked[0]?.headers["connect-timeout-ms"])).toBeLessThanOrEqual(300);
  expect(unansweredSince.value).toBeTypeOf("number");
  await playing((response) => send(response, 200, NODES));
  await call("NodeService", "listNodes", {});
  expect(unansweredSince.value).toBeUndefined();
});

test("a view that is left stops what it asked for, also while it waits", async () => {
  const asked = await playing((response) => send(response, 503, BUSY));
  const left = new AbortController();
  const work = call("NodeService", "listNodes", {}, { signal: left.signal });
  await vi.waitFor(() => expect(asked).toHaveLength(1), { timeout: 5_000 });
  left.abort(new Error("left"));
  await expect(work).rejects.toThrow("left");
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(asked).toHaveLength(1);
});

test("a call that nobody waits for any more is ended at the server too", async () => {
  const gone = vi.fn<() => void>();
  const asked = await playing((response) => void response.once("close", gone));
  const left = new AbortController();
  const work = call("NodeService", "listNodes", {}, { signal: left.signal });
  await vi.waitFor(() => expect(asked).toHaveLength(1), { timeout: 5_000 });
  const ended = work.catch((thrown: unknown) => thrown);
  left.abort(new Error("left"));
  // Before the call's own time is over.
  await vi.waitFor(() => expect(gone).toHaveBeenCalled(), { timeout: 5_000 });
  expect(await ended).toEqual(new Error("left"));
  expect(asked).toHaveLength(1);
});

test("what is no answer of idmint is told apart", async () => {
  await playing((response) => response.end("<html>sign in at the proxy</html>"));
  const error = await refused(call("NodeService", "drainNode", { node: "a" }));
  expect(error).toMatchObject({ reason: "CONSOLE_GARBLED", isOutcomeUnknown: true });
});

test("a token goes into the header and nowhere else", async () => {
  const asked = await playing((response) => send(response, 200, NODES));
  await call("NodeService", "listNodes", {});
  expect(asked[0]?.headers.authorization).toBeUndefined();
  useToken("idm_secret");
  await call("NodeService", "listNodes", {});
  expect(asked[1]?.headers.authorization).toBe("Bearer idm_secret");
  expect(asked[1]?.path).not.toContain("secret");
});

test("a token that is not believed leads to signing in, and an answer to an older one does not", async () => {
  const held: ServerResponse[] = [];
  await playing((response) => void held.push(response));
  const body = { code: "unauthenticated", message: "who?" };
  useToken("old");
  const work = refused(call("NodeService", "drainNode", { node: "a" }));
  await vi.waitFor(() => expect(held).toHaveLength(1), { timeout: 5_000 });
  useToken("new");
  send(held[0]!, 401, body);
  await work;
  expect(mustSignIn.value).toBe(false);
  const again = refused(call("NodeService", "drainNode", { node: "a" }));
  await vi.waitFor(() => expect(held).toHaveLength(2), { timeout: 5_000 });
  send(held[1]!, 401, body);
  await again;
  expect(mustSignIn.value).toBe(true);
});
