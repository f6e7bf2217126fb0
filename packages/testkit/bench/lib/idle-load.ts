// Connections that were opened as clients of gRPC open them, and on which nothing is called.
// Usage: idle-load.ts '{"address":…,"isSecure":…,"connections":…}'. Says `open` when all are, and keeps them until it is ended.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";
import { ACK, frame, PREFACE, TYPE } from "./http2-frames.ts";

export interface IdleLoad {
  readonly address: string;
  readonly isSecure: boolean;
  readonly connections: number;
}

/** Connections that are opened at once. */
const BATCH = 64;
const NOTHING = Buffer.alloc(0);
const HELLO = Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0, NOTHING)]);

/** Fulfils when the server's SETTINGS came and are acknowledged. */
async function open({ address, isSecure }: IdleLoad): Promise<Socket> {
  const [host = "", port = ""] = address.split(":");
  const where = { host, port: Number(port) };
  const socket = isSecure
    ? connectSecurely({ ...where, ALPNProtocols: ["h2"], rejectUnauthorized: false })
    : connect(where);
  socket.once("close", () => {
    throw new Error("the server closed a connection");
  });
  await once(socket, isSecure ? "secureConnect" : "connect");
  socket.write(HELLO);
  await once(socket, "data");
  socket.write(frame(TYPE.settings, ACK, 0, NOTHING));
  return socket;
}

const load = JSON.parse(process.argv[2] ?? "{}") as IdleLoad;
const sockets: Socket[] = [];
while (sockets.length < load.connections) {
  const count = Math.min(BATCH, load.connections - sockets.length);
  sockets.push(...(await Promise.all(Array.from({ length: count }, () => open(load)))));
}
console.log("open");
