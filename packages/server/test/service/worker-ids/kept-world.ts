// A host that keeps its leases in a file, and dies and comes back, in a time that the test makes.
import {
  decode,
  IdmintError,
  idsOf,
  type Segment,
  SNOWFLAKE_PRESETS,
  type SnowflakeEvent,
  SnowflakeSource,
  type WorkerLease,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import {
  isFree,
  KEPT_RESERVE_AHEAD_MS,
  type KeptContents,
  type SeenIssuing,
  leasedWorker,
  releasedWorker,
  renewedWorker,
  type Tag,
  type Worker,
} from "@idmint/core/server";
import type { ServerEvent } from "../../../src/service/events.ts";
import { LeaseKeeper, type LeaseRegistry } from "../../../src/service/worker-ids/lease-keeper.ts";

const START_MS = 1_800_000_000_000;
const RESERVE_AHEAD_MS = 3_000;

/** How the registry behaves: `lost`: a call never arrives; `unanswered`: it is done, and nobody hears. */
export type Network = "ok" | "lost" | "unanswered";

/** One true time, one registry, and hosts. */
export class KeptWorld {
  readonly kind: SnowflakeKind;
  /** Of the tag's floor. */
  closedUntilMs = 0;
  now = 0;
  network: Network = "ok";
  readonly issuing: readonly SeenIssuing[] = [];
  #happenings: { readonly at: number; readonly run: () => void }[] = [];
  #rows: Worker[] = [];
  readonly ids = new Map<bigint, string>();
  readonly faults: string[] = [];

  constructor(kind: Partial<SnowflakeKind> = {}) {
    const layout = { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 1, extensionBits: 1 };
    const rest = {
      dataCenter: 0,
      clockPolicy: "REFUSE",
      clockWaitMs: 5,
      registry: "STORE",
    } as const;
    this.kind = { kind: "snowflake", layout, ...rest, ...kind };
  }

  get tag(): Tag {
    const { kind } = this;
    const counts = { floor: 0n, version: 1n, epoch: 1n, generation: 0n, revision: 1n };
    const times = { createdAtMs: 0, updatedAtMs: 0, periodStart: "" };
    const settings = { description: "", order: "UNORDERED", ceiling: 2n ** 63n - 1n } as const;
    return { name: "t", kind, state: "ACTIVE", ...settings, ...counts, ...times };
  }

  get time(): number {
    return START_MS + this.now;
  }

  after(ms: number, run: () => void): () => void {
    const happening = { at: this.now + ms, run };
    this.#happenings.push(happening);
    return () => {
      this.#happenings = this.#happenings.filter((other) => other !== happening);
    };
  }

  async advance(byMs: number): Promise<void> {
    const until = this.now + byMs;
    await settle();
    for (;;) {
      const next = this.#happenings
        .filter(({ at }) => at <= until)
        .toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#happenings = this.#happenings.filter((other) => other !== next);
      this.now = Math.max(this.now, next.at);
      next.run();
      await settle();
    }
    this.now = until;
  }

  record(id: bigint, who: string): void {
    const before = this.ids.get(id);
    if (before !== undefined) {
      const { tick } = decode(this.kind.layout, id);
      this.faults.push(`tick ${tick}: made by ${before}, then by ${who}`);
    }
    this.ids.set(id, who);
  }

  readonly registry: LeaseRegistry = {
    leaseWorker: (request) => this.#call(() => this.#lease(request)),
    renewWorker: (renewal) => this.#call(() => this.#renew(renewal)),
    releaseWorker: (key) =>
      this.#call(() => this.#write(releasedWorker(this.#row(key.workerId), key, this.time))),
  };

  async #call<T>(run: () => T): Promise<T> {
    const { network } = this;
    await new Promise<void>((resolve) => {
      this.after(1, resolve);
    });
    let answer: () => T;
    try {
      const value = network === "lost" ? undefined : run();
      answer = () => value as T;
    } catch (error) {
      answer = () => {
        throw error;
      };
    }
    await new Promise<void>((resolve) => {
      this.after(network === "ok" ? 2 : 500, resolve);
    });
    if (network === "ok") return answer();
    throw new IdmintError("STORE_UNAVAILABLE", "no answer", { retryAfterMs: 1 });
  }

  #lease(request: WorkerLeaseRequest): WorkerLease {
    const own = this.#rows.find((row) => row.instance === request.instance);
    const free = this.#rows
      .filter((row) => isFree(row, this.time))
      .toSorted((a, b) => a.expiresAtMs - b.expiresAtMs)[0];
    const { closedUntilMs } = this;
    const pool = { layout: this.kind.layout, closedUntilMs, dataCenter: 0 };
    const candidates = { own, used: this.#rows.length, free };
    const { row, answer } = leasedWorker(candidates, request, pool, this.time);
    this.#write(row);
    return { ...answer, epoch: 1n };
  }

  #renew(renewal: WorkerRenewal) {
    const held = this.#row(renewal.workerId);
    const { closedUntilMs } = this;
    const rules = { layout: this.kind.layout, closedUntilMs };
    const { row, answer } = renewedWorker(held, renewal, rules, this.time);
    this.#write(row);
    return { ...answer, epoch: 1n };
  }

  #row(workerId: number): Worker | undefined {
    return this.#rows.find((row) => row.workerId === workerId);
  }

  #write(row: Worker): void {
    this.#rows = [...this.#rows.filter((other) => other.workerId !== row.workerId), row];
  }
}

