import type { Socket } from "node:net";
import { IdmintError } from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import type { ServerEvent } from "../../src/service/events.ts";
import type { WorkerListener, WorkerPort } from "../../src/processes/spawned-process.ts";
import { Workers } from "../../src/processes/processes.ts";

class FakeWorker implements WorkerPort {
  readonly pid = 1;
  readonly listener: WorkerListener;
  state = "SERVING";
  open = 0;
  isReady = true;
  isSilent = false;
  told: string[] = [];

  constructor(listener: WorkerListener) {
    this.listener = listener;
  }

  hand(): void {
    this.open++;
  }

  drain(): void {
    this.told.push("drain");
  }

  kill(): void {
    this.told.push("kill");
  }

  end(error?: Error): void {
    this.listener.onEnd({ code: error === undefined ? 0 : 1, signal: null, error });
  }
}

function made(count = 2) {
  const time = new FakeTime();
  const spawned: FakeWorker[][] = Array.from({ length: count }, () => []);
  const events: ServerEvent[] = [];
  let isStopping = false;
  const workers = new Workers(
    { count, stopLimitMs: 5_000 },
    {
      spawn: (at, listener) => {
        const worker = new FakeWorker(listener);
        spawned[at]!.push(worker);
        return worker;
      },
      onServing: () => undefined,
      onStopping: () => (isStopping = true),
      clock: time,
      timers: time,
      random: () => 0,
      emit: (event) => events.push(event),
    },
  );
  const now = (at: number): FakeWorker => spawned[at]!.at(-1)!;
  return { workers, time, spawned, events, now, isStopping: () => isStopping };
}

async function started(count = 2) {
  const it = made(count);
  const start = it.workers.start();
  for (let at = 0; at < count; at++) it.now(at).listener.onServing();
  await start;
  return it;
}

const socket = {} as Socket;

test("they are ready when one is, and whole when all are", async () => {
  const { workers, now } = await started();
  expect(workers.status()).toEqual({
    ready: true,
    state: "SERVING",
    workers: { total: 2, ready: 2 },
  });
  now(0).isReady = false;
  expect(workers.status()).toMatchObject({ ready: true, state: "DEGRADED", workers: { ready: 1 } });
  now(1).isSilent = true;
  expect(workers.status()).toMatchObject({ ready: false, state: "DEGRADED" });
  now(1).isSilent = false;
  now(0).isReady = true;
  now(0).state = "DEGRADED";
  expect(workers.status()).toMatchObject({ ready: true, state: "DEGRADED" });
});

test("a worker that falls is started again, and gets no connection meanwhile", async () => {
  const { workers, time, spawned, events, now } = await started();
  now(0).end(new Error("it fell"));
  expect(events.at(-1)).toMatchObject({ type: "worker-ended", worker: 1, restartInMs: 50 });
  for (let connection = 0; connection < 4; connection++) expect(workers.hand(socket)).toBe(true);
  expect(now(1).open).toBe(4);
  time.advance(49);
  expect(spawned[0]).toHaveLength(1);
  time.advance(1);
  expect(spawned[0]).toHaveLength(2);
  expect(workers.hand(socket)).toBe(true);
  expect(now(1).open).toBe(5);
  now(0).listener.onServing();
  for (let connection = 0; connection < 5; connection++) workers.hand(socket);
  expect([now(0).open, now(1).open]).toEqual([5, 5]);
});

test("a start fails with the error of the worker that failed, when the others are gone", async () => {
  const { workers, now, spawned } = made();
  const start = workers.start();
  let settled = false;
  const outcome = start.catch((error: unknown) => error).finally(() => (settled = true));
  const error = new IdmintError("SCHEMA_MISMATCH", "no schema");
  now(1).end(error);
  await Promise.resolve();
  expect(now(0).told).toEqual(["drain"]);
  expect(settled).toBe(false);
  now(0).end();
  expect(await outcome).toBe(error);
  expect(spawned.map(({ length }) => length)).toEqual([1, 1]);
});

test("a worker that hangs as it starts is killed, and ends the start", async () => {
  const { workers, time, now } = made();
  const start = workers.start().catch((error: unknown) => error);
  now(0).listener.onServing();
  time.advance(60_000);
  expect([now(0).told, now(1).told]).toEqual([[], ["kill"]]);
  now(1).listener.onEnd({ code: null, signal: "SIGKILL", error: undefined });
  now(0).end();
  expect(String(await start)).toContain("worker 2 ended by SIGKILL before it took calls");
  expect(time.pending).toBe(0);
});

test("all are told to stop at once, and it is over when the last has ended", async () => {
  const { workers, time, now, isStopping } = await started(3);
  now(2).end();
  const closed = workers.close();
  expect([now(0).told, now(1).told, isStopping()]).toEqual([["drain"], ["drain"], true]);
  expect(workers.status()).toMatchObject({ ready: false, state: "DRAINING" });
  // Those that drain answer for themselves that they do.
  expect(workers.hand(socket)).toBe(true);
  now(0).end();
  now(1).end();
  await closed;
  expect(workers.hand(socket)).toBe(false);
  expect(time.pending).toBe(0);
});

test("whoever does not stop in time is killed, and that is told", async () => {
  const { workers, time, now } = await started();
  const closed = workers.close().catch((error: unknown) => error);
  now(0).end();
  time.advance(4_999);
  expect(now(1).told).toEqual(["drain"]);
  time.advance(1);
  expect([now(0).told, now(1).told]).toEqual([["drain"], ["drain", "kill"]]);
  now(1).listener.onEnd({ code: null, signal: "SIGKILL", error: undefined });
  expect(String(await closed)).toContain("did not stop in time were killed: 1;");
});

test("they can be stopped while they start", async () => {
  const { workers, now } = made();
  const start = workers.start().catch((error: unknown) => error);
  const closed = workers.close();
  now(0).end();
  now(1).end();
  await closed;
  expect(await start).toMatchObject({ reason: "DRAINING" });
});
