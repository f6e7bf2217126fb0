import {
  IdmintError,
  invalidField,
  lastMsAtOrBelow,
  type RenewedWorkerLease,
  type SnowflakeLayout,
  tickAt,
  timeOf,
  WORKER_TTL_MS,
  type WorkerLease,
  type WorkerLeaseKey,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import { comesFrom, asKind, type SnowflakeKind } from "@idmint/core/kinds";
import {
  dataCenterOf,
  type RedisDoubt,
  type RedisWorkers,
  type RedisWorkersAnswer,
  storeUnavailable,
  type Tag,
  type Worker,
  type WorkerRegistry,
} from "@idmint/core/server";
import { redisServerNamed } from "./servers.ts";
import { RedisAgreement } from "./agreement.ts";
import { inEpoch, otherEpoch, placeOf } from "./place.ts";
import { RedisRaise } from "./raise.ts";
import type { RedisCounterPorts } from "./counter-ports.ts";

/**
 * How much further than was asked for the store lets Redis reserve, so that it is not asked each time. When Redis loses its
 * state, ids go on so much later than its clock; that may happen a few times in a row before they have to wait for it.
 */
const HEADROOM_MS = 2_000;
/** The store is asked for more when less than this is left beyond what is reserved. */
const EXTEND_BELOW_MS = 1_000;
/** Raises one call waits for: the first may be overtaken by time, or by another server's. */
const MAX_EXTENSIONS = 3;
/** Calls that may wait for their turn. */
const MAX_WAITING = 10_000;

/** One question to Redis, under a generation, by a caller that has seen so many changes. */
type Question = (
  workers: RedisWorkers,
  under: { readonly generation: bigint; readonly seen: number },
) => Promise<RedisWorkersAnswer>;
type Answer = Exclude<RedisWorkersAnswer, RedisDoubt>;
type Done = Extract<Answer, { readonly status: "done" }>;

/**
 * The worker ids of one tag whose registry is in Redis. Questions are asked one after the other.
 *
 * INVARIANTS
 * - Redis reserves no time past a limit, which it gets for one generation only, after the store has raised the
 *   tag's floor to all ids of that time. A Redis that is empty, older, another one after a fail-over, or in doubt in any other
 *   way is given a new generation first, in which all leases reserve times above that floor. So whatever it forgot, of two
 *   leases no time of the same worker id is the same, and no clock needs to be right for that.
 * - Times and floors are of the layout that the tag's row has. A tag is begun in Redis by a raise, which makes its layout
 *   immutable; whoever has an older record is told by its epoch, since it knows no generation of Redis without asking the row.
 */
export class RedisWorkerRegistry implements WorkerRegistry {
  readonly #name: string;
  readonly #ports: RedisCounterPorts;
  readonly #agreement: RedisAgreement<Question, Answer>;
  readonly #raise: RedisRaise;
  #kind: SnowflakeKind;
  #ceiling: bigint;
  #epoch: bigint;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(tag: Tag, ports: RedisCounterPorts) {
    const { name, ceiling, epoch } = tag;
    this.#name = name;
    this.#ports = ports;
    this.#kind = asKind(tag.kind, "snowflake");
    this.#ceiling = ceiling;
    this.#epoch = epoch;
    const { raises, readPlace } = inEpoch(ports, () => this.#epoch);
    const heard = (generation: bigint): void => this.#agreement.heard(generation);
    this.#raise = new RedisRaise(name, { ...ports, raises, readPlace, heard });
    this.#agreement = new RedisAgreement<Question, Answer>(name, placeOf(tag), {
      ...ports,
      isOrdered: false,
      ask: async ({ workers }, generation, question, mark) => {
        const answer = await question(workers, { generation, seen: Number(mark) });
        if (answer.status === "done") {
          ports.marks.note({ tag: name, generation, mark: BigInt(answer.changes) });
        }
        return answer;
      },
      // The limit is raised by the first question, when Redis has told its clock.
      raise: (_question, generationFrom) =>
        raises.raise({
          tag: name,
          by: 0n,
          atLeast: 0n,
          newGeneration: true,
          generationFrom,
        }),
      readPlace: () => readPlace(name),
      seed: (redisServer, { generation, before, floor }, doubt) => {
        const { layout } = this.#kind;
        const afterMs = lastMsAtOrBelow(layout, before);
        const limitMs = Math.max(afterMs, limitOf(layout, floor));
        return redisServer.workers.seed({ tag: name, generation, afterMs, limitMs, doubt });
      },
    });
  }

  /** A newer record of the tag was seen. */
  update(tag: Tag): void {
    if (!comesFrom(tag.kind, "lease") || tag.kind.registry !== "REDIS") return;
    this.#kind = tag.kind;
    this.#ceiling = tag.ceiling;
    this.#epoch = tag.epoch;
    this.#agreement.update(placeOf(tag));
  }

  /** Makes Redis ready for the tag, and leases nothing. */
  async prepare(): Promise<void> {
    const nobody = { dataCenter: 0, workerId: 0, token: 0n };
    await this.#ask((workers, under) => workers.release({ tag: this.#name, ...nobody, ...under }));
  }

  async leaseWorker(request: WorkerLeaseRequest): Promise<WorkerLease> {
    const { tag, instance, reserveAheadMs, epoch = this.#epoch } = request;
    if (epoch !== this.#epoch) throw otherEpoch(tag);
    const dataCenter = dataCenterOf(this.#kind, request.dataCenter);
    const workerIds = 2 ** this.#kind.layout.workerBits;
    const wanted = { tag, dataCenter, instance, reserveAheadMs, workerIds };
    const answer = await this.#ask((workers, under) => workers.lease({ ...wanted, ...under }));
    if (answer.status === "exhausted") throw this.#exhausted(dataCenter);
    const { workerId, notBeforeMs, ...renewed } = this.#done(answer, { dataCenter, workerId: -1 });
    return { ...this.#renewed(renewed), dataCenter, workerId, notBeforeMs };
  }

  async renewWorker(renewal: WorkerRenewal): Promise<RenewedWorkerLease> {
    const { extension, ...request } = renewal;
    if (extension !== 0) {
      throw invalidField("extension", `must be 0 with the registry in Redis, got ${extension}`);
    }
    const answer = await this.#ask((workers, under) => workers.renew({ ...request, ...under }));
    return this.#renewed(this.#done(answer, renewal));
  }

  async releaseWorker(key: WorkerLeaseKey): Promise<void> {
    const answer = await this.#ask((workers, under) => workers.release({ ...key, ...under }));
    this.#done(answer, key);
  }

  async listWorkers(
    query: Parameters<WorkerRegistry["listWorkers"]>[0],
  ): Promise<readonly Worker[]> {
    const { redisServer } = this.#agreement.place;
    return redisServerNamed(this.#ports.redisServer, this.#name, redisServer).workers.list(query);
  }

  /** Asks until it is answered within the limit. Rejects with STORE_UNAVAILABLE, or the refusals of the tag. */
  async #ask(question: Question): Promise<Answer> {
    if (this.#waiting >= MAX_WAITING) {
      throw storeUnavailable(
        `${MAX_WAITING} calls already wait for the worker ids of tag "${this.#name}"`,
      );
    }
    this.#waiting++;
    const turn = this.#last.then(() => this.#askInTurn(question));
    this.#last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.#waiting--;
    }
  }

  async #askInTurn(question: Question): Promise<Answer> {
    for (let extensions = 0; ; extensions++) {
      // Each depends on the answer before.
      const answer = await this.#agreement.ask(question);
      if (answer.status === "done") {
        const { reservedUntilMs, limitMs } = answer;
        if (limitMs - reservedUntilMs < EXTEND_BELOW_MS) {
          void this.#extend(reservedUntilMs).catch(ignore);
        }
      }
      if (answer.status !== "limit") return answer;
      if (extensions >= MAX_EXTENSIONS) throw this.#notReserved();
      await this.#extend(answer.untilMs);
    }
  }

  /** The store first, then Redis. */
  async #extend(untilMs: number): Promise<void> {
    const { layout } = this.#kind;
    const floor = floorThrough(layout, untilMs + HEADROOM_MS);
    const atLeast = floor < this.#ceiling ? floor : this.#ceiling;
    const { redisServer } = this.#agreement.place;
    await this.#raise.limit(redisServer, atLeast, (raised) => limitOf(layout, raised));
  }

  #renewed({
    token,
    reservedUntilMs,
    nowMs,
  }: Pick<Done, "token" | "reservedUntilMs" | "nowMs">): RenewedWorkerLease {
    const epoch = this.#epoch;
    return { token, ttlMs: WORKER_TTL_MS, extension: 0, reservedUntilMs, nowMs, epoch };
  }

  #done(answer: Answer, { dataCenter, workerId }: Omit<WorkerLeaseKey, "tag" | "token">): Done {
    if (answer.status === "done") return answer;
    const tag = this.#name;
    const text = `worker id ${workerId} of tag "${tag}" in data center ${dataCenter} belongs to another holder now, or this token was used before; lease a worker id again`;
    const metadata = { tag, data_center: String(dataCenter), worker_id: String(workerId) };
    throw new IdmintError("WORKER_LEASE_LOST", text, { metadata });
  }

  #exhausted(dataCenter: number): IdmintError {
    const tag = this.#name;
    const count = 2 ** this.#kind.layout.workerBits;
    const text = `all ${count} worker ids of tag "${tag}" in data center ${dataCenter} are leased; a worker id becomes free ${WORKER_TTL_MS / 1_000} s after its holder's last renewal`;
    const metadata = { tag, data_center: String(dataCenter) };
    return new IdmintError("WORKER_IDS_EXHAUSTED", text, { metadata });
  }

  #notReserved(): IdmintError {
    return storeUnavailable(
      `the store has not yet raised the time up to which Redis may reserve for tag "${this.#name}"`,
    );
  }
}

/** The next call tries again. */
function ignore(): void {}

/** The last millisecond of which all ids are at or below a floor. */
function limitOf(layout: SnowflakeLayout, floor: bigint): number {
  return timeOf(layout, Number((floor + 1n) >> bitsBelowTime(layout))) - 1;
}

/** The highest id of the tick of a millisecond; not bounded by the layout's bits. */
function floorThrough(layout: SnowflakeLayout, ms: number): bigint {
  const ticks = BigInt(Math.max(0, tickAt(layout, ms) + 1));
  return (ticks << bitsBelowTime(layout)) - 1n;
}

function bitsBelowTime(layout: SnowflakeLayout): bigint {
  const { extensionBits, dataCenterBits, workerBits, sequenceBits } = layout;
  return BigInt(extensionBits + dataCenterBits + workerBits + sequenceBits);
}
