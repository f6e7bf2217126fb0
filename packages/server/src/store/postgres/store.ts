import type {
  AcceptStore,
  EndedPeriod,
  Grant,
  Raised,
  RaiseRequest,
  Refused,
  RenewedWorkerLease,
  Store,
  StoreChanges,
  Tag,
  Worker,
  WorkerLease,
  WorkerLeaseKey,
  WorkerLeaseRequest,
  WorkerRenewal,
} from "@idmint/core";
import type { PostgresConfig } from "../shared/config.ts";
import {
  assertBatch,
  assertGap,
  assertGrants,
  assertLease,
  assertNames,
  assertPage,
  assertRaise,
  assertRenewal,
  MAX_BATCH,
} from "../shared/limits.ts";
import { workableVersion } from "../shared/migration.ts";
import { accept } from "./accept.ts";
import { changes } from "./changes.ts";
import { Connections } from "./connections.ts";
import { giveBack } from "./give-back.ts";
import { grant } from "./grant.ts";
import { migrations } from "./migrations/index.ts";
import { listPeriods } from "./periods.ts";
import { raise } from "./raise.ts";
import { appliedMigrations } from "./schema.ts";
import { advanceTag, createTag, getTags, listTags, setTagState, updateTag } from "./tags.ts";
import { leaseWorker, listWorkers, releaseWorker, renewWorker } from "./workers.ts";

/** The PostgreSQL store: each file beside this one holds the statements of one purpose. */
export class PostgresStore implements Store, AcceptStore {
  readonly backend = "postgres";
  readonly maxBatch: number = MAX_BATCH;
  readonly schemaVersion: number;
  readonly #connections: Connections;
  readonly #allowUnsafe: readonly string[];

  private constructor(connections: Connections, config: PostgresConfig, schemaVersion: number) {
    this.#connections = connections;
    this.#allowUnsafe = config.allowUnsafe;
    this.schemaVersion = schemaVersion;
  }

  static async open(config: PostgresConfig): Promise<PostgresStore> {
    const connections = new Connections(config);
    try {
      const version = await connections.run(async (session) =>
        workableVersion(migrations, await appliedMigrations(session)),
      );
      return new PostgresStore(connections, config, version);
    } catch (error) {
      await connections.close();
      throw error;
    }
  }

  async grant(requests: Parameters<Store["grant"]>[0]): Promise<readonly Grant[]> {
    assertGrants(requests);
    return requests.length === 0 ? [] : grant(this.#connections, requests, this.#allowUnsafe);
  }

  async raise(request: RaiseRequest): Promise<Raised | Refused> {
    assertRaise(request);
    return raise(this.#connections, request, this.#allowUnsafe);
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

  async createTag(settings: Parameters<Store["createTag"]>[0]): Promise<Tag> {
    return createTag(this.#connections, settings);
  }

  async getTags(names: readonly string[]): Promise<readonly Tag[]> {
    assertNames(names);
    return getTags(this.#connections, names);
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
    return updateTag(this.#connections, ...args);
  }

  async advanceTag(...args: Parameters<Store["advanceTag"]>): ReturnType<Store["advanceTag"]> {
    return advanceTag(this.#connections, ...args);
  }

  async setTagState(...args: Parameters<Store["setTagState"]>): Promise<Tag> {
    return setTagState(this.#connections, ...args);
  }

  async changes(query: Parameters<Store["changes"]>[0]): Promise<StoreChanges> {
    assertNames(query.watched);
    assertPage(query.limit);
    return changes(this.#connections, query, this.#allowUnsafe);
  }

  async accept(gap: bigint): Promise<{ tags: number }> {
    assertGap(gap);
    return accept(this.#connections, gap);
  }

  async close(): Promise<void> {
    await this.#connections.close();
  }
}
