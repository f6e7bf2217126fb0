import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Front } from "../../src/processes/front.ts";
import { until } from "../support.ts";

class FakeTakers {
  readonly taken: Socket[] = [];
  /** Of those that were taken, what tells that they ended, and those that gave way. */
  readonly closed: (() => void)[] = [];
  readonly gaveWay: Socket[] = [];
  takes = true;

  hand(socket: Socket, onClosed: () => void): (() => void) | undefined {
    if (!this.takes) return undefined;
    this.taken.push(socket);
    this.closed.push(onClosed);
    return () => this.gaveWay.push(socket);
  }
}

async function frontWith(takers: FakeTakers, maxConnections = 10) {
  const refused: string[] = [];
  const onRefused = (_peer: string, why: string): void => void refused.push(why);
  const front = new Front({ host: "127.0.0.1", port: 0, maxConnections, onRefused }, takers);
  const port = await front.listen();
  onTestFinished(() => {
    front.close();
    for (const socket of takers.taken) socket.destroy();
  });
  const open = (localAddress = "127.0.0.1"): { socket: Socket; isClosed: () => boolean } => {
    const socket = connect({ host: "127.0.0.1", port, localAddress });
    let closed = false;
    socket.on("error", () => undefined);
    socket.once("close", () => (closed = true));
    socket.resume();
    onTestFinished(() => void socket.destroy());
    return { socket, isClosed: () => closed };
  };
  return { front, refused, open };
}

test("a connection goes to a process with nothing read of it", async () => {
  const takers = new FakeTakers();
  const { open } = await frontWith(takers);
  open().socket.write("PRI");
  await until(() => takers.taken.length === 1);
  expect(takers.taken[0]).toMatchObject({ bytesRead: 0, readableFlowing: false });
});

test("while no process takes them connections wait, and go to the first that does", async () => {
  const takers = new FakeTakers();
  takers.takes = false;
  const { front, open } = await frontWith(takers);
  const ones = [open(), open()];
  await Promise.all(
    ones.map(({ socket }) => new Promise((resolve) => socket.once("connect", resolve))),
  );
  front.offer();
  expect(takers.taken).toEqual([]);
  takers.takes = true;
  await until(() => {
    front.offer();
    return takers.taken.length === 2;
  });
  expect(ones.map(({ isClosed }) => isClosed())).toEqual([false, false]);
});

test("nobody waits once the processes stop", async () => {
  const takers = new FakeTakers();
  takers.takes = false;
  const { front, refused, open } = await frontWith(takers);
  const waiting = open();
  await new Promise((resolve) => waiting.socket.once("connect", resolve));
  await until(() => {
    front.stopWaiting();
    return waiting.isClosed();
  });
  const late = open();
  await until(late.isClosed);
  expect(refused).toContain("no process takes it");
});

test("the limit of connections holds for all processes together", async () => {
  const takers = new FakeTakers();
  const { refused, open } = await frontWith(takers, 2);
  open();
  open();
  await until(() => takers.taken.length === 2);
  await until(open().isClosed);
  expect(refused).toEqual(["2 connections are open already"]);
});

test("above the limit, who holds more than half of the places gives way to another address", async () => {
  const takers = new FakeTakers();
  const { refused, open } = await frontWith(takers, 3);
  for (let i = 0; i < 3; i += 1) {
    open();
    await until(() => takers.taken.length === i + 1);
  }
  open("127.0.0.2");
  await until(() => takers.taken.length === 4);
  expect(takers.gaveWay).toEqual([takers.taken[2]]);
  // It holds two, and another would hold as many: nobody gives way to that.
  await until(open("127.0.0.2").isClosed);
  expect(refused).toEqual(["3 connections are open already"]);
  takers.closed[0]?.();
  // The one that gave way is told once more when it has ended.
  takers.closed[2]?.();
  open("127.0.0.3");
  await until(() => takers.taken.length === 5);
  // There was a place.
  expect(takers.gaveWay).toHaveLength(1);
});

test("a connection that waits has a place, and gives way too", async () => {
  const takers = new FakeTakers();
  takers.takes = false;
  const { front, refused, open } = await frontWith(takers, 2);
  const first = open();
  await new Promise((resolve) => first.socket.once("connect", resolve));
  const newest = open();
  await new Promise((resolve) => newest.socket.once("connect", resolve));
  const honest = open("127.0.0.2");
  await until(newest.isClosed);
  expect(refused).toEqual(["all connections are open already, the most of them from its address"]);
  takers.takes = true;
  await until(() => {
    front.offer();
    return takers.taken.length === 2;
  });
  expect([first.isClosed(), honest.isClosed()]).toEqual([false, false]);
});

test("connections that no process takes go elsewhere where there is a place for them", async () => {
  const takers = new FakeTakers();
  const otherwise: Socket[] = [];
  const front = new Front(
    {
      host: "127.0.0.1",
      port: 0,
      maxConnections: 1,
      onRefused: () => undefined,
      otherwise: (socket) => otherwise.push(socket),
    },
    takers,
  );
  const port = await front.listen();
  onTestFinished(() => {
    front.close();
    for (const socket of [...takers.taken, ...otherwise]) socket.destroy();
  });
  takers.takes = false;
  connect(port, "127.0.0.1");
  await until(() => otherwise.length === 1);
  takers.takes = true;
  connect(port, "127.0.0.1");
  await until(() => takers.taken.length === 1);
  connect(port, "127.0.0.1");
  await until(() => otherwise.length === 2);
});
