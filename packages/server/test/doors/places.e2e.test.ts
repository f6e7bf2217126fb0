import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Listener } from "../../src/doors/listener.ts";
import { framesOf, HELLO, told } from "../fast/test-connection.ts";
import { startTest, until } from "../support.ts";

test("a newcomer of another address takes the place of who holds all", async () => {
  const refused: string[] = [];
  const listener = new Listener((socket) => socket.resume(), {
    host: "127.0.0.1",
    port: 0,
    maxConnections: 4,
    prefaceTimeoutMs: 60_000,
    areUnread: false,
    giveWay: (socket) => socket.destroy(),
    onRefused: (peer, why) => refused.push(`${peer.split(":")[0]}: ${why}`),
  });
  const port = await listener.listen();
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    listener.stop();
    listener.destroy();
  });
  const open = async (localAddress: string): Promise<Socket> => {
    const socket = connect({ host: "127.0.0.1", port, localAddress });
    sockets.push(socket);
    socket.on("error", () => undefined).resume();
    await once(socket, "connect");
    return socket;
  };
  for (let i = 0; i < 4; i += 1) await open("127.0.0.1");
  const newest = sockets[3];
  await once(await open("127.0.0.1"), "close");
  expect(refused).toEqual(["127.0.0.1: 4 connections are open already"]);

  const honest = await open("127.0.0.2");
  if (newest?.closed === false) await once(newest, "close");
  expect(refused[1]).toBe(
    "127.0.0.1: 4 connections are open already, the most of them from its address",
  );
  expect(honest.closed).toBe(false);
  expect(listener.connections).toBe(4);
});

test.each(["fast", "grpc-js"])("who loses a place is told so (%s)", async (door) => {
  const { server } = await startTest({ flags: { "grpc-door": door, "limits-connections": "3" } });
  const [host = "", port = ""] = server.grpcAddress.split(":");
  const open = (localAddress: string): { readonly bytes: () => Buffer; readonly its: Socket } => {
    const chunks: Buffer[] = [];
    const its = connect({ host, port: Number(port), localAddress });
    onTestFinished(() => void its.destroy());
    its.on("error", () => undefined).on("data", (chunk: Buffer) => chunks.push(chunk));
    its.write(HELLO);
    return { bytes: () => Buffer.concat(chunks), its };
  };
  const strangers: ReturnType<typeof open>[] = [];
  for (let i = 0; i < 3; i += 1) {
    const stranger = open("127.0.0.1");
    strangers.push(stranger);
    await until(() => stranger.bytes().length > 0);
  }
  const honest = open("127.0.0.2");
  const newest = strangers[2];
  await until(() => newest?.its.closed === true);
  const frames = framesOf(newest?.bytes() ?? Buffer.alloc(0)).map(told);
  expect(frames).toContain("GOAWAY 0 ENHANCE_YOUR_CALM");
  await until(() => honest.bytes().length > 0);
  expect(honest.its.closed).toBe(false);
  await until(() => server.counters.connections === 3);
});
