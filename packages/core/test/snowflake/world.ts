import {
  createMadeTimes,
  decode,
  IdmintError,
  idsOf,
  type MadeSnowflakes,
  type Segment,
  type SnowflakeEvent,
  type SnowflakeLayout,
  SnowflakeSource,
  timeOf,
  type WorkerLease,
  type WorkerLeaseKey,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import {
  isFree,
  leasedWorker,
  releasedWorker,
  renewedWorker,
  type Worker,
  type WorkerRegistry,
} from "@idmint/core/server";

/** What happens to one call to the registry. `lost`: it never arrived; `unanswered`: it was done, and nobody heard. */
export interface Fate {
  readonly way: "ok" | "lost" | "unanswered";
  readonly toMs: number;
  readonly backMs: number;
}

interface Happening {
  readonly at: number;
  readonly host: Host | undefined;
  readonly run: () => void;
}

/** Time reserved by one answer of the registry for one life of a host. */
interface Reserved {
  readonly host: Host;
  readonly fromMs: number;
  untilMs: number;
}

const START_MS = 1_800_000_000_000;

/** One true time, and everything that happens in it: hosts with clocks of their own, one registry, a network between. */
export class World {
  readonly layout: SnowflakeLayout;
  readonly kind: SnowflakeKind;
  readonly #fates: readonly Fate[];
  #calls = 0;
  /** Milliseconds since the beginning. */
  now = 0;
  epoch = 1n;
  /** Of the tag's floor. */
  closedUntilMs = 0;
  /** By how much the registry's clock is ahead. */
  registryOffsetMs = 0;
  /** What the registry answers to every call. */
  refusal: IdmintError | undefined;
  #happenings: Happening[] = [];
  rows = new Map<string, Worker>();
  #savedRows = new Map<string, Worker>();
  /** Whether the registry went back, and nobody sees it: then only what one host makes is held against what it made. */
  #wentBack = false;
  /** By data center, worker id and extension. */
  readonly reserved = new Map<string, Reserved[]>();
  readonly ids = new Map<bigint, string>();
  readonly faults: string[] = [];

  constructor(kind: SnowflakeKind, fates: readonly Fate[] = []) {
    this.kind = kind;
    this.layout = kind.layout;
    this.#fates = fates;
  }

  registryNow(): number {
    return START_MS + this.now + this.registryOffsetMs;
  }

  trueTime(): number {
    return START_MS + this.now;
  }

  at(at: number, host: Host | undefined, run: () => void): () => void {
    const happening = { at, host, run };
    this.#happenings.push(happening);
    return () => {
      this.#happenings = this.#happenings.filter((other) => other !== happening);
    };
  }

  /** Lets time go on, and runs what comes due; what belongs to a host that is paused waits for it. */
  async advance(byMs: number): Promise<void> {
    const until = this.now + byMs;
    await settle();
    for (;;) {
      let next: Happening | undefined;
      for (const one of this.#happenings) {
        if (one.at > until || one.host?.paused === true) continue;
        if (next === undefined || one.at < next.at) next = one;
      }
      if (next === undefined) break;
      const happening = next;
      this.#happenings = this.#happenings.filter((other) => other !== happening);
      this.now = Math.max(this.now, happening.at);
      if (happening.host?.dead !== true) happening.run();
      await settle();
    }
    this.now = until;
  }

  /** What the registry goes back to. */
  save(): void {
    this.#savedRows = new Map(this.rows);
  }

  goBack(): void {
    this.rows = new Map(this.#savedRows);
    this.#wentBack = true;
  }

  /** The registry as a host sees it: over a network that loses and delays. */
  registryFor(host: Host): WorkerRegistry {
    return {
      leaseWorker: (request) => this.#call(host, () => this.#lease(host, request)),
      renewWorker: (renewal) => this.#call(host, () => this.#renew(host, renewal)),
      releaseWorker: (key) => this.#call(host, () => this.#release(key)),
      listWorkers: async () => [],
    };
  }

  #call<T>(host: Host, run: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const fates = this.#fates;
    const fate: Fate = fates[this.#calls++ % Math.max(1, fates.length)] ?? {
      way: "ok",
      toMs: 0,
      backMs: 0,
    };
    const answer = (act: () => void): void => {
      this.at(this.now + fate.backMs, host, act);
    };
    const unknown = new IdmintError("STORE_UNAVAILABLE", "no answer", { retryAfterMs: 1 });
    this.at(this.now + fate.toMs, undefined, () => {
      if (fate.way === "lost") return answer(() => reject(unknown));
      try {
        if (this.refusal !== undefined) throw this.refusal;
        const value = run();
        answer(() => (fate.way === "ok" ? resolve(value) : reject(unknown)));
      } catch (error) {
        answer(() => reject(fate.way === "ok" ? (error as Error) : unknown));
      }
    });
    return promise;
  }

  #lease(host: Host, request: WorkerLeaseRequest): WorkerLease {
    const nowMs = this.registryNow();
    const dataCenter = request.dataCenter ?? this.kind.dataCenter;
    const rows = [...this.rows.values()].filter((row) => row.dataCenter === dataCenter);
    const free = rows
      .filter((row) => isFree(row, nowMs))
      .toSorted((a, b) => a.expiresAtMs - b.expiresAtMs)[0];
    const own = rows.find((row) => row.instance === request.instance);
    const candidates = { own, used: rows.length, free };
    const { closedUntilMs } = this;
    const pool = { layout: this.layout, dataCenter, closedUntilMs };
    const { row, answer } = leasedWorker(candidates, request, pool, nowMs);
    this.#write(row);
    this.#reserve(host, row, answer.notBeforeMs, answer.reservedUntilMs);
    return { ...answer, epoch: this.epoch };
  }

  #renew(host: Host, renewal: WorkerRenewal) {
    const before = this.rows.get(`${renewal.dataCenter}/${renewal.workerId}`);
    const { row, answer } = renewedWorker(before, renewal, this, this.registryNow());
    this.#write(row);
    const isNew = before?.extension !== row.extension;
    if (isNew) this.#reserve(host, row, this.layout.timeOriginMs, row.reservedUntilMs);
    else if (!this.#wentBack) {
      const last = this.reserved.get(keyOf(row))?.at(-1);
      if (last?.host !== host) this.faults.push(`renewed by ${host.name}, who does not hold it`);
      if (last !== undefined) last.untilMs = row.reservedUntilMs;
    }
    return { ...answer, epoch: this.epoch };
  }

  #release(key: WorkerLeaseKey): void {
    const row = this.rows.get(`${key.dataCenter}/${key.workerId}`);
    this.#write(releasedWorker(row, key, this.registryNow()));
  }

  #write(row: Worker): void {
    const key = `${row.dataCenter}/${row.workerId}`;
    if (row.workerId >= 2 ** this.layout.workerBits) this.faults.push(`worker id ${row.workerId}`);
    const old = this.rows.get(key);
    if (old !== undefined) {
      const isBelow =
        row.extension < old.extension ||
        (row.extension === old.extension && row.reservedUntilMs < old.reservedUntilMs);
      if (isBelow) this.faults.push(`the reservation of ${key} fell`);
      if (row.token <= old.token) this.faults.push(`the token of ${key} did not rise`);
    }
    this.rows.set(key, row);
  }

  #reserve(host: Host, row: Worker, fromMs: number, untilMs: number): void {
    if (this.#wentBack) return;
    const all = this.reserved.get(keyOf(row)) ?? [];
    const last = all.at(-1);
    if (last !== undefined && fromMs <= last.untilMs) {
      this.faults.push(`${keyOf(row)} reserved from ${fromMs}, and up to ${last.untilMs} before`);
    }
    all.push({ host, fromMs, untilMs });
    this.reserved.set(keyOf(row), all);
  }

  /** Checks an id that a host made: never made before, and wholly within what was reserved for that host. */
  record(host: Host, id: bigint): void {
    const parts = decode(this.layout, id);
    const before = this.ids.get(id);
    if (before === host.name || (before !== undefined && !this.#wentBack))
      this.faults.push(`${id} made by ${before}, then by ${host.name}`);
    this.ids.set(id, host.name);
    if (this.#wentBack) return;
    const { dataCenter, worker, extension, tick } = parts;
    const from = timeOf(this.layout, tick);
    const to = timeOf(this.layout, tick + 1) - 1;
    const all = this.reserved.get(`${dataCenter}/${worker}/${extension}`) ?? [];
    const isReserved = all.some(
      (one) => one.host === host && one.fromMs <= from && to <= one.untilMs,
    );
    if (!isReserved) this.faults.push(`${host.name} made ${id} of time not reserved for it`);
  }
}

function keyOf(row: Worker): string {
  return `${row.dataCenter}/${row.workerId}/${row.extension}`;
}

/** Lets every promise that can settle do so. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await Promise.resolve();
}

let lives = 0;

/** One life of a process: its clocks, and the source under test. */
export class Host {
  readonly name: string;
  readonly world: World;
  readonly source: SnowflakeSource;
  readonly events: SnowflakeEvent[] = [];
  readonly refusals: IdmintError[] = [];
  /** By how much its wall clock is ahead of the true time now, which changes with a rate that is not 1. */
  #offsetMs: number;
  #rate = 1;
  #rateFrom: number;
  /** For how long its monotonic clock stood still. */
  #stoodMs = 0;
  #pausedAt = 0;
  paused = false;
  dead = false;
  /** The last id by worker and extension. */
  readonly #last = new Map<string, bigint>();

  constructor(
    world: World,
    instance: string,
    offsetMs = 0,
    reserveAheadMs = 3_000,
    made: MadeSnowflakes = createMadeTimes(),
  ) {
    this.world = world;
    this.name = `${instance} (${++lives})`;
    this.#offsetMs = offsetMs;
    this.#rateFrom = world.now;
    const { kind } = world;
    const options = { tag: "t", kind, instance, dataCenter: undefined, reserveAheadMs };
    this.source = new SnowflakeSource(
      { ...options, maxWaiters: 5, made },
      {
        registry: world.registryFor(this),
        clock: { now: () => world.now - this.#stoodMs },
        wallClock: () => this.wall(),
        timers: { after: (ms, run) => world.at(world.now + ms, this, run) },
        random: () => 0.5,
        onEvent: (event) => this.events.push(event),
      },
    );
    this.source.start();
  }

  /** Whole milliseconds, as most clocks have them. */
  wall(): number {
    const { world } = this;
    const gained = (world.now - this.#rateFrom) * (this.#rate - 1);
    return Math.floor(world.trueTime() + this.#offsetMs + gained);
  }

  stepClock(byMs: number): void {
    this.#offsetMs += byMs;
  }

  setClock(offsetMs: number): void {
    this.#offsetMs = offsetMs;
    this.#rateFrom = this.world.now;
  }

  setRate(rate: number): void {
    this.#offsetMs += (this.world.now - this.#rateFrom) * (this.#rate - 1);
    this.#rateFrom = this.world.now;
    this.#rate = rate;
  }

  pause(): void {
    if (this.paused) return;
    this.paused = true;
    this.#pausedAt = this.world.now;
  }

  /** `frozen`: its monotonic clock stood still meanwhile, as that of a suspended machine. */
  resume(frozen: boolean): void {
    if (!this.paused) return;
    this.paused = false;
    if (frozen) this.#stoodMs += this.world.now - this.#pausedAt;
  }

  /** Ids at once, one by one; how many there were. */
  make(count: number): number {
    if (this.paused || this.dead) return 0;
    for (let made = 0; made < count; made++) {
      const id = this.#guard(() => this.source.tryNext());
      if (id === undefined) return made;
      this.#order(id);
      this.world.record(this, id);
    }
    return count;
  }

  /** Ids as segments, now or later. */
  take(count: number): void {
    if (this.paused || this.dead) return;
    const taken = this.#guard(() => this.source.take(count));
    if (taken === undefined) return;
    if (taken instanceof Promise) {
      void taken.then(
        (segments) => this.#received(segments, count),
        (error: unknown) => this.#refused(error),
      );
      return;
    }
    for (const id of idsOf(taken)) this.#order(id);
    this.#received(taken, count);
  }

  #received(segments: readonly Segment[], count: number): void {
    const ids = [...idsOf(segments)];
    if (ids.length !== count) this.world.faults.push(`${ids.length} ids in the place of ${count}`);
    for (const id of ids) this.world.record(this, id);
  }

  #guard<T>(run: () => T): T | undefined {
    try {
      return run();
    } catch (error) {
      this.#refused(error);
      return undefined;
    }
  }

  #refused(error: unknown): void {
    if (!(error instanceof IdmintError) || error.reason === "INTERNAL") {
      this.world.faults.push(String(error));
      return;
    }
    this.refusals.push(error);
  }

  /** Ids of one worker and extension increase in this life. */
  #order(id: bigint): void {
    const { dataCenter, worker, extension } = decode(this.world.layout, id);
    const key = `${dataCenter}/${worker}/${extension}`;
    const last = this.#last.get(key);
    if (last !== undefined && id <= last) this.world.faults.push(`${id} after ${last}`);
    this.#last.set(key, id);
  }
}