/** Lets every promise that can settle do so. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await Promise.resolve();
}

/** A server on a machine: its lives follow each other, and its file stays. */
export class KeptHost {
  readonly world: KeptWorld;
  readonly name: string;
  offsetMs = 0;
  /** What is on the disk. */
  disk: KeptContents | undefined;
  /** How long a write takes; undefined: it fails. */
  writeMs: number | undefined = 1;
  #life = 0;
  #source: SnowflakeSource | undefined;
  readonly events: (ServerEvent | SnowflakeEvent)[] = [];
  readonly refusals: string[] = [];
  #last = -1n;

  constructor(world: KeptWorld, name: string) {
    this.world = world;
    this.name = name;
    this.start();
  }

  start(): void {
    const life = ++this.#life;
    const { world } = this;
    const timers = {
      after: (ms: number, run: () => void) =>
        world.after(ms, () => {
          if (life === this.#life) run();
        }),
    };
    const clock = { now: () => world.now };
    const wallClock = (): number => Math.floor(world.time + this.offsetMs);
    const alive = <T>(call: Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        call.then(
          (value) => life === this.#life && resolve(value),
          (error: unknown) => life === this.#life && reject(error as Error),
        );
      });
    const { registry } = world;
    const keeper = new LeaseKeeper({
      file: {
        found: this.disk,
        write: (contents) => alive(this.#write(contents, life)),
        empty: async () => undefined,
      },
      clock,
      timers,
      wallClock,
      incarnation: () => "one",
      issuing: () => world.issuing,
      node: () => ({ id: "n", parts: [] }),
      callers: () => undefined,
      emit: (event) => this.events.push(event),
    });
    this.#source = new SnowflakeSource(
      {
        tag: "t",
        kind: world.kind,
        instance: this.name,
        dataCenter: undefined,
        reserveAheadMs: RESERVE_AHEAD_MS,
        registryAheadMs: KEPT_RESERVE_AHEAD_MS,
        maxWaiters: 5,
      },
      {
        registry: keeper.registryOf(world.tag, {
          leaseWorker: (request) => alive(registry.leaseWorker(request)),
          renewWorker: (renewal) => alive(registry.renewWorker(renewal)),
          releaseWorker: (key) => alive(registry.releaseWorker(key)),
        }),
        clock,
        timers,
        wallClock,
        random: () => 0.5,
        onEvent: (event) => this.events.push(event),
      },
    );
    this.#last = -1n;
    this.#source.start();
  }

  /** The process is killed, and started again at once. What was being written may have reached the disk. */
  restart(): void {
    this.start();
  }

  async #write(contents: KeptContents, life: number): Promise<void> {
    const { writeMs, world } = this;
    if (writeMs === undefined) throw new Error("no space left on the disk");
    await new Promise<void>((resolve) => {
      world.after(writeMs, () => {
        // A rename that a dead process had asked for is done or not, never over a later one.
        if (life === this.#life) this.disk = contents;
        resolve();
      });
    });
  }

  /** Makes up to `count` ids at once; how many there were. */
  make(count: number): number {
    for (let made = 0; made < count; made++) {
      let id: bigint | undefined;
      try {
        id = this.#source?.tryNext();
      } catch (error) {
        this.refusals.push(error instanceof IdmintError ? error.reason : String(error));
      }
      if (id === undefined) return made;
      if (id <= this.#last) {
        const { extension } = decode(this.world.kind.layout, id);
        if (extension === decode(this.world.kind.layout, this.#last).extension)
          this.world.faults.push(`${id} after ${this.#last}`);
      }
      this.#last = id;
      this.world.record(id, `${this.name}, life ${this.#life}`);
    }
    return count;
  }

  /** Makes ids in every millisecond. */
  async run(ms: number): Promise<void> {
    for (let left = ms; left > 0; left--) {
      this.make(2);
      await this.world.advance(1);
    }
  }

  /** As segments, now or later. */
  take(count: number): void {
    const who = `${this.name}, life ${this.#life}`;
    const life = this.#life;
    const record = (segments: readonly Segment[]): void => {
      if (life !== this.#life) return;
      for (const id of idsOf(segments)) this.world.record(id, who);
    };
    try {
      const taken = this.#source?.take(count) ?? [];
      if (taken instanceof Promise) {
        taken.then(record, (error: unknown) => this.refusals.push(String(error)));
      } else {
        record(taken);
      }
    } catch (error) {
      this.refusals.push(String(error));
    }
  }
}
