// A hostile caller: floods a server for a while, and comes back at once whenever a connection is closed.
// Usage: flood.ts '{"address":…,"flood":…,"tag":…,"seconds":…,"tls":false}', and as many connections from as many addresses
// as FloodOptions tells. Writes one line of JSON.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Flood, type FloodName, FLOODS } from "./flood-table.ts";
import { type StrangerName, STRANGERS } from "./strangers.ts";

export interface FloodOptions {
  readonly address: string;
  readonly flood: FloodName | StrangerName;
  readonly tag: string;
  readonly seconds: number;
  readonly tls: boolean;
  /** Default: what the flood has by itself. */
  readonly connections?: number;
  /** The address that it comes from. It is another caller than the one that must not notice. */
  readonly from?: string;
  /** How long it waits before it connects again. A caller that hammers the kernel floods itself. */
  readonly againMs?: number;
  /** How long it may take until all its connections are there. */
  readonly connectMs?: number;
}

export interface FloodResult {
  /** Connections that were made, those that came back included. */
  readonly connected: number;
  readonly refused: number;
  readonly bytes: number;
}

const options = JSON.parse(process.argv[2] ?? "") as FloodOptions;
const flood: Flood = { ...FLOODS, ...STRANGERS }[options.flood];
const {
  connections = flood.connections,
  from = "127.0.2.1",
  againMs = 5,
  connectMs = 30_000,
} = options;
const [host = "", port = ""] = options.address.split(":");
const result = { connected: 0, refused: 0, bytes: 0 };
const sockets = new Set<Socket>();
const over = new AbortController();
// Its time begins when all its connections are there, which takes a while on a busy machine.
let end = setTimeout(stop, connectMs);

function stop(): void {
  over.abort();
  for (const socket of sockets) socket.destroy();
}

function connected(): void {
  result.connected++;
  if (result.connected !== connections) return;
  clearTimeout(end);
  end = setTimeout(stop, options.seconds * 1_000);
}

function open(): Socket {
  const to = { host, port: Number(port), localAddress: from };
  const isSilent = flood.opening.length === 0;
  // The server's certificate is one of the test's, and this caller trusts anybody.
  return options.tls && !isSilent
    ? connectTls({ ...to, rejectUnauthorized: false, ALPNProtocols: [flood.alpn ?? "h2"] })
    : connect(to);
}

/** One connection until it is closed or the time is over. */
async function attack(): Promise<void> {
  const socket = open();
  sockets.add(socket);
  socket.on("error", () => undefined);
  if (flood.reads !== false) socket.resume();
  const closed = once(socket, "close").catch(() => undefined);
  socket.once(options.tls && flood.opening.length > 0 ? "secureConnect" : "connect", () => {
    connected();
    if (flood.opening.length === 0) return;
    socket.write(flood.opening);
    if (flood.chunks !== undefined) void pour(socket, flood.chunks(options.tag), closed);
  });
  await closed;
  sockets.delete(socket);
  result.bytes += socket.bytesWritten;
}

async function pour(
  socket: Socket,
  chunks: Generator<Buffer, void>,
  closed: Promise<unknown>,
): Promise<void> {
  for (const chunk of chunks) {
    if (socket.destroyed || over.signal.aborted) return;
    if (!socket.write(chunk)) {
      await Promise.race([once(socket, "drain").catch(() => undefined), closed]);
    }
    // Other connections have their turn too.
    await new Promise(setImmediate);
  }
}

async function keepAttacking(): Promise<void> {
  while (!over.signal.aborted) {
    await attack();
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}

await Promise.all(Array.from({ length: connections }, keepAttacking));
console.log(JSON.stringify(result));
