import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Listener } from "../../src/doors/listener.ts";

test("a newcomer of another address takes the place of who holds all", async () => {
  const refused: string[] = [];
  const listener = new Listener((socket) => socket.resume(), {
    host: "127.0.0.1",
    port: 0,
    maxConnections: 4,
    prefaceTimeoutMs: 60_000,
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
