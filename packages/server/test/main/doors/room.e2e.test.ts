// A server takes no more connections than its memory has room for.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { roomFor } from "../../../src/main/doors/room.ts";
import { startTest } from "../../support.ts";

const GIB = 1_024 ** 3;
const settings = {
  limitConnections: 10_000,
  processes: 1,
  tlsCertFile: undefined,
  httpAddress: { host: "127.0.0.1", port: 8_080 },
  httpTls: "off",
} as const;
const secure = { ...settings, tlsCertFile: "server.crt" } as const;

test.each([
  ["as many as are configured, where there is room", 1 * GIB, settings, 10_000],
  ["fewer in a small container", 320 * 1_024 ** 2, settings, 2_730],
  ["fewer over TLS", 512 * 1_024 ** 2, secure, 3_449],
  ["fewer when HTTP is over TLS too", 512 * 1_024 ** 2, { ...secure, httpTls: "on" }, 2_048],
  ["more without HTTP", 512 * 1_024 ** 2, { ...secure, httpAddress: "none" }, 4_096],
  ["fewer with several processes", 1 * GIB, { ...secure, processes: 3 }, 3_449],
  ["a few in any case", 1_024, settings, 64],
  [
    "no more than configured, however little that is",
    1_024,
    { ...settings, limitConnections: 3 },
    3,
  ],
] as const)("%s", (_name, memoryBytes, its, expected) => {
  expect(roomFor(memoryBytes, its)).toBe(expected);
});

test("connections above the room are refused, and the log says why there are few", async () => {
  const { server, events } = await startTest({ parts: { memoryBytes: 1_024 } });
  expect(events).toContainEqual({
    type: "connections-cut",
    limit: 64,
    wanted: 10_000,
    memoryMb: 0,
  });
  const [host = "", port = ""] = server.grpcAddress.split(":");
  const open = async (): Promise<Socket> => {
    const socket = connect({ host, port: Number(port) });
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => undefined).resume();
    await once(socket, "connect");
    return socket;
  };
  const sockets = await Promise.all(Array.from({ length: 64 }, open));
  await once(await open(), "close");
  expect(sockets.filter(({ closed }) => closed)).toEqual([]);
  expect(events).toContainEqual(
    expect.objectContaining({ type: "connection-refused", why: "64 connections are open already" }),
  );
});
