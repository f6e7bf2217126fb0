import { DEFAULT_RESERVE_AHEAD_MS, MAX_LEAD_MS, WORKER_TTL_MS } from "@idmint/core";
import type { RedisWorkers, RedisWorkersAnswer, Worker } from "@idmint/core/server";
import type { Asked, RedisHashes } from "./hashes.ts";

interface Row {
  readonly instance: string;
  readonly token: string;
  readonly reserved: number;
  readonly expires: number;
}

interface WorkersAsked extends Asked {
  readonly seen: number;
  readonly dataCenter: number;
}

/** The worker ids of a tag, fields of its hash (server/src/store/redis/worker-scripts.ts). */
class Workers {
  readonly hashes: RedisHashes;
  readonly tag: string;
  readonly nowMs: number;
  readonly #dataCenter: number;

  constructor(hashes: RedisHashes, { tag, dataCenter }: Pick<WorkersAsked, "dataCenter" | "tag">) {
    this.hashes = hashes;
    this.tag = tag;
    this.nowMs = hashes.now();
    this.#dataCenter = dataCenter;
  }

  get start(): number {
    return this.hashes.number(this.tag, "start_ms");
  }

  get limit(): number {
    return this.hashes.number(this.tag, "limit_ms");
  }

  get changes(): number {
    return this.hashes.number(this.tag, "changes");
  }

  get used(): number {
    return this.hashes.number(this.tag, `u:${this.#dataCenter}`);
  }

  /** Before this time none is free, unless one is released. */
  get freeFrom(): number {
    return this.hashes.number(this.tag, `f:${this.#dataCenter}`);
  }

  /** The worker id that an instance had last. */
  hint(instance: string): number | undefined {
    const id = this.hashes.get(this.tag, `i:${this.#dataCenter}:${instance}`);
    return id === undefined ? undefined : Number(id);
  }

  row(id: number): Row | undefined {
    const packed = this.hashes.get(this.tag, `w:${this.#dataCenter}:${id}`);
    if (packed === undefined) return undefined;
    const [instance = "", token = "", reserved, expires] = packed.split(" ");
    return { instance, token, reserved: Number(reserved), expires: Number(expires) };
  }

  write(id: number, { instance, token, reserved, expires }: Row): void {
    const field = `w:${this.#dataCenter}:${id}`;
    const changes = this.changes + 1;
    this.hashes.set(this.tag, { [field]: `${instance} ${token} ${reserved} ${expires}`, changes });
  }

