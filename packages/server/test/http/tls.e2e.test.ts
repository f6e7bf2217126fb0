// HTTP with TLS: probes without a certificate, calls with one where the server wants it, and renewed files.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { connect as connectPlain } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "node:tls";
import { MemoryStore, selfSigned } from "@idmint/testkit";
import { expect, onTestFinished, test, vi } from "vitest";
import { createTag, startTest, type TestServer, until } from "../support.ts";

type Pair = ReturnType<typeof selfSigned>;

interface Answer {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

async function started(
  files: Readonly<Record<string, string>>,
  flags: (at: (name: string) => string) => Record<string, string>,
): Promise<{ it: TestServer; at: (name: string) => string }> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-http-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const at = (name: string): string => path.join(folder, name);
  for (const [name, text] of Object.entries(files)) writeFileSync(at(name), text);
  const store = new MemoryStore();
  // The tag is made by a server that is open.
  const open = await startTest({ store: new MemoryStore({ database: store.database }) });
  await createTag(open, "orders");
  const tls = { "tls-cert-file": at("a.crt"), "tls-key-file": at("a.key"), "http-tls": "on" };
  return { it: await startTest({ store, flags: { ...tls, ...flags(at) } }), at };
}

function ask(
  { server }: TestServer,
  url: string,
  body: string | undefined,
  trusted: Pair,
  own?: Pair,
): Promise<Answer> {
  const options = {
    method: body === undefined ? "GET" : "POST",
    headers: body === undefined ? {} : { "content-type": "application/json" },
    ca: trusted.cert,
    servername: "localhost",
    agent: false as const,
    ...(own === undefined ? {} : { cert: own.cert, key: own.key }),
  };
  return new Promise((resolve, reject) => {
    const sent = request(`https://${server.httpAddress}${url}`, options, (response) => {
      let text = "";
      response.on("data", (bytes: Buffer) => (text += bytes.toString()));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, json: JSON.parse(text) as Answer["json"] }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const generate = "/idmint.v1.IdService/GenerateId";
const order = '{"tag":"orders"}';

test("calls and probes go over TLS 1.3, and nothing goes without", async () => {
  const pair = selfSigned("localhost");
  const { it } = await started({ "a.crt": pair.cert, "a.key": pair.key }, () => ({}));
  expect(await ask(it, "/readyz", undefined, pair)).toMatchObject({ status: 200 });
  expect(await ask(it, generate, order, pair)).toMatchObject({ status: 200 });
  await expect(fetch(`http://${it.server.httpAddress}/healthz`)).rejects.toThrow("fetch failed");
  const port = Number(it.server.httpAddress.split(":").at(-1));
  const server = { port, host: "127.0.0.1", servername: "localhost" };
  const old = connect({ ...server, ca: pair.cert, maxVersion: "TLSv1.2" });
  const refused = new Promise<Error>((resolve) => {
    old.once("error", resolve);
    old.once("secureConnect", () => resolve(new Error("it spoke TLS 1.2")));
  });
  expect((await refused).message).toContain("protocol version");
});

test("with authorities for callers, all but probes need a certificate, and its names are who calls", async () => {
  const pair = selfSigned("localhost");
  const billing = selfSigned("billing.internal");
  const stranger = selfSigned("billing.internal");
  const unknown = selfSigned("y.internal");
  const access = "principals:\n  billing: { issue: [orders], certificates: [billing.internal] }\n";
  const { it } = await started(
    {
      "a.crt": pair.cert,
      "a.key": pair.key,
      "ca.crt": billing.cert + unknown.cert,
      "access.yaml": access,
    },
    (at) => ({ "tls-client-ca-file": at("ca.crt"), "access-file": at("access.yaml") }),
  );
  expect(await ask(it, "/readyz", undefined, pair)).toMatchObject({ status: 200 });
  expect(await ask(it, generate, order, pair, billing)).toMatchObject({ status: 200 });
  for (const own of [undefined, stranger]) {
    const refused = await ask(it, generate, order, pair, own);
    expect(refused).toMatchObject({ status: 401, json: { code: "unauthenticated" } });
  }
  expect(await ask(it, generate, order, pair, unknown)).toMatchObject({ status: 401 });
  const other = await ask(it, generate, '{"tag":"invoices"}', pair, billing);
  expect(other).toMatchObject({ status: 403, json: { code: "permission_denied" } });
});

test("a renewed certificate is used without a restart", async () => {
  const first = selfSigned("localhost");
  const second = selfSigned("localhost");
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"], shouldAdvanceTime: true });
  onTestFinished(() => void vi.useRealTimers());
  const { it, at } = await started({ "a.crt": first.cert, "a.key": first.key }, () => ({}));
  expect(await ask(it, "/healthz", undefined, first)).toMatchObject({ status: 200 });
  writeFileSync(at("a.crt"), second.cert);
  writeFileSync(at("a.key"), second.key);
  vi.advanceTimersByTime(10_000);
  await until(() =>
    ask(it, "/healthz", undefined, second).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  await expect(ask(it, "/healthz", undefined, first)).rejects.toThrow("self-signed");
});

test("whoever is slow about thousands of handshakes keeps no other address from one", async () => {
  const own = selfSigned("localhost");
  const { it } = await started({ "a.crt": own.cert, "a.key": own.key }, () => ({}));
  const [host = "", port = ""] = it.server.httpAddress.split(":");
  // The head of a record of a handshake, and less than what it promises.
  const half = Buffer.concat([Buffer.from([22, 3, 1, 2, 0, 1, 0]), Buffer.alloc(100)]);
  for (let i = 0; i < 300; i += 1) {
    const socket = connectPlain({ host, port: Number(port), localAddress: "127.0.0.2" });
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => undefined).resume();
    socket.write(half);
  }
  const isTold = (): boolean =>
    it.events.some(
      (event) =>
        event.type === "connection-refused" &&
        event.peer.startsWith("127.0.0.2:") &&
        event.why === "most of the TLS handshakes that run or wait are of its address",
    );
  // Each is answered, and when all places are taken by then, it has the place of one of those.
  await until(async () => {
    expect(await ask(it, "/healthz", undefined, own)).toMatchObject({ status: 200 });
    return isTold();
  });
});
