import {
  type AcceptStore,
  type ChangeOptions,
  DEFAULT_MAX_OFFLINE_MS,
  type EndedPeriod,
  type Grant,
  type NodeRowKey,
  type Raised,
  type RaiseRequest,
  type Refused,
  type RenewedWorkerLease,
  type Store,
  type Tag,
  type Worker,
  type WorkerLease,
  type WorkerLeaseKey,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import type { PostgresConfig } from "../shared/config.ts";
import {
  assertBatch,
  assertGap,
  assertGrants,
  assertLease,
  assertMarks,
  assertNames,
  assertPage,
  assertRaise,
  assertRenewal,
  MAX_BATCH,
} from "../shared/limits.ts";
import { workableVersion } from "../shared/migration.ts";
import { ALONE, assertMembership, type PlacedTag } from "../shared/place.ts";
import { accept } from "./accept.ts";
import { changes, type DatabaseChanges } from "./changes.ts";
import { Connections } from "./connections.ts";
import { giveBack } from "./give-back.ts";
import { grant } from "./grant.ts";
import {
  findMembership,
  pageOfRows,
  point,
  type Pointer,
  readStanding,
  type Standing,
} from "./membership.ts";
import { exchangeMarks } from "./marks.ts";
import { forgetNodes } from "./nodes.ts";
import { migrations } from "./migrations/index.ts";
import { listPeriods } from "./periods.ts";
import { raise } from "./raise.ts";
import { appliedMigrations } from "./schema.ts";
import {
  advanceTag,
  createTag,
  getTags,
  listTags,
  returnToPeriod,
  rewriteTag,
  setTagState,
  type Site,
  updateTag,
} from "./tags.ts";
import { leaseWorker, listWorkers, releaseWorker, renewWorker } from "./workers.ts";

type Tail<List extends readonly unknown[]> = List extends readonly [unknown, ...infer Rest]
  ? Rest
  : never;

/** The PostgreSQL store: each file beside this one holds the statements of one purpose. */
export class PostgresStore implements Store, AcceptStore {
  readonly backend = "postgres";
  readonly maxBatch: number = MAX_BATCH;
  readonly schemaVersion: number;
  /** What the database knew of its fleet when it was opened. */
  readonly fleetId: string;
  readonly #connections: Connections;
  readonly #site: Site;
  readonly #allowUnsafe: readonly string[];

  private constructor(
    connections: Connections,
    config: PostgresConfig,
    schemaVersion: number,
    fleetId: string,
  ) {
    this.fleetId = fleetId;
    this.#connections = connections;
    this.#site = { connections, place: config.place ?? ALONE };
    this.#allowUnsafe = config.allowUnsafe;
    this.schemaVersion = schemaVersion;
  }

  static async open(config: PostgresConfig): Promise<PostgresStore> {
    const connections = new Connections(config);
    try {
      const version = await connections.run(async (session) =>
        workableVersion(migrations, await appliedMigrations(session)),
      );
      const place = config.place ?? ALONE;
      // Without a record nothing is granted or changed, and it shows that there is none.
      const membership = (await findMembership(connections)) ?? { ...place, fleetId: "" };
      assertMembership(membership, place);
      return new PostgresStore(connections, config, version, membership.fleetId);
    } catch (error) {
      await connections.close();
      throw error;
    }
  }

  async grant(...[requests, options]: Parameters<Store["grant"]>): Promise<readonly Grant[]> {
    assertGrants(requests);
    if (requests.length === 0) return [];
    return grant(this.#connections, requests, this.#allowUnsafe, options);
  }

  async raise(request: RaiseRequest): Promise<Raised | Refused> {
    assertRaise(request);
    return raise(this.#connections, request, this.#allowUnsafe);
  }

  async exchangeMarks(
    ...args: Parameters<Store["exchangeMarks"]>
  ): ReturnType<Store["exchangeMarks"]> {
    assertMarks(...args);
    return exchangeMarks(this.#connections, ...args);
  }

  async giveBack(requests: Parameters<Store["giveBack"]>[0]): Promise<readonly number[]> {
    assertBatch(requests);
    return requests.length === 0 ? [] : giveBack(this.#connections, requests);
  }

  async leaseWorker(request: WorkerLeaseRequest): Promise<WorkerLease> {
    assertLease(request);
    return leaseWorker(this.#connections, request, this.#allowUnsafe);
  }

  async renewWorker(renewal: WorkerRenewal): Promise<RenewedWorkerLease> {
    assertRenewal(renewal);
    return renewWorker(this.#connections, renewal, this.#allowUnsafe);
  }

  async releaseWorker(key: WorkerLeaseKey): Promise<void> {
    return releaseWorker(this.#connections, key, this.#allowUnsafe);
  }

  async listWorkers(query: Parameters<Store["listWorkers"]>[0]): Promise<readonly Worker[]> {
    assertPage(query.limit);
    return listWorkers(this.#connections, query);
  }

  /** `isHome`: see createTag of tags.ts. */
  async createTag(
    settings: Parameters<Store["createTag"]>[0],
    options?: ChangeOptions,
    isHome = true,
  ): Promise<Tag> {
    return createTag(this.#site, settings, options, isHome);
  }

  async getTags(names: readonly string[]): Promise<readonly Tag[]> {
    assertNames(names);
    const rows = await getTags(this.#connections, names);
    return rows.filter((row) => row.movedTo === "" || row.moving).map(({ tag }) => tag);
  }

  /** The rows of these names, also of tags that are elsewhere. */
  async getRows(names: readonly string[]): Promise<readonly PlacedTag[]> {
    assertNames(names);
    return getTags(this.#connections, names);
  }

  /** One step of a move. */
  async rewriteTag(...args: Tail<Parameters<typeof rewriteTag>>): Promise<void> {
    return rewriteTag(this.#site, ...args);
  }

  async standing(): Promise<Standing> {
    return readStanding(this.#connections);
  }

  /** See pageOfRows. */
  async pageOfRows(afterName: string, limit: number): Promise<readonly PlacedTag[]> {
    assertPage(limit);
    return pageOfRows(this.#connections, afterName, limit);
  }

  /** See point. */
  async point(pointers: readonly Pointer[]): Promise<void> {
    return point(this.#connections, pointers);
  }

  async listTags(query: Parameters<Store["listTags"]>[0]): Promise<readonly Tag[]> {
    assertPage(query.limit);
    return listTags(this.#connections, query);
  }

  async listPeriods(query: Parameters<Store["listPeriods"]>[0]): Promise<readonly EndedPeriod[]> {
    assertPage(query.limit);
    return listPeriods(this.#connections, query);
  }

  async updateTag(...args: Parameters<Store["updateTag"]>): Promise<Tag> {
    return updateTag(this.#site, ...args);
  }

  async advanceTag(...args: Parameters<Store["advanceTag"]>): ReturnType<Store["advanceTag"]> {
    return advanceTag(this.#site, ...args);
  }

  async returnToPeriod(
    ...args: Parameters<Store["returnToPeriod"]>
  ): ReturnType<Store["returnToPeriod"]> {
    return returnToPeriod(this.#site, ...args);
  }

  async setTagState(...args: Parameters<Store["setTagState"]>): Promise<Tag> {
    return setTagState(this.#site, ...args);
  }

  async changes(query: Parameters<Store["changes"]>[0]): Promise<DatabaseChanges> {
    assertNames(query.watched);
    assertPage(query.limit);
    return changes(this.#connections, query, this.#allowUnsafe);
  }

  async forgetNodes(keys: readonly NodeRowKey[]): Promise<number> {
    assertNames(keys);
    return keys.length === 0 ? 0 : forgetNodes(this.#connections, keys);
  }

  async accept(
    gap: bigint,
    maxOfflineMs: number | null = DEFAULT_MAX_OFFLINE_MS,
  ): Promise<{ tags: number }> {
    assertGap(gap);
    return accept(this.#connections, gap, maxOfflineMs);
  }

  async close(): Promise<void> {
    await this.#connections.close();
  }
}