  note(values: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(values)) {
      const [kind = "", ...rest] = name.split(":");
      this.hashes.set(this.tag, { [[kind, this.#dataCenter, ...rest].join(":")]: value });
    }
  }

  forgetHint(instance: string): void {
    this.hashes.delete(this.tag, `i:${this.#dataCenter}:${instance}`);
  }

  /** How far anybody may reserve now. */
  furthest(aheadMs: number): number {
    const first = this.start + Math.min(aheadMs, DEFAULT_RESERVE_AHEAD_MS);
    return Math.max(this.nowMs + aheadMs, first) + MAX_LEAD_MS;
  }

  done(workerId: number, { token, reserved }: Row, before: number): RedisWorkersAnswer {
    return {
      status: "done",
      workerId,
      token: BigInt(token),
      notBeforeMs: before + 1,
      reservedUntilMs: reserved,
      nowMs: this.nowMs,
      limitMs: this.limit,
      changes: this.changes,
    };
  }
}

/** Why nothing is done: a doubt, or it is behind what the caller has seen. */
function refusalOf(hashes: RedisHashes, asked: WorkersAsked): RedisWorkersAnswer | undefined {
  const { tag, seen } = asked;
  const doubt = hashes.check(asked, ["start_ms", "limit_ms"]);
  if (doubt !== undefined || hashes.number(tag, "changes") >= seen) return doubt;
  return { status: "behind", generation: BigInt(hashes.get(tag, "generation") ?? "0") };
}

/** The worker id that is leased: the one it had, one that nobody had, or the one whose lease ended first. */
function chosen(
  workers: Workers,
  instance: string,
  workerIds: number,
): { readonly id: number; readonly old: Row | undefined } | undefined {
  const { used, nowMs } = workers;
  const hinted = workers.hint(instance);
  const had = hinted === undefined ? undefined : workers.row(hinted);
  if (hinted !== undefined && had?.instance === instance) return { id: hinted, old: had };
  if (used < workerIds) return { id: used, old: undefined };
  if (nowMs < workers.freeFrom) return undefined;
  let found: { readonly id: number; readonly old: Row } | undefined;
  let soonest = Infinity;
  for (let id = 0; id < used; id++) {
    const old = workers.row(id);
    if (old === undefined) continue;
    const free = Math.max(old.expires, old.reserved);
    soonest = Math.min(soonest, free);
    if (free <= nowMs && (found === undefined || old.expires < found.old.expires))
      found = { id, old };
  }
  if (found === undefined) workers.note({ f: soonest });
  return found;
}

export function memoryWorkers(
  hashes: RedisHashes,
  store: string,
  newToken: () => bigint,
): RedisWorkers {
  return {
    lease: async ({ instance, reserveAheadMs: ahead, workerIds, ...asked }) => {
      const refusal = refusalOf(hashes, { ...asked, store });
      if (refusal !== undefined) return refusal;
      const workers = new Workers(hashes, asked);
      const { nowMs } = workers;
      const choice = chosen(workers, instance, workerIds);
      if (choice === undefined) return { status: "exhausted" };
      const { id, old } = choice;
      const before = old?.reserved ?? workers.start;
      const untilMs = Math.min(Math.max(nowMs, before) + ahead, workers.furthest(ahead));
      if (untilMs > before && untilMs > workers.limit) return { status: "limit", untilMs };
      const reserved = Math.max(before, untilMs);
      const row = { instance, token: String(newToken()), reserved, expires: nowMs + WORKER_TTL_MS };
      workers.note({ [`i:${instance}`]: id, u: Math.max(workers.used, id + 1) });
      workers.write(id, row);
      if (old !== undefined && old.instance !== instance) workers.forgetHint(old.instance);
      return workers.done(id, row, before);
    },
    renew: async ({ workerId, token, reserveUntilMs, reserveAheadMs, ...asked }) => {
      const refusal = refusalOf(hashes, { ...asked, store });
      if (refusal !== undefined) return refusal;
      const workers = new Workers(hashes, asked);
      const row = workers.row(workerId);
      if (row?.token !== String(token)) return { status: "lost" };
      const most = Math.min(reserveUntilMs, workers.furthest(reserveAheadMs));
      const reserved = Math.max(row.reserved, most);
      if (reserved > row.reserved && reserved > workers.limit)
        return { status: "limit", untilMs: reserved };
      const expires = workers.nowMs + WORKER_TTL_MS;
      const renewed = { ...row, reserved, token: String(newToken()), expires };
      workers.write(workerId, renewed);
      return workers.done(workerId, renewed, row.reserved);
    },
    release: async ({ workerId, token, ...asked }) => {
      const refusal = refusalOf(hashes, { ...asked, store });
      if (refusal !== undefined) return refusal;
      const workers = new Workers(hashes, asked);
      const row = workers.row(workerId);
      if (row?.token !== String(token)) return { status: "lost" };
      const expires = Math.min(row.expires, workers.nowMs);
      const released = { ...row, token: String(newToken()), expires };
      workers.note({ f: 0 });
      workers.write(workerId, released);
      return workers.done(workerId, released, row.reserved);
    },
    list: async ({ tag, after, limit }) =>
      listed(hashes, store, tag).filter(past(after)).slice(0, limit),
    seed: async ({ afterMs, limitMs, ...asked }) => {
      const values = { start_ms: afterMs, limit_ms: limitMs, changes: 0 };
      return hashes.seed({ store, ...asked }, values) ?? { status: "seeded" };
    },
  };
}

function past(
  after: { readonly dataCenter: number; readonly workerId: number } | undefined,
): (worker: Worker) => boolean {
  if (after === undefined) return () => true;
  const place = ({ dataCenter, workerId }: typeof after): number => dataCenter * 2 ** 16 + workerId;
  return (worker) => place(worker) > place(after);
}

/** All workers of a tag, in order. */
function listed(hashes: RedisHashes, store: string, tag: string): readonly Worker[] {
  if (hashes.get(tag, "store") !== store) return [];
  const found: Worker[] = [];
  for (const field of hashes.fields(tag).keys()) {
    const [, dataCenter, workerId] = /^w:(\d+):(\d+)$/.exec(field) ?? [];
    if (dataCenter === undefined || workerId === undefined) continue;
    const at = { dataCenter: Number(dataCenter), workerId: Number(workerId) };
    const row = new Workers(hashes, { tag, dataCenter: at.dataCenter }).row(at.workerId);
    if (row === undefined) continue;
    const { instance, token, reserved, expires } = row;
    const times = { reservedUntilMs: reserved, expiresAtMs: expires, extension: 0 };
    found.push({ ...at, instance, token: BigInt(token), ...times });
  }
  return found.toSorted((a, b) => a.dataCenter - b.dataCenter || a.workerId - b.workerId);
}
