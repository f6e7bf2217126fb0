// TLS of the fast door, on real connections.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect as connectPlain, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { selfSigned } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { SecureSockets, type SecureSocketsParts } from "../../src/tls/secure-sockets.ts";
import { startTest, type TestServer, until } from "../support.ts";

const FIRST_FRAME_BYTES = 9;

type Pair = ReturnType<typeof selfSigned>;

/** Files with these certificates, by the options that name them. */
function writeFiles(own: Pair): { "tls-cert-file": string; "tls-key-file": string };
function writeFiles(own: Pair, callers: Pair | undefined): Record<string, string>;
function writeFiles(own: Pair, callers?: Pair): Record<string, string> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-fast-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string, text: string): string => {
    writeFileSync(path.join(folder, name), text);
    return path.join(folder, name);
  };
  return {
    "tls-cert-file": file("server.crt", own.cert),
    "tls-key-file": file("server.key", own.key),
    ...(callers === undefined ? {} : { "tls-client-ca-file": file("ca.crt", callers.cert) }),
  };
}

function serverWith(own: Pair, callers?: Pair): Promise<TestServer> {
  return startTest({ flags: { "grpc-door": "fast", ...writeFiles(own, callers) } });
}

function shake({ server }: TestServer, options: ConnectionOptions): TLSSocket {
  const [host = "", port] = server.grpcAddress.split(":");
  const socket = connect({ host, port: Number(port), servername: "localhost", ...options });
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** What a connection comes to: the server's first frame, or the code of its end. */
function outcomeOf(socket: TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    socket.once("data", (bytes: Buffer) =>
      resolve(bytes.length >= FIRST_FRAME_BYTES ? `frame ${bytes[3]}` : "too little"),
    );
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.once("close", () => resolve("closed"));
  });
}

const refusals = ({ events }: TestServer): readonly string[] =>
  events.flatMap((event) => (event.type === "connection-refused" ? [event.why] : []));

test("only callers who choose HTTP/2 by ALPN are taken, and TLS 1.3 is the least", async () => {
  const own = selfSigned("localhost");
  const it = await serverWith(own);
  const ca = own.cert;
  const h2 = ["h2"];
  const outcome = (options: ConnectionOptions): Promise<string> => outcomeOf(shake(it, options));
  // 4 is SETTINGS.
  expect(await outcome({ ca, ALPNProtocols: h2 })).toBe("frame 4");
  expect(await outcome({ ca, ALPNProtocols: ["http/1.1", "h2"] })).toBe("frame 4");
  expect(await outcome({ ca })).toBe("closed");
  expect(await outcome({ ca, ALPNProtocols: ["http/1.1"] })).toBe(
    "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
  );
  expect(await outcome({ ca, ALPNProtocols: h2, maxVersion: "TLSv1.2" })).toBe(
    "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
  );
  await until(() => refusals(it).length === 3);
  expect(refusals(it)).toContain("it did not ask for HTTP/2 by ALPN");
  // What was turned away holds no connection.
  await until(() => it.server.counters.connections === 2);
});

test("with client authorities nobody is served before the certificate was verified", async () => {
  const [own, known, stranger] = [
    selfSigned("localhost"),
    selfSigned("caller.example"),
    selfSigned("caller.example"),
  ];
  const it = await serverWith(own, known);
  const options = { ca: own.cert, ALPNProtocols: ["h2"] };
  expect(await outcomeOf(shake(it, { ...options, ...known, ca: own.cert }))).toBe("frame 4");
  expect(await outcomeOf(shake(it, options))).not.toBe("frame 4");
  expect(await outcomeOf(shake(it, { ...options, ...stranger, ca: own.cert }))).not.toBe("frame 4");
  await until(() => it.server.counters.connections === 1);
});

/** TLS on a port, without a door behind it. */
async function secureSockets(parts: Partial<SecureSocketsParts>) {
  const own = selfSigned("localhost");
  const files = writeFiles(own);
  const refused: string[] = [];
  const secure = await SecureSockets.create(
    { certFile: files["tls-cert-file"], keyFile: files["tls-key-file"], clientCaFile: undefined },
    {
      take: () => {
        throw new Error("nobody was to be taken");
      },
      onRefused: (_, why) => refused.push(why),
      onBadReload: () => undefined,
      ...parts,
    },
  );
  onTestFinished(() => secure.close());
  const open = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    secure.take(socket);
  });
  onTestFinished(() => void server.close());
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
  const send = (bytes: Buffer): Socket => {
    const socket = connectPlain({ host: "127.0.0.1", port });
    socket.on("error", () => undefined).resume();
    socket.write(bytes);
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  return { own, refused, open, port, send };
}

/** The head of a record of a handshake, and less than what it promises. */
const HALF_A_HELLO = Buffer.concat([Buffer.from([22, 3, 1, 2, 0, 1, 0]), Buffer.alloc(100)]);

test("a handshake that stops, and plain text, are given up", async () => {
  const { refused, open, send } = await secureSockets({ handshakeMs: 50 });
  send(HALF_A_HELLO);
  await until(() => refused.length === 1 && open.size === 0);
  send(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  await until(() => refused.length === 2 && open.size === 0);
  expect(refused[0]).toContain("ERR_TLS_HANDSHAKE_TIMEOUT");
});

test("only so many handshakes run, and whoever is slow about theirs keeps no other address waiting", async () => {
  const taken: string[] = [];
  const { own, refused, open, port, send } = await secureSockets({
    handshakes: { running: 4, waiting: 100, perSecond: 1_000, burst: 100 },
    take: (socket) => taken.push(socket.remoteAddress ?? ""),
  });
  for (let i = 0; i < 20; i += 1) send(HALF_A_HELLO);
  const begun = (): number => [...open].filter(({ bytesRead }) => bytesRead > 0).length;
  await until(() => open.size === 20 && begun() === 4);
  const honest = connect({
    socket: connectPlain({ host: "127.0.0.1", port, localAddress: "127.0.0.2" }),
    servername: "localhost",
    ca: own.cert,
    ALPNProtocols: ["h2"],
  });
  onTestFinished(() => void honest.destroy());
  await until(() => taken.length === 1);
  expect(taken).toEqual(["127.0.0.2"]);
  expect(refused).toContain("most of the TLS handshakes that run or wait are of its address");
  // Its handshake is over, so one of those that waited has its place.
  await until(() => open.size === 20 && begun() === 5);
});

test("handshakes begin at a rate, and all in the end", async () => {
  const times: number[] = [];
  const { own, port } = await secureSockets({
    handshakes: { running: 100, waiting: 100, perSecond: 20, burst: 2 },
    take: () => times.push(performance.now()),
  });
  const start = performance.now();
  for (let i = 0; i < 8; i += 1) {
    const names = { servername: "localhost", ca: own.cert, ALPNProtocols: ["h2"] };
    const socket = connect({ host: "127.0.0.1", port, ...names });
    socket.on("error", () => undefined);
    onTestFinished(() => void socket.destroy());
  }
  await until(() => times.length === 8);
  // Two at once, and six at twenty a second.
  expect(times.at(-1)).toBeGreaterThanOrEqual(start + 290);
});
