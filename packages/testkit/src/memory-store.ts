import { isDeepStrictEqual } from "node:util";
import {
  type AcceptStore,
  assertNoViolations,
  type ChangeOptions,
  DEFAULT_MAX_OFFLINE_MS,
  earlierMemory,
  type EndedPeriod,
  firstIdOf,
  type GiveBackRequest,
  type Grant,
  type GrantRequest,
  IdmintError,
  invalidField,
  MAX_ID,
  type NodeRowKey,
  type Raised,
  type RaiseRequest,
  type Refused,
  type RenewedWorkerLease,
  type Store,
  type StoreChanges,
  type Tag,
  type TagChange,
  type TagSettings,
  type Worker,
  type WorkerLease,
  type WorkerLeaseKey,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import {
  acceptedFloor,
  leaseWorker,
  listWorkers,
  releaseWorker,
  renewWorker,
} from "./memory-workers.ts";
import { MemoryDatabase } from "./memory-database.ts";
import { addLostNodes, forgetNodes, renewNode } from "./memory-nodes.ts";
import { countsInRedis, periodsOf } from "./memory-periods.ts";
import {
  acceptedPeriods,
  assertFloorHolds,
  assertTimeZone,
  CLOCK_MARGIN_MS,
  fundamentalsOf,
  inPeriodAt,
  refused,
  returned,
  slotsKept,
  unplaced,
} from "./memory-rules.ts";

/** The operations of a store that a test may disturb and count. */
export type StoreOperation =
  | "accept"
  | "advanceTag"
  | "changes"
  | "createTag"
  | "exchangeMarks"
  | "forgetNodes"
  | "getTags"
  | "giveBack"
  | "grant"
  | "leaseWorker"
  | "listPeriods"
  | "listTags"
  | "listWorkers"
  | "raise"
  | "releaseWorker"
  | "renewWorker"
  | "returnToPeriod"
  | "setTagState"
  | "updateTag";

/**
 * Disturbs operations: `before` runs before anything is done (a throw means that nothing was), `after` runs when the
 * work is durable and before the answer (a throw is an unknown outcome, a delay a late answer).
 */
export interface StoreFaults {
  before?(operation: StoreOperation): Promise<void> | void;
  after?(operation: StoreOperation): Promise<void> | void;
}

/** The Store port in memory, for tests: exact in its refusals, with faults and delays on demand. Nothing is durable. */
export class MemoryStore implements Store, AcceptStore {
  readonly backend = "memory";
  readonly schemaVersion = 1;
  readonly maxBatch: number;
  readonly database: MemoryDatabase;
  /** How often each operation was begun. */
  readonly calls: Map<StoreOperation, number> = new Map();
  faults: StoreFaults;
  isClosed = false;

  constructor(
    options: { database?: MemoryDatabase; faults?: StoreFaults; maxBatch?: number } = {},
  ) {
    this.database = options.database ?? new MemoryDatabase();
    this.faults = options.faults ?? {};
    this.maxBatch = options.maxBatch ?? 100;
  }

  /** Statements begun so far, of one operation or of all. */
  count(operation?: StoreOperation): number {
    if (operation !== undefined) return this.calls.get(operation) ?? 0;
    let sum = 0;
    for (const calls of this.calls.values()) sum += calls;
    return sum;
  }

  grant(requests: readonly GrantRequest[]): Promise<readonly Grant[]> {
    if (requests.length > this.maxBatch) throw new RangeError(`a batch of ${requests.length}`);
    if (new Set(requests.map((request) => request.tag)).size !== requests.length) {
      throw new RangeError("a tag twice in one batch");
    }
    if (requests.some(({ kind, count, minCount }) => kind === "sequence" && minCount < count)) {
      throw new RangeError("a sequence grants all or nothing");
    }
    return this.#run("grant", () => requests.map((request) => this.#grantOne(request)));
  }

  raise(request: RaiseRequest): Promise<Raised | Refused> {
    return this.#run("raise", () => {
      const { tag, by, atLeast, newGeneration, generationFrom = 0n } = request;
      const row = this.#fit(request);
      if ("outcome" in row) return row;
      if (!countsInRedis(row.kind)) return refused(tag, "WRONG_KIND");
      if (row.state === "PAUSED") return refused(tag, "TAG_PAUSED");
      if (row.floor === row.ceiling) return refused(tag, "TAG_EXHAUSTED");
      const wanted = row.floor + by > atLeast ? row.floor + by : atLeast;
      const floor = wanted > row.ceiling ? row.ceiling : wanted;
      const next = row.generation + 1n > generationFrom ? row.generation + 1n : generationFrom;
      const generation = newGeneration ? next : row.generation;
      const version = row.version + 1n;
      this.#put({ ...row, floor, generation, version });
      const { floor: before, epoch } = row;
      return { outcome: "raised", tag, before, floor, generation, version, epoch };
    });
  }

  exchangeMarks(
    ...[risen, asked]: Parameters<Store["exchangeMarks"]>
  ): ReturnType<Store["exchangeMarks"]> {
    return this.#run("exchangeMarks", () => {
      for (const mark of risen) this.database.keepMark(mark);
      return asked.flatMap(({ tag, generation }) =>
        (this.database.marks.get(tag) ?? []).filter((one) => one.generation >= generation),
      );
    });
  }

  leaseWorker(request: WorkerLeaseRequest): Promise<WorkerLease> {
    return this.#inRegistry("leaseWorker", () => leaseWorker(this.database, request));
  }

  renewWorker(renewal: WorkerRenewal): Promise<RenewedWorkerLease> {
    return this.#inRegistry("renewWorker", () => renewWorker(this.database, renewal));
  }

  releaseWorker(key: WorkerLeaseKey): Promise<void> {
    return this.#inRegistry("releaseWorker", () => releaseWorker(this.database, key));
  }

  listWorkers(query: Parameters<Store["listWorkers"]>[0]): Promise<readonly Worker[]> {
    return this.#inRegistry("listWorkers", () => listWorkers(this.database, query));
  }

  listPeriods(query: {
    tag: string;
    before: string;
    limit: number;
  }): Promise<readonly EndedPeriod[]> {
    return this.#run("listPeriods", () => {
      this.#assertAccepted();
      const row = this.database.rows.get(query.tag);
      const keepForMs = row === undefined ? 0 : (periodsOf(row.kind)?.keepForMs ?? 0);
      const oldest = this.database.now() - keepForMs;
      return (this.database.periods.get(query.tag) ?? [])
        .filter(({ start }) => start !== row?.periodStart)
        .filter(({ start }) => query.before === "" || start < query.before)
        .filter(({ endedAtMs }) => endedAtMs >= oldest)
        .slice(0, query.limit);
    });
  }

  giveBack(requests: readonly GiveBackRequest[]): Promise<readonly number[]> {
    return this.#run("giveBack", () =>
      requests.map(({ tag, from, to, version }) => {
        const row = this.database.rows.get(tag);
        if (this.#fenced() !== "" || row?.kind.kind !== "segment") return 0;
        if (row.floor !== to || row.version !== version) return 0;
        this.#put({ ...row, floor: from - 1n, version: row.version + 1n });
        return Number(to - from + 1n);
      }),
    );
  }

  createTag(settings: TagSettings, options?: ChangeOptions): Promise<Tag> {
    return this.#run("createTag", () => {
      this.#assertAccepted();
      assertTimeZone(settings.kind);
      const { database } = this;
      const old = database.rows.get(settings.name);
      if (old !== undefined && old.state !== "DELETED") {
        if (isDeepStrictEqual(unplaced(old), unplaced(settings))) return old;
        throw new IdmintError("TAG_EXISTS", `tag "${settings.name}" exists with other settings`, {
          metadata: { tag: settings.name },
        });
      }
      if (old !== undefined) assertFloorHolds(old, settings.kind);
      const start = firstIdOf(settings.kind) - 1n;
      const floor = old !== undefined && old.floor > start ? old.floor : start;
      if (floor > settings.ceiling)
        throw invalidField("tag.ceiling", `is below the old floor ${floor}`);
      const made: Tag = {
        ...settings,
        ...(old === undefined ? {} : this.#remembered(old, settings.kind, false)),
        kind: slotsKept(old?.kind, settings.kind),
        state: "ACTIVE",
        floor,
        periodStart: old?.periodStart ?? "",
        ...(old?.otherPeriods === undefined ? {} : { otherPeriods: old.otherPeriods }),
        generation: old === undefined ? 0n : old.generation + 1n,
        version: old === undefined ? 0n : old.version + 1n,
        epoch: old === undefined ? 1n : old.epoch + 1n,
        revision: 0n,
        createdAtMs: database.now(),
        updatedAtMs: 0,
      };
      return this.#change(made, options);
    });
  }

  getTags(names: readonly string[]): Promise<readonly Tag[]> {
    if (names.length > 1_000) throw new RangeError(`${names.length} names`);
    return this.#run("getTags", () => {
      this.#assertAccepted();
      return names.flatMap((name) => this.database.rows.get(name) ?? []);
    });
  }

  listTags(query: {
    afterName: string;
    prefix: string;
    showDeleted: boolean;
    limit: number;
  }): Promise<readonly Tag[]> {
    return this.#run("listTags", () => {
      this.#assertAccepted();
      return [...this.database.rows.values()]
        .filter((tag) => tag.name > query.afterName && tag.name.startsWith(query.prefix))
        .filter((tag) => query.showDeleted || tag.state !== "DELETED")
        .toSorted((a, b) => (a.name < b.name ? -1 : 1))
        .slice(0, query.limit);
    });
  }

  updateTag(
    name: string,
    change: TagChange,
    expectedRevision: bigint | undefined,
    options?: ChangeOptions,
  ): Promise<Tag> {
    return this.#run("updateTag", () => {
      const row = this.#existing(name, expectedRevision);
      if (change.settings !== undefined) assertTimeZone(change.settings.kind);
      const isFundamental =
        change.onlyIfUnissued ||
        (change.settings !== undefined &&
          !isDeepStrictEqual(fundamentalsOf(row), fundamentalsOf(change.settings)));
      const isUnissued = row.version === 0n && row.kind.kind !== "ticket";
      if (isFundamental && !isUnissued) {
        throw new IdmintError("FIELD_IMMUTABLE", `tag "${name}" has issued ids`, {
          metadata: { tag: name },
        });
      }
      const { earlier: _, ...rest } = row;
      const next = {
        ...rest,
        ...change.settings,
        ...change.texts,
        description: change.description ?? row.description,
      };
      const isOther = !isDeepStrictEqual(fundamentalsOf(row), fundamentalsOf(next));
      const { kind } = next.kind;
      const isLayout = kind === "snowflake" || kind === "redis_snowflake";
      const epoch = row.epoch + (isOther && isLayout ? 1n : 0n);
      const floor = isUnissued ? firstIdOf(next.kind) - 1n : row.floor;
      const isOver = change.isEarlierOver === true;
      const remembered = this.#remembered(row, next.kind, isOver);
      return this.#change({ ...next, ...remembered, epoch, floor }, options);
    });
  }

  advanceTag(
    name: string,
    floor: bigint,
    options: ChangeOptions & { maxRaise: bigint; expectedRevision: bigint | undefined },
  ): Promise<{ tag: Tag; raised: boolean }> {
    return this.#run("advanceTag", () => {
      const row = this.#existing(name, options.expectedRevision);
      assertNoViolations(
        floor > row.ceiling
          ? { field: "floor", description: `is above the ceiling ${row.ceiling}` }
          : undefined,
        floor - row.floor > options.maxRaise
          ? {
              field: "floor",
              description: `raises the floor by more than ${options.maxRaise}`,
              reason: "RAISE_TOO_LARGE",
            }
          : undefined,
      );
      if (floor <= row.floor) return { tag: row, raised: false };
      const generation = row.generation + (countsInRedis(row.kind) ? 1n : 0n);
      const [version, epoch] = [row.version + 1n, row.epoch + 1n];
      const raised = { ...row, floor, generation, version, epoch };
      return { tag: this.#change(raised, options), raised: true };
    });
  }

  returnToPeriod(
    name: string,
    { start, floor }: { start: string; floor: bigint | undefined },
    options: ChangeOptions & { expectedRevision: bigint | undefined },
  ): Promise<{ tag: Tag; returned: boolean }> {
    return this.#run("returnToPeriod", () => {
      const row = this.#existing(name, options.expectedRevision);
      if (row.periodStart === start && periodsOf(row.kind) !== undefined) {
        return { tag: row, returned: false };
      }
      const [version, epoch] = [row.version + 1n, row.epoch + 1n];
      const next = { ...returned(row, start, floor), version, epoch };
      if (options.validateOnly !== true) {
        this.#list(row, { start: row.periodStart, lastId: row.floor });
      }
      return { tag: this.#change(next, options), returned: true };
    });
  }

  setTagState(
    name: string,
    state: "ACTIVE" | "PAUSED" | "DELETED",
    expectedRevision: bigint | undefined,
    options?: ChangeOptions,
  ): Promise<Tag> {
    return this.#run("setTagState", () => {
      const row = this.#existing(name, expectedRevision);
      if (row.state === state) return row;
      return this.#change({ ...row, state, epoch: row.epoch + 1n }, options);
    });
  }

  changes(query: Parameters<Store["changes"]>[0]): Promise<StoreChanges> {
    if (query.watched.length > 1_000) throw new RangeError(`${query.watched.length} watched tags`);
    return this.#run("changes", () => {
      const { database } = this;
      const fenced = this.#fenced();
      const { renewal } = query;
      const isRenewed = renewal !== undefined && fenced === "" && renewNode(database, renewal);
      const changed = [...database.rows.values()]
        .filter((tag) => tag.revision > query.since)
        .toSorted((a, b) => (a.revision < b.revision ? -1 : 1));
      return {
        incarnation: database.incarnation,
        revision: database.revision,
        changed: changed.slice(0, query.limit),
        more: changed.length > query.limit,
        behind: query.watched
          .filter(({ tag, version }) => (database.rows.get(tag)?.version ?? -1n) < version)
          .map(({ tag }) => tag),
        fenced,
        nowMs: database.now(),
        parts: [
          {
            name: "",
            incarnation: database.incarnation,
            revision: database.revision,
            isRenewed,
            nodes: query.nodes === true ? [...database.nodes.values()] : undefined,
          },
        ],
      };
    });
  }

  forgetNodes(keys: readonly NodeRowKey[]): Promise<number> {
    return this.#run("forgetNodes", () => forgetNodes(this.database, keys));
  }

  accept(
    gap: bigint,
    maxOfflineMs: number | null = DEFAULT_MAX_OFFLINE_MS,
  ): Promise<{ tags: number }> {
    return this.#run("accept", () => {
      const { database } = this;
      if (gap < 0n || gap > MAX_ID) throw invalidField("gap", `must be 0 to ${MAX_ID}`);
      database.newIncarnation();
      addLostNodes(database, maxOfflineMs);
      database.acceptedIdentity = database.identity;
      for (const old of database.rows.values()) {
        // A period that the lost history may have begun starts above the gap too.
        const { row: begun, ended } = inPeriodAt(old, database.now() + CLOCK_MARGIN_MS);
        this.#remember(begun, ended);
        const row = acceptedPeriods(begun, gap);
        const raised = row.floor + gap > row.ceiling ? row.ceiling : row.floor + gap;
        const floor =
          row.kind.kind === "snowflake"
            ? acceptedFloor(row.kind, { ...row, floor: raised }, database.now())
            : raised;
        // Above any epoch the tag may have had before the store went back.
        const seconds = BigInt(Math.floor(database.now() / 1_000));
        const epoch = row.epoch >= seconds ? row.epoch + 1n : seconds;
        const generation = row.generation + (countsInRedis(row.kind) ? 1n : 0n);
        this.#change({ ...row, floor, generation, version: row.version + 1n, epoch });
      }
      return { tags: database.rows.size };
    });
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }

  #grantOne(request: GrantRequest): Grant {
    const { tag } = request;
    const old = this.#fit(request);
    if ("outcome" in old) return old;
    if (old.kind.kind !== request.kind || countsInRedis(old.kind))
      return refused(tag, "WRONG_KIND");
    if (old.state === "PAUSED") return refused(tag, "TAG_PAUSED");
    const { row, period, ended } = inPeriodAt(old, this.database.now());
    if (request.after > row.floor) return refused(tag, "AFTER_ABOVE_FLOOR");
    const left = row.ceiling - row.floor;
    const count = left < BigInt(request.count) ? Number(left) : request.count;
    if (count < request.minCount) return refused(tag, "TAG_EXHAUSTED");
    this.#remember(row, ended);
    const version = row.version + 1n;
    this.#put({ ...row, floor: row.floor + BigInt(count), version });
    const { epoch } = row;
    return { outcome: "granted", tag, base: row.floor + 1n, count, version, epoch, period };
  }

  /** The row that a request is for, unless the store went back or it is not there. */
  #fit({ tag, seenVersion }: GrantRequest | RaiseRequest): Tag | Refused {
    const fenced = this.#fenced();
    if (fenced !== "") return refused(tag, "STORE_EPOCH_CHANGED", fenced);
    const row = this.database.rows.get(tag);
    if ((row?.version ?? 0n) < seenVersion) {
      const detail = "the row's version is lower than one that was seen";
      return refused(tag, "STORE_EPOCH_CHANGED", detail);
    }
    if (row === undefined || row.state === "DELETED") return refused(tag, "TAG_NOT_FOUND");
    return row;
  }

  /** What a grant begins another period with: it forgets old ones too. */
  #remember(row: Tag, ended: { start: string; lastId: bigint } | undefined): void {
    if (ended === undefined) return;
    const { periods } = this.database;
    const oldest = this.database.now() - (periodsOf(row.kind)?.keepForMs ?? 0);
    const kept = (periods.get(row.name) ?? []).filter(({ endedAtMs }) => endedAtMs >= oldest);
    periods.set(row.name, kept);
    this.#list(row, ended);
  }

  #list({ name }: Tag, ended: { start: string; lastId: bigint }): void {
    if (ended.lastId === 0n) return;
    const { periods } = this.database;
    const others = (periods.get(name) ?? []).filter(({ start }) => start !== ended.start);
    const all = [...others, { ...ended, endedAtMs: this.database.now() }];
    periods.set(
      name,
      all.toSorted((a, b) => b.start.localeCompare(a.start)),
    );
  }

  #remembered(old: Tag, kind: Tag["kind"], isOver: boolean): Pick<Tag, "earlier"> {
    const earlier = earlierMemory(old, kind, this.database.revision + 1n, isOver);
    return earlier === undefined ? {} : { earlier };
  }

  #existing(name: string, expectedRevision: bigint | undefined): Tag {
    this.#assertAccepted();
    const row = this.database.rows.get(name);
    if (row === undefined || row.state === "DELETED") {
      throw new IdmintError("TAG_NOT_FOUND", `tag "${name}" does not exist`, {
        metadata: { tag: name },
      });
    }
    if (expectedRevision !== undefined && expectedRevision !== row.revision) {
      throw new IdmintError("ETAG_MISMATCH", `tag "${name}" was changed by somebody else`, {
        metadata: { tag: name },
      });
    }
    return row;
  }

  #change(row: Tag, { validateOnly = false }: ChangeOptions = {}): Tag {
    if (validateOnly) return row;
    this.database.revision++;
    return this.#put({
      ...row,
      revision: this.database.revision,
      updatedAtMs: this.database.now(),
    });
  }

  #put(row: Tag): Tag {
    this.database.rows.set(row.name, row);
    return row;
  }

  #fenced(): string {
    const { identity, acceptedIdentity } = this.database;
    return identity === acceptedIdentity ? "" : `the store is ${identity}, not ${acceptedIdentity}`;
  }

  #assertAccepted(): void {
    const fenced = this.#fenced();
    if (fenced !== "") throw new IdmintError("STORE_EPOCH_CHANGED", fenced);
  }

  #inRegistry<T>(operation: StoreOperation, work: () => T): Promise<T> {
    return this.#run(operation, () => {
      this.#assertAccepted();
      return work();
    });
  }

  async #run<T>(operation: StoreOperation, work: () => T): Promise<T> {
    this.calls.set(operation, this.count(operation) + 1);
    if (this.isClosed) throw new IdmintError("STORE_UNAVAILABLE", "the store is closed");
    await this.faults.before?.(operation);
    const result = work();
    await this.faults.after?.(operation);
    return result;
  }
}

/** The fault most tests need: the store cannot be reached, and nothing was done. */
export function storeIsDown(): never {
  throw new IdmintError("STORE_UNAVAILABLE", "the store is down", { retryAfterMs: 100 });
}
