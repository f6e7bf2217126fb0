// A transport without sockets: every call waits until the test settles it.
import { IdmintError } from "@idmint/core";
import type {
  AllocateSegmentRequest,
  AllocateSegmentResponse,
  GenerateIdsRequest,
  GenerateIdsResponse,
  ReleaseSegmentRequest,
  ReleaseSegmentResponse,
} from "@idmint/proto";
import { FakeTime } from "@idmint/testkit";
import type { Transport } from "../src/channel.ts";
import { BufferedIdClient, type ClientPorts } from "../src/client.ts";
import type { IdClientOptions } from "../src/index.ts";

interface PendingCall<Q, A> {
  readonly endpoint: number;
  readonly request: Q;
  readonly timeoutMs: number;
  readonly answer: (response: A) => void;
  readonly fail: (error: IdmintError) => void;
}

export type PendingAllocate = PendingCall<AllocateSegmentRequest, AllocateSegmentResponse>;
export type PendingGenerate = PendingCall<GenerateIdsRequest, GenerateIdsResponse>;

interface PendingProbe {
  readonly endpoint: number;
  readonly answer: (isServing: boolean) => void;
}

class FakeTransport implements Transport {
  readonly pending: PendingAllocate[] = [];
  readonly generating: PendingGenerate[] = [];
  readonly probes: PendingProbe[] = [];
  readonly released: { readonly endpoint: number; readonly request: ReleaseSegmentRequest }[] = [];
  releaseOutcome: () => Promise<ReleaseSegmentResponse> = () =>
    Promise.resolve({ reclaimedCount: 0 });
  isClosed = false;

  allocate(
    endpoint: number,
    request: AllocateSegmentRequest,
    timeoutMs: number,
  ): Promise<AllocateSegmentResponse> {
    return new Promise((resolve, reject) => {
      this.pending.push({ endpoint, request, timeoutMs, answer: resolve, fail: reject });
    });
  }

  generate(
    endpoint: number,
    request: GenerateIdsRequest,
    timeoutMs: number,
  ): Promise<GenerateIdsResponse> {
    return new Promise((resolve, reject) => {
      this.generating.push({ endpoint, request, timeoutMs, answer: resolve, fail: reject });
    });
  }

  release(endpoint: number, request: ReleaseSegmentRequest): Promise<ReleaseSegmentResponse> {
    this.released.push({ endpoint, request });
    return this.releaseOutcome();
  }

  isServing(endpoint: number): Promise<boolean> {
    return new Promise((resolve) => {
      this.probes.push({ endpoint, answer: resolve });
    });
  }

  close(): void {
    this.isClosed = true;
    const error = new IdmintError("SERVER_UNAVAILABLE", "cancelled");
    for (const call of this.pending.splice(0)) call.fail(error);
    for (const call of this.generating.splice(0)) call.fail(error);
    for (const probe of this.probes.splice(0)) probe.answer(false);
  }
}

export interface FakeWorld {
  readonly client: BufferedIdClient;
  readonly transport: FakeTransport;
  readonly time: FakeTime;
  /** Runs the ticker once. */
  readonly tick: () => void;
}

/** A client in a world where nothing moves by itself. */
export function fakeWorld(options: IdClientOptions, random: () => number = () => 0.5): FakeWorld {
  const transport = new FakeTransport();
  const time = new FakeTime();
  const tickers = new Set<() => void>();
  const ports: ClientPorts = {
    transport: () => transport,
    runtime: {
      clock: time,
      timers: time,
      random,
      afterTurn: (run) => void setImmediate(run),
      every: (_periodMs, run) => {
        tickers.add(run);
        return () => tickers.delete(run);
      },
      processId: () => 1,
      isBuildingSnapshot: () => false,
      close: () => {},
    },
  };
  return {
    client: new BufferedIdClient(options, ports),
    transport,
    time,
    tick: () => {
      for (const run of tickers) run();
    },
  };
}

/** Lets everything that is due run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
