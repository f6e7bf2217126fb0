// A reference of what a registry of worker ids answers, written after the words of the port and with none of the code of the
// registries, and random walks that compare a real one with it.
import {
  IdmintError,
  type RenewedWorkerLease,
  SNOWFLAKE_PRESETS,
  type WorkerLease,
} from "@idmint/core";
import type { Worker } from "@idmint/core/server";
import fc from "fast-check";
import { expect } from "vitest";
import {
  leaseOf,
  type OpenRegistry,
  type RegistryHarness,
  renewalOf,
  snowflakeOf,
  TTL_MS,
} from "./support.ts";

const WORKER_IDS = 4;
const LEAD_MS = 10_000;
const ORIGIN_MS = SNOWFLAKE_PRESETS["41-10-12"].timeOriginMs;

interface WorkerRow {
  instance: string;
  token: bigint;
  extension: number;
  reserved: number;
  expires: number;
  /** Which lease it is, of all. */
  lease: number;
}

/** Times that a lease may make ids of. */
interface Reserved {
  readonly lease: number;
  from: number;
  to: number;
}

const handle = fc.nat(2);
const dataCenter = fc.constantFrom(0, 0, 0, 3);
const workerId = fc.nat(WORKER_IDS - 1);
const token = fc.constantFrom("right", "right", "right", "right", "used", "made up");
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("lease" as const),
      handle,
      dataCenter,
      instance: fc.constantFrom("a", "b", "c", "d", "e", "f"),
      aheadMs: fc.constantFrom(1_000, 3_000, 3_000, 60_000),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("renew" as const),
      handle,
      dataCenter,
      workerId,
      token,
      ask: fc.constantFrom("nothing", "past", "ahead", "ahead", "most", "too far"),
      next: fc.constantFrom(false, false, false, true),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("release" as const),
      handle,
      dataCenter,
      workerId,
      token,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("pass" as const),
      ms: fc.constantFrom(31_000, 100_000),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Of<Name extends Step["do"]> = Extract<Step, { do: Name }>;

/** A walk that failed, as its failure names it: it is repeated, and made as short as can be. */
export interface Again {
  readonly seed: number;
  readonly path?: string;
}

/** Walks a registry and the model side by side; fails at the first difference, with the steps that lead there. */
export async function walkRegistry(
  makeHarness: () => Promise<RegistryHarness>,
  options: { readonly runs: number; readonly steps: number; readonly again?: Again },
): Promise<void> {
  const { runs, steps, again } = options;
  const paths = fc.array(step, { minLength: 1, maxLength: steps, size: "max" });
  await fc.assert(
    fc.asyncProperty(paths, async (path) => {
      const harness = await makeHarness();
      const handles = await Promise.all([0, 1, 2].map(() => harness.open()));
      try {
        await handles[0]?.createTag(snowflakeOf("t", harness));
        const walk = new Walk(harness, handles);
        for (const next of path) await walk.take(next);
      } finally {
        await Promise.all(handles.map((each) => each.close()));
        await harness.remove();
      }
    }),
    { numRuns: runs, endOnFailure: again === undefined, ...again },
  );
}

class Walk {
  readonly #harness: RegistryHarness;
  readonly #handles: readonly OpenRegistry[];
  /** Of each data center, by worker id. */
  readonly #rows = new Map<number, WorkerRow[]>();
  readonly #used = new Map<string, bigint[]>();
  /** By data center, worker id and extension. */
  readonly #reserved = new Map<string, Reserved[]>();
  #leases = 0;

  constructor(harness: RegistryHarness, handles: readonly OpenRegistry[]) {
    this.#harness = harness;
    this.#handles = handles;
  }

  async take(next: Step): Promise<void> {
    if (next.do === "lease") await this.#lease(next);
    else if (next.do === "renew") await this.#renew(next);
    else if (next.do === "release") await this.#release(next);
    else await this.#pass(next.ms);
    await this.#compare();
  }

