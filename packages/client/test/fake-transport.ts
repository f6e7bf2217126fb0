// A transport without sockets: every call waits until the test settles it.
import { IdmintError } from "@idmint/core";
import type {
  AllocateSegmentRequest,
  AllocateSegmentResponse,
  GenerateIdsRequest,
  GenerateIdsResponse,
  LeaseWorkerRequest,
  LeaseWorkerResponse,
  ReleaseSegmentRequest,
  ReleaseSegmentResponse,
  ReleaseWorkerLeaseRequest,
  RenewWorkerLeaseRequest,
  RenewWorkerLeaseResponse,
} from "@idmint/proto";
import { FakeTime } from "@idmint/testkit";
import { localTextMakers } from "../src/kinds/local-text-makers.ts";
import type { Transport } from "../src/servers/channel.ts";
import type { ServerList } from "../src/servers/servers-state.ts";
import { BufferedIdClient, type ClientPorts } from "../src/client.ts";
import type { IdClientOptions } from "../src/index.ts";

interface PendingCall<Q, A> {
  readonly endpoint: string;
  readonly request: Q;
  readonly timeoutMs: number;
  readonly answer: (response: A) => void;
  readonly fail: (error: IdmintError) => void;
}

export type PendingAllocate = PendingCall<AllocateSegmentRequest, AllocateSegmentResponse>;
type PendingLease = PendingCall<LeaseWorkerRequest, LeaseWorkerResponse>;
type PendingRenewal = PendingCall<RenewWorkerLeaseRequest, RenewWorkerLeaseResponse>;
export type PendingGenerate = PendingCall<GenerateIdsRequest, GenerateIdsResponse>;

/** A look at a server, and what it finds. */
interface PendingLook<A> {
  readonly endpoint: string;
  readonly answer: (found: A) => void;
}

type Identity = { readonly nodeId: string; readonly isServing: boolean } | undefined;

class FakeTransport implements Transport {
  readonly pending: PendingAllocate[] = [];
  readonly generating: PendingGenerate[] = [];
  readonly leasing: PendingLease[] = [];
  readonly renewing: PendingRenewal[] = [];
  readonly releasedLeases: { endpoint: string; request: ReleaseWorkerLeaseRequest }[] = [];
  readonly probes: PendingLook<boolean | undefined>[] = [];
  readonly proofs: PendingLook<Identity>[] = [];
  readonly listing: PendingLook<ServerList | undefined>[] = [];
  readonly forgotten: string[] = [];
  readonly released: { readonly endpoint: string; readonly request: ReleaseSegmentRequest }[] = [];
  releaseOutcome: () => Promise<ReleaseSegmentResponse> = () =>
    Promise.resolve({ reclaimedCount: 0 });
  releaseLeaseOutcome: () => Promise<object> = () => Promise.resolve({});
  isClosed = false;

  allocate(
    endpoint: string,
    request: AllocateSegmentRequest,
    timeoutMs: number,
  ): Promise<AllocateSegmentResponse> {
    return new Promise((resolve, reject) => {
      this.pending.push({ endpoint, request, timeoutMs, answer: resolve, fail: reject });
    });
  }

  generate(
    endpoint: string,
    request: GenerateIdsRequest,
    timeoutMs: number,
  ): Promise<GenerateIdsResponse> {
    return new Promise((resolve, reject) => {
      this.generating.push({ endpoint, request, timeoutMs, answer: resolve, fail: reject });
    });
  }

  release(endpoint: string, request: ReleaseSegmentRequest): Promise<ReleaseSegmentResponse> {
    this.released.push({ endpoint, request });
    return this.releaseOutcome();
  }

  lease(
    endpoint: string,
    request: LeaseWorkerRequest,
    timeoutMs: number,
  ): Promise<LeaseWorkerResponse> {
    return new Promise((resolve, reject) => {
      this.leasing.push({ endpoint, request, timeoutMs, answer: resolve, fail: reject });
    });
  }

  renewLease(
    endpoint: string,
    request: RenewWorkerLeaseRequest,
    timeoutMs: number,
  ): Promise<RenewWorkerLeaseResponse> {
    return new Promise((resolve, reject) => {
      this.renewing.push({ endpoint, request, timeoutMs, answer: resolve, fail: reject });
    });
  }

  releaseLease(endpoint: string, request: ReleaseWorkerLeaseRequest): Promise<object> {
    this.releasedLeases.push({ endpoint, request });
    return this.releaseLeaseOutcome();
  }

  isServing(endpoint: string): Promise<boolean | undefined> {
    return new Promise((resolve) => {
      this.probes.push({ endpoint, answer: resolve });
    });
  }

  identify(endpoint: string): Promise<Identity> {
    return new Promise((resolve) => {
      this.proofs.push({ endpoint, answer: resolve });
    });
  }

  listNodes(endpoint: string): Promise<ServerList | undefined> {
    return new Promise((resolve) => {
      this.listing.push({ endpoint, answer: resolve });
    });
  }

  forget(endpoint: string): void {
    this.forgotten.push(endpoint);
  }

  close(): void {
    this.isClosed = true;
    const error = new IdmintError("SERVER_UNAVAILABLE", "cancelled");
    for (const call of this.pending.splice(0)) call.fail(error);
    for (const call of this.generating.splice(0)) call.fail(error);
    for (const call of this.leasing.splice(0)) call.fail(error);
    for (const call of this.renewing.splice(0)) call.fail(error);
    for (const probe of this.probes.splice(0)) probe.answer(undefined);
    for (const proof of this.proofs.splice(0)) proof.answer(undefined);
    for (const list of this.listing.splice(0)) list.answer(undefined);
  }
}

export interface FakeWorld {
  readonly client: BufferedIdClient;
  readonly transport: FakeTransport;
  readonly time: FakeTime;
  /** By how much the wall clock is ahead of 2027-01-01 and the time that has passed. */
  readonly wall: { offsetMs: number };
  /** Runs the ticker once. */
  readonly tick: () => void;
  /** The wall clock has gone ahead by a time that no other clock counts. */
  readonly leap: () => void;
}

/** 2027-01-01. */
export const WALL_START_MS = 1_798_761_600_000;

/** A client in a world where nothing moves by itself. */
export function fakeWorld(options: IdClientOptions, random: () => number = () => 0.5): FakeWorld {
  const transport = new FakeTransport();
  const time = new FakeTime();
  const wall = { offsetMs: 0 };
  const tickers = new Set<() => void>();
  const leaps = new Set<() => void>();
  const ports: ClientPorts = {
    transport: () => transport,
    runtime: {
      clock: time,
      onLeap: (run) => leaps.add(run),
      timers: time,
      quietTimers: time,
      wallClock: () => WALL_START_MS + time.now() + wall.offsetMs,
      random,
      afterTurn: (run) => void setImmediate(run),
      every: (_periodMs, run) => {
        tickers.add(run);
        return () => tickers.delete(run);
      },
      textMakers: localTextMakers,
      processId: () => 1,
      isBuildingSnapshot: () => false,
      close: () => {},
    },
  };
  return {
    client: new BufferedIdClient(options, ports),
    transport,
    time,
    wall,
    tick: () => {
      for (const run of tickers) run();
    },
    leap: () => {
      for (const run of leaps) run();
    },
  };
}

/** Lets everything that is due run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
