import type { Socket } from "node:net";
import { IdmintError } from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import { expect, test } from "vitest";
import type { DoorName } from "../../src/processes/messages.ts";
import type { ServerEvent } from "../../src/service/events.ts";
import type { ProcessListener, ProcessPort } from "../../src/processes/spawned-process.ts";
import type { FiguresRequest } from "../../src/service/figures/fleet.ts";
import type { MetricSnapshot } from "../../src/telemetry/metrics/table.ts";
import { Processes } from "../../src/processes/processes.ts";

class FakeProcess implements ProcessPort {
  readonly pid = 1;
  readonly listener: ProcessListener;
  state = "SERVING";
  reason = "";
  open = 0;
  isReady = true;
  isSilent = false;
  told: string[] = [];
  metrics: MetricSnapshot | undefined;
  counted: Uint8Array | undefined;

  constructor(listener: ProcessListener) {
    this.listener = listener;
  }

  hand(_socket: Socket, _door: DoorName, onClosed: () => void): () => void {
    this.open++;
    return () => {
      this.open--;
      onClosed();
    };
  }

  async collect(): Promise<MetricSnapshot | undefined> {
    return this.metrics;
  }

  async figures({ tag }: FiguresRequest): Promise<Uint8Array | undefined> {
    this.told.push(`figures of ${tag}`);
    return this.counted;
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
  const spawned: FakeProcess[][] = Array.from({ length: count }, () => []);
  const events: ServerEvent[] = [];
  let isStopping = false;
  const processes = new Processes(
    { count, startLimitMs: 60_000, stopLimitMs: 5_000 },
    {
      spawn: (at, listener) => {
        const process = new FakeProcess(listener);
        spawned[at]!.push(process);
        return process;
      },
      metrics: () => Promise.reject(new Error("none here")),
      settle: async (_place, storeId) => storeId,
      entered: () => undefined,
      onServing: () => undefined,
      onStopping: () => (isStopping = true),
      clock: time,
      timers: time,
      random: () => 0,
      emit: (event) => events.push(event),
    },
  );
  const now = (at: number): FakeProcess => spawned[at]!.at(-1)!;
  return { processes, time, spawned, events, now, isStopping: () => isStopping };
}

async function started(count = 2) {
  const it = made(count);
  const start = it.processes.start();
  for (let at = 0; at < count; at++) it.now(at).listener.onServing();
  await start;
  return it;
}

/** Hands a connection over, and answers whether a process took it. */
function hand(processes: Processes, door: DoorName): boolean {
  return processes.hand({} as Socket, door, () => undefined) !== undefined;
}

test("they are ready when one is, and whole when all are", async () => {
  const { processes, now } = await started();
  expect(processes.status()).toEqual({
    ready: true,
    state: "SERVING",
    processes: { total: 2, ready: 2 },
  });
  now(0).isReady = false;
  expect(processes.status()).toMatchObject({
    ready: true,
    state: "DEGRADED",
    processes: { ready: 1 },
  });
  now(1).isSilent = true;
  expect(processes.status()).toMatchObject({ ready: false, state: "DEGRADED" });
  now(1).isSilent = false;
  now(0).isReady = true;
  now(0).state = "DEGRADED";
  expect(processes.status()).toMatchObject({ ready: true, state: "DEGRADED" });
});

test("a process that falls is started again, and gets no connection meanwhile", async () => {
  const { processes, time, spawned, events, now } = await started();
  now(0).end(new Error("it fell"));
  expect(events.at(-1)).toMatchObject({ type: "process-ended", process: 1, restartInMs: 50 });
  for (let connection = 0; connection < 4; connection++) expect(hand(processes, "grpc")).toBe(true);
  expect(now(1).open).toBe(4);
  time.advance(49);
  expect(spawned[0]).toHaveLength(1);
  time.advance(1);
  expect(spawned[0]).toHaveLength(2);
  expect(hand(processes, "grpc")).toBe(true);
  expect(now(1).open).toBe(5);
  now(0).listener.onServing();
  for (let connection = 0; connection < 5; connection++) hand(processes, "grpc");
  expect([now(0).open, now(1).open]).toEqual([5, 5]);
});

test("a connection of HTTP goes to no process that is silent", async () => {
  const { processes, now } = await started();
  now(0).isSilent = true;
  for (let connection = 0; connection < 3; connection++) {
    expect(hand(processes, "http")).toBe(true);
  }
  expect([now(0).open, now(1).open]).toEqual([0, 3]);
  now(1).isSilent = true;
  expect(hand(processes, "http")).toBe(false);
  expect(hand(processes, "grpc")).toBe(true);
});

test("a process is told what probes are told of all of them", async () => {
  const { now } = await started();
  now(0).isReady = false;
  const { onProbe } = now(0).listener;
  const processes = { total: 2, ready: 1 };
  expect(await onProbe("ready")).toEqual({ ready: { ready: true, state: "DEGRADED", processes } });
  expect(await onProbe("metrics")).toEqual({});
});

test("a start fails with the error of the process that failed, when the others are gone", async () => {
  const { processes, now, spawned } = made();
  const start = processes.start();
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

test("a process that hangs as it starts is killed, and ends the start", async () => {
  const { processes, time, now } = made();
  const start = processes.start().catch((error: unknown) => error);
  now(0).listener.onServing();
  time.advance(60_000);
  expect([now(0).told, now(1).told]).toEqual([[], ["kill"]]);
  now(1).listener.onEnd({ code: null, signal: "SIGKILL", error: undefined });
  now(0).end();
  expect(String(await start)).toContain("process 2 ended by SIGKILL before it took calls");
  expect(time.pending).toBe(0);
});

test("all are told to stop at once, and it is over when the last has ended", async () => {
  const { processes, time, now, isStopping } = await started(3);
  now(2).end();
  const closed = processes.close();
  expect([now(0).told, now(1).told, isStopping()]).toEqual([["drain"], ["drain"], true]);
  expect(processes.status()).toMatchObject({ ready: false, state: "DRAINING" });
  // Those that drain answer for themselves that they do.
  expect(hand(processes, "grpc")).toBe(true);
  now(0).end();
  now(1).end();
  await closed;
  expect(hand(processes, "grpc")).toBe(false);
  expect(time.pending).toBe(0);
});

test("whoever does not stop in time is killed, and that is told", async () => {
  const { processes, time, now } = await started();
  const closed = processes.close().catch((error: unknown) => error);
  now(0).end();
  time.advance(4_999);
  expect(now(1).told).toEqual(["drain"]);
  time.advance(1);
  expect([now(0).told, now(1).told]).toEqual([["drain"], ["drain", "kill"]]);
  now(1).listener.onEnd({ code: null, signal: "SIGKILL", error: undefined });
  expect(String(await closed)).toContain("did not stop in time were killed: 1;");
});

test("they can be stopped while they start", async () => {
  const { processes, now } = made();
  const start = processes.start().catch((error: unknown) => error);
  const closed = processes.close();
  now(0).end();
  now(1).end();
  await closed;
  expect(await start).toMatchObject({ reason: "CALL_CANCELLED" });
});

test("a process hears the figures of the others that tell them, and none that hangs is asked", async () => {
  const { now } = await started(4);
  const counted = [1, 2, 3, 4].map((at) => Uint8Array.of(at));
  for (const at of [0, 1, 2]) now(at).counted = counted[at];
  now(2).isSilent = true;
  const told = await now(0).listener.onFigures({ tag: "orders", seconds: 5 }, 100);
  expect(told).toEqual([counted[1]]);
  expect([0, 1, 2, 3].map((at) => now(at).told)).toEqual([
    [],
    ["figures of orders"],
    [],
    ["figures of orders"],
  ]);
});