  async #lease({ handle: at, dataCenter: dc, instance, aheadMs }: Of<"lease">): Promise<void> {
    const rows = this.#rowsOf(dc);
    const began = Date.now();
    const request = leaseOf(instance, { dataCenter: dc, reserveAheadMs: aheadMs });
    const answer = await outcome(this.#handle(at).leaseWorker(request));
    if (typeof answer === "string") {
      expect(answer).toBe("WORKER_IDS_EXHAUSTED");
      // Whatever became free while it was asked for may have been missed.
      expect(this.#choice(rows, instance, began)).toBe(-1);
      return;
    }
    const id = this.#choice(rows, instance, answer.nowMs);
    expect(answer).toMatchObject({ dataCenter: dc, workerId: id, ttlMs: TTL_MS });
    const old = rows[id];
    // An extension that was begun may have reserved less than the layout has times for. Only stores have extensions.
    const least = this.#harness.place.registry === "STORE" ? ORIGIN_MS - 1 : -Infinity;
    const floor = Math.max(old?.reserved ?? answer.notBeforeMs - 1, least);
    expect(answer.notBeforeMs).toBe(floor + 1);
    expect(answer.extension).toBe(old?.extension ?? 0);
    const { nowMs } = answer;
    const most = nowMs + aheadMs + LEAD_MS;
    const until = Math.min(Math.max(nowMs, floor) + aheadMs, most);
    expect(answer.reservedUntilMs).toBe(Math.max(floor, until));
    if (old !== undefined) this.#usedOf(dc, id).push(old.token);
    expect(this.#usedOf(dc, id)).not.toContain(answer.token);
    const { extension, reservedUntilMs: reserved } = answer;
    this.#leases++;
    rows[id] = {
      instance,
      token: answer.token,
      extension,
      reserved,
      expires: nowMs + TTL_MS,
      lease: this.#leases,
    };
    this.#note(answer, answer.notBeforeMs);
  }

  /** The worker id that a lease is for; −1 when there is none. */
  #choice(rows: readonly WorkerRow[], instance: string, now: number): number {
    const own = rows.findIndex((row) => row.instance === instance);
    if (own >= 0) return own;
    if (rows.length < WORKER_IDS) return rows.length;
    let best = -1;
    for (const [id, { expires, reserved }] of rows.entries()) {
      if (expires > now || reserved > now) continue;
      if (best < 0 || expires < (rows[best]?.expires ?? 0)) best = id;
    }
    return best;
  }

  async #renew(next: Of<"renew">): Promise<void> {
    const { handle: at, dataCenter: dc, workerId: id } = next;
    const row = this.#rowsOf(dc)[id];
    const isNext = next.next && this.#harness.place.registry === "STORE";
    const extension = (row?.extension ?? 0) + (isNext ? 1 : 0);
    const nowMs = Date.now();
    const asked = {
      nothing: 0,
      past: nowMs - 20_000,
      ahead: nowMs + 3_000,
      most: nowMs + 12_000,
      "too far": nowMs + 80_000,
    }[next.ask];
    const key = { dataCenter: dc, workerId: id, token: this.#tokenFor(next), extension, nowMs };
    const renewal = renewalOf(key, { reserveUntilMs: asked ?? 0 });
    const answer = await outcome(this.#handle(at).renewWorker(renewal));
    if (row === undefined || key.token !== row.token) {
      expect(answer).toBe("WORKER_LEASE_LOST");
      return;
    }
    if (extension > 1) {
      expect(answer).toBe("INVALID_ARGUMENT");
      return;
    }
    if (typeof answer === "string") throw new Error(`a renewal was refused: ${answer}`);
    this.#usedOf(dc, id).push(row.token);
    expect(this.#usedOf(dc, id)).not.toContain(answer.token);
    const isAllowed = renewal.reserveUntilMs <= answer.nowMs + 3_000 + LEAD_MS;
    if (isAllowed && isNext) {
      row.extension = extension;
      row.reserved = renewal.reserveUntilMs;
    } else if (!isNext) {
      const most = answer.nowMs + 3_000 + LEAD_MS;
      row.reserved = Math.max(row.reserved, Math.min(renewal.reserveUntilMs, most));
    }
    row.token = answer.token;
    row.expires = answer.nowMs + TTL_MS;
    expect([answer.extension, answer.reservedUntilMs]).toEqual([row.extension, row.reserved]);
    // An extension that was just begun reserves all times before.
    const began = isAllowed && isNext ? -Infinity : undefined;
    this.#note({ ...answer, dataCenter: dc, workerId: id }, began);
  }

  async #release(next: Of<"release">): Promise<void> {
    const { handle: at, dataCenter: dc, workerId: id } = next;
    const row = this.#rowsOf(dc)[id];
    const key = { tag: "t", dataCenter: dc, workerId: id, token: this.#tokenFor(next) };
    const answer = await outcome(this.#handle(at).releaseWorker(key));
    if (row === undefined || key.token !== row.token) {
      expect(answer).toBe("WORKER_LEASE_LOST");
      return;
    }
    expect(answer).toBeUndefined();
    this.#usedOf(dc, id).push(row.token);
    // Only the registry knows its clock and the token of nobody.
    const after = { dataCenter: dc, workerId: id - 1 };
    const [listed] = await this.#handle(0).listWorkers({ tag: "t", after, limit: 1 });
    expect(this.#usedOf(dc, id)).not.toContain(listed?.token);
    const expires = listed?.expiresAtMs ?? Infinity;
    expect(expires).toBeLessThanOrEqual(Math.min(row.expires, Date.now() + 1_000));
    row.token = listed?.token ?? 0n;
    row.expires = expires;
  }

  async #pass(ms: number): Promise<void> {
    await this.#harness.pass(ms);
    for (const row of [...this.#rows.values()].flat()) {
      row.reserved -= ms;
      row.expires -= ms;
    }
    for (const each of [...this.#reserved.values()].flat()) {
      each.from -= ms;
      each.to -= ms;
    }
  }

  async #compare(): Promise<void> {
    const listed = await this.#handle(0).listWorkers({ tag: "t", after: undefined, limit: 100 });
    const expected: Worker[] = [...this.#rows]
      .toSorted(([a], [b]) => a - b)
      .flatMap(([dc, rows]) =>
        rows.map(({ instance, token: its, extension, reserved, expires }, id) => ({
          dataCenter: dc,
          workerId: id,
          instance,
          token: its,
          extension,
          reservedUntilMs: reserved,
          expiresAtMs: expires,
        })),
      );
    expect(listed).toEqual(expected);
  }

  /** No two leases ever share a time of a worker id and extension. */
  #note(
    answer: Pick<WorkerLease, "dataCenter" | "workerId"> & RenewedWorkerLease,
    began: number | undefined,
  ): void {
    const { dataCenter: dc, workerId: id, extension, reservedUntilMs: to } = answer;
    const lease = this.#rowsOf(dc)[id]?.lease ?? 0;
    const key = `${dc}/${id}/${extension}`;
    const all = this.#reserved.get(key) ?? [];
    this.#reserved.set(key, all);
    const own = all.find((each) => each.lease === lease);
    if (own !== undefined) own.to = Math.max(own.to, to);
    else all.push({ lease, from: began ?? to + 1, to });
    const sorted = all
      .filter(({ from, to: last }) => from <= last)
      .toSorted((a, b) => a.from - b.from);
    for (const [place, { from }] of sorted.entries()) {
      const last = sorted[place - 1]?.to ?? -Infinity;
      if (from <= last && last > -Infinity) throw new Error(`a time of ${key} was reserved twice`);
    }
  }

  #tokenFor({ dataCenter: dc, workerId: id, token: which }: Of<"release"> | Of<"renew">): bigint {
    const right = this.#rowsOf(dc)[id]?.token ?? 1n;
    if (which === "right") return right;
    return which === "used" ? (this.#usedOf(dc, id).at(-1) ?? right + 1n) : right + 1n;
  }

  #rowsOf(dc: number): WorkerRow[] {
    const rows = this.#rows.get(dc) ?? [];
    this.#rows.set(dc, rows);
    return rows;
  }

  #usedOf(dc: number, id: number): bigint[] {
    const used = this.#used.get(`${dc}/${id}`) ?? [];
    this.#used.set(`${dc}/${id}`, used);
    return used;
  }

  #handle(at: number): OpenRegistry {
    const found = this.#handles[at];
    if (found === undefined) throw new Error(`no handle ${at}`);
    return found;
  }
}

/** What a call answered, or the reason it was refused with. */
async function outcome<T>(work: Promise<T>): Promise<T | string> {
  try {
    return await work;
  } catch (thrown) {
    if (thrown instanceof IdmintError) return thrown.reason;
    throw thrown;
  }
}
