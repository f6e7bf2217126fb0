import { IdmintError } from "@idmint/core";
import {
  type CallAnswers,
  type CallArgs,
  checkedCall,
  type StoreCall,
  type StoreCalls,
  storeCalls,
} from "@idmint/core/server";
import * as audit from "./audit.ts";
import * as changes from "./changes.ts";
import * as claims from "./claims.ts";
import { MemoryDatabase } from "./database.ts";
import * as grants from "./grants.ts";
import * as ledger from "./ledger.ts";
import * as nodes from "./nodes.ts";
import * as tags from "./tags.ts";
import * as tokens from "./tokens.ts";
import * as workerLeases from "./worker-leases.ts";

/** What each call does with the rows: the function of its name out of the files beside this one. */
const CALLS: {
  readonly [Name in StoreCall]: (
    database: MemoryDatabase,
    ...args: CallArgs[Name]
  ) => CallAnswers[Name];
} = {
  ...audit,
  ...changes,
  askForClaims: claims.askForClaims,
  claim: claims.claim,
  hearClaims: claims.hearClaims,
  withdrawAsk: claims.withdrawAsk,
  ...grants,
  findInLedger: ledger.findInLedger,
  listLedger: ledger.listLedger,
  recordLedger: ledger.recordLedger,
  ...nodes,
  ...tags,
  ...tokens,
  ...workerLeases,
};

/** Does at once what a call asks, as a store does that nothing disturbs. Throws what a store refuses with. */
export function done<Name extends StoreCall>(
  database: MemoryDatabase,
  name: Name,
  args: CallArgs[Name],
): CallAnswers[Name] {
  return CALLS[name](database, ...args);
}

/**
 * Disturbs calls: `before` runs before anything is done (a throw means that nothing was), `after` runs when the work is
 * durable and before the answer (a throw is an unknown outcome, a delay a late answer).
 */
export interface StoreFaults {
  before?(call: StoreCall): Promise<void> | void;
  after?(call: StoreCall): Promise<void> | void;
}

interface MemoryStoreOptions {
  readonly database?: MemoryDatabase;
  readonly faults?: StoreFaults;
  readonly maxBatch?: number;
}

class CountedStore {
  readonly backend = "memory";
  readonly schemaVersion = 1;
  readonly maxBatch: number;
  readonly database: MemoryDatabase;
  faults: StoreFaults;
  isClosed = false;
  readonly #counts = new Map<StoreCall, number>();

  constructor(options: MemoryStoreOptions = {}) {
    this.database = options.database ?? new MemoryDatabase();
    this.faults = options.faults ?? {};
    this.maxBatch = options.maxBatch ?? 100;
    const calls = storeCalls((name, args) => this.#run(name, args));
    Object.assign(
      this,
      storeCalls((name, args) => checkedCall(name, args, calls)),
    );
  }

  /** Calls begun so far, by one name or by all. */
  count(call?: StoreCall): number {
    if (call !== undefined) return this.#counts.get(call) ?? 0;
    let sum = 0;
    for (const count of this.#counts.values()) sum += count;
    return sum;
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }

  async #run<Name extends StoreCall>(name: Name, args: CallArgs[Name]): Promise<CallAnswers[Name]> {
    const [requests] = args as readonly unknown[];
    if (name === "grant" && (requests as readonly unknown[]).length > this.maxBatch) {
      throw new RangeError("a batch above maxBatch");
    }
    this.#counts.set(name, this.count(name) + 1);
    if (this.isClosed) throw new IdmintError("STORE_UNAVAILABLE", "the store is closed");
    await this.faults.before?.(name);
    const answer = done(this.database, name, args);
    await this.faults.after?.(name);
    return answer;
  }
}

/** The Store port in memory, for tests: exact in its refusals, counted, with faults on demand. Nothing is durable. */
export type MemoryStore = CountedStore & StoreCalls;
export const MemoryStore: new (options?: MemoryStoreOptions) => MemoryStore = CountedStore as new (
  options?: MemoryStoreOptions,
) => MemoryStore;

/** The fault most tests need: the store cannot be reached, and nothing was done. */
export function storeIsDown(): never {
  throw new IdmintError("STORE_UNAVAILABLE", "the store is down", { retryAfterMs: 100 });
}
