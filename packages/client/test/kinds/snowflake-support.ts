// A tag of kind snowflake against the transport without sockets, and a registry that decides as the servers' do.
import {
  decode,
  IdmintError,
  type RenewedWorkerLease,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import { isFree, leasedWorker, renewedWorker, type Worker } from "@idmint/core/server";
import {
  ClockPolicy,
  type LeaseWorkerResponse,
  type RenewWorkerLeaseResponse,
  type SnowflakeKind as WireKind,
  WorkerRegistry,
} from "@idmint/proto";
import type { IdTag } from "../../src/index.ts";
import { type FakeWorld, fakeWorld, settle, WALL_START_MS } from "../fake-transport.ts";
import { learn, wrongKind } from "./uncached-support.ts";
import { UNTOLD } from "../support.ts";

const second = (seconds: number) => ({ seconds: BigInt(seconds), nanos: 0 });
const millis = (ms: number) => ({ seconds: 0n, nanos: ms * 1_000_000 });

export class FakeRegistry {
  readonly rows: Worker[] = [];
  readonly #world: FakeWorld;
  kind: SnowflakeKind;
  epoch = 1n;
  /** What it answers to every call instead. */
  refusal: IdmintError | undefined;
  /** Leaves calls without an answer. */
  isSilent = false;
  leases = 0;
  renewals = 0;

  constructor(world: FakeWorld, kind: Partial<SnowflakeKind> = {}) {
    this.#world = world;
    this.kind = {
      kind: "snowflake",
      layout: SNOWFLAKE_PRESETS["41-10-12"],
      dataCenter: 0,
      clockPolicy: "REFUSE",
      clockWaitMs: 5,
      registry: "STORE",
      ...kind,
    };
  }

  get layout(): SnowflakeLayout {
    return this.kind.layout;
  }

  /** The registry's own clock, which is right. */
  now(): number {
    return WALL_START_MS + this.#world.time.now();
  }

  /** Answers whatever is asked, until nothing is. */
  async serve(): Promise<void> {
    const { transport } = this.#world;
    for (;;) {
      await settle();
      const { leasing, renewing } = transport;
      if (this.isSilent || leasing.length + renewing.length === 0) return;
      for (const call of leasing.splice(0)) {
        this.leases++;
        this.#settle(call, () => this.#lease(call.request));
      }
      for (const call of renewing.splice(0)) {
        this.renewals++;
        this.#settle(call, () => this.#renew(call.request));
      }
    }
  }

  /** Lets time pass, a tenth of a second at a time, while the registry answers. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      this.#world.time.advance(Math.min(100, left));
      await this.serve();
    }
  }

  #settle<A>(
    call: { answer: (response: A) => void; fail: (error: IdmintError) => void },
    decide: () => A,
  ): void {
    if (this.refusal !== undefined) {
      call.fail(this.refusal);
      return;
    }
    try {
      call.answer(decide());
    } catch (thrown) {
      call.fail(IdmintError.from(thrown));
    }
  }

  #lease(request: {
    tag: string;
    instance: string;
    dataCenter?: number | undefined;
  }): LeaseWorkerResponse {
    const { kind } = this;
    const now = this.now();
    const dataCenter = request.dataCenter ?? kind.dataCenter;
    const rows = this.rows.filter((row) => row.dataCenter === dataCenter);
    const own = rows.find(({ instance }) => instance === request.instance);
    const free = rows
      .filter((row) => isFree(row, now))
      .toSorted((a, b) => a.expiresAtMs - b.expiresAtMs)[0];
    const wish = { ...request, dataCenter, reserveAheadMs: 3_000 };
    const pool = { layout: kind.layout, dataCenter, closedUntilMs: 0 };
    const candidates = { own, used: rows.length, free };
    const { row, answer } = leasedWorker(candidates, wish, pool, now);
    this.#save(row);
    const { workerId, notBeforeMs } = answer;
    const place = { dataCenter, workerId, notBeforeMs: BigInt(notBeforeMs) };
    return { ...this.#answer(answer), ...place, snowflake: this.wire() };
  }

  #renew(request: {
    tag: string;
    dataCenter: number;
    workerId: number;
    token: bigint;
    reserveUntilMs: bigint;
    extension: number;
  }): RenewWorkerLeaseResponse {
    const { dataCenter, workerId } = request;
    const old = this.rows.find((row) => row.dataCenter === dataCenter && row.workerId === workerId);
    const renewal = {
      ...request,
      reserveUntilMs: Number(request.reserveUntilMs),
      reserveAheadMs: 3_000,
    };
    const rules = { layout: this.kind.layout, closedUntilMs: 0 };
    const { row, answer } = renewedWorker(old, renewal, rules, this.now());
    this.#save(row);
    return this.#answer(answer);
  }

  #save(row: Worker): void {
    const at = this.rows.findIndex(
      ({ dataCenter, workerId }) => dataCenter === row.dataCenter && workerId === row.workerId,
    );
    if (at < 0) this.rows.push(row);
    else this.rows[at] = row;
  }

  #answer(answer: Omit<RenewedWorkerLease, "epoch">): RenewWorkerLeaseResponse {
    return {
      token: answer.token,
      ttl: millis(0),
      extension: answer.extension,
      reservedUntilMs: BigInt(answer.reservedUntilMs),
      nowMs: BigInt(this.now()),
      epoch: this.epoch,
      ...UNTOLD,
    };
  }

  /** Settings as a server answers them. */
  wire(): WireKind {
    const { layout, dataCenter, clockPolicy, clockWaitMs } = this.kind;
    const { timeUnitMs, timeOriginMs, ...bits } = layout;
    return {
      layout: {
        ...bits,
        timeUnit: timeUnitMs === 1_000 ? second(1) : millis(timeUnitMs),
        timeOrigin: new Date(timeOriginMs),
      },
      dataCenter,
      clockPolicy: ClockPolicy[clockPolicy],
      clockWait: millis(clockWaitMs),
      registry: WorkerRegistry.STORE,
      allowShortLife: false,
      endTime: undefined,
      idsPerSecond: 0n,
      redisServer: "",
    };
  }
}

export interface LeasedWorld extends FakeWorld {
  readonly registry: FakeRegistry;
  readonly tag: IdTag;
  readonly first: bigint;
}

/** A world whose tag "t" is known to be of kind snowflake, has a worker id, and made an id. */
export async function leasedWorld(
  options: object = {},
  kind: Partial<SnowflakeKind> = {},
): Promise<LeasedWorld> {
  const world = fakeWorld({ address: "a:1", ...options });
  const registry = new FakeRegistry(world, kind);
  const tag = world.client.tag("t");
  const first = tag.next();
  await learn(world, "snowflake");
  await registry.serve();
  return { ...world, registry, tag, first: await first };
}

/** Refuses the only AllocateSegment in flight because of the tag's kind. */
export async function refuseAllocation({ transport }: FakeWorld, kind: string): Promise<void> {
  await settle();
  for (const call of transport.pending.splice(0)) call.fail(wrongKind(kind));
  await settle();
}

export function workerOf({ registry }: LeasedWorld, id: bigint): number {
  return decode(registry.layout, id).worker;
}
