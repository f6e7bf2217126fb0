import {
  bounded,
  IdmintError,
  type RenewedWorkerLease,
  type WorkerLease,
  type WorkerLeaseKey,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import {
  type Accepted,
  type AuditEvent,
  type AuditNote,
  type CallArgs,
  type ClaimStore,
  type EndedPeriod,
  type GiveBackRequest,
  type Grant,
  type GrantOptions,
  type GrantRequest,
  type LedgerFindings,
  type LedgerPage,
  MAX_BATCH,
  type NodeRowKey,
  type Raised,
  type RaiseRequest,
  type Refused,
  type Store,
  type StoreChanges,
  storeUnavailable,
  type Tag,
  type TagPage,
  type Token,
  type TokenList,
  type Traffic,
  type Worker,
} from "@idmint/core/server";
import { nodeTimers } from "../../timers.ts";
import type { PostgresStore } from "../postgres/store.ts";
import type { PostgresConfig, SpreadConfig } from "../shared/config.ts";
import { mergedAudit } from "../shared/records/audit.ts";
import { schemaMismatch } from "../shared/failures.ts";
import type { StorePins } from "../pins/pin.ts";
import { FIRST_DATABASE, TagMovedError } from "../shared/placed-tag.ts";
import { isMoved, mergedPage, ofAnotherFleet, refusedAsMoved, settledAll } from "./answers.ts";
import { Locator } from "./locator.ts";
import { Member } from "./member.ts";
import { mergedFindings, pageOfLedger } from "./merged-ledger.ts";
import { acceptAll, spreadClaims } from "./merged-claims.ts";
import { MergedChanges } from "./merged-changes.ts";
import { mergedTraffic } from "./merged-traffic.ts";

/** How long a grant may take longer for tags that turn out to have moved; after that they have to be asked for again. */
const FOLLOW_MS = 500;
/** How long a database has for the names of tags that are in use; they only save lookups later. */
const RECENT_MS = 1_000;
/** Tries of an operator's change of a tag that moves meanwhile. */
const MAX_TRIES = 3;

/**
 * A store in several PostgreSQL databases. Each tag is in one of them, all its ids come from there, and it is away only if
 * that one is, or for a server that has to find it by way of a home that is.
 *
 * INVARIANT: nothing is decided here that ids rest on. Each database grants the tags that its own rows say are open there
 * (move-state.ts); a tag that is asked for in the wrong place is refused.
 */
export class SpreadStore implements Store {
  readonly backend = "postgres";
  readonly maxBatch: number = MAX_BATCH;
  readonly schemaVersion: number;
  readonly #members: ReadonlyMap<string, Member>;
  readonly #locator: Locator;
  readonly #changes: MergedChanges;
  readonly askForClaims: ClaimStore["askForClaims"];
  readonly claim: ClaimStore["claim"];
  readonly hearClaims: ClaimStore["hearClaims"];
  readonly withdrawAsk: ClaimStore["withdrawAsk"];

  private constructor(members: ReadonlyMap<string, Member>, schemaVersion: number) {
    this.#members = members;
    this.schemaVersion = schemaVersion;
    const names = [...members.keys()];
    this.#locator = new Locator(names, async (member, tags) =>
      this.#in(member, (store) => store.getRows(tags)),
    );
    this.#changes = new MergedChanges(names, this.#locator, async (member, query) =>
      this.#in(member, (store) => store.changes(query)),
    );
    const claims = spreadClaims(names, this.#locator, (name, work) => this.#in(name, work));
    this.askForClaims = async (...args) => claims.askForClaims(...args);
    this.claim = async (...args) => claims.claim(...args);
    this.hearClaims = async (...args) => claims.hearClaims(...args);
    this.withdrawAsk = async (...args) => claims.withdrawAsk(...args);
  }

  /** Opens the databases that are there; rejects when none is, or one is not what it is configured as. */
  static async open({ databases }: SpreadConfig, pins: StorePins): Promise<SpreadStore> {
    const names = [...databases.keys()].toSorted();
    let fleetId: string | undefined;
    const assertOurs = (store: PostgresStore): void => {
      // One that has lost its record is let in: it refuses by itself, and keeps no others from serving.
      if (store.fleetId === "") return;
      fleetId ??= store.fleetId;
      if (store.fleetId !== fleetId) throw ofAnotherFleet();
    };
    const members = new Map<string, Member>();
    for (const name of names) {
      const config = databases.get(name) as PostgresConfig;
      const place = { member: name, members: names };
      members.set(name, new Member(name, { ...config, place }, pins, assertOurs));
    }
    try {
      const all = [...members.values()];
      const areOpen = await settledAll(all.map((member) => member.tryOpen()));
      const first = all[areOpen.indexOf(true)];
      if (first === undefined) throw storeUnavailable("none of the store's databases answers");
      return new SpreadStore(members, (await first.store()).schemaVersion);
    } catch (error) {
      await Promise.all([...members.values()].map((member) => member.close()));
      throw error;
    }
  }

  /** The database a tag was in when it was last heard of. */
  readonly groupOf = (tag: string): string => this.#locator.placeOf(tag);

  readonly partsOf = (tag: string): readonly string[] => this.#locator.partsOf(tag);

  async forgetNodes(keys: readonly NodeRowKey[], by?: AuditNote): Promise<number> {
    const work = [...Map.groupBy(keys, ({ part }) => part)].map(([part, its]) =>
      this.#in(part, (store) => store.forgetNodes(its, by)),
    );
    let forgotten = 0;
    for (const count of await settledAll(work)) forgotten += count;
    return forgotten;
  }

  /** Written in every database that answers. Where another one wrote something newer, that is the answer. */
  async setTraffic(wanted: Traffic, by?: AuditNote): Promise<Traffic> {
    const work = [...this.#members.keys()].map((name) =>
      this.#in(name, (store) => store.setTraffic(wanted, by)),
    );
    return mergedTraffic(await Promise.allSettled(work), wanted);
  }

  async grant(
    requests: readonly GrantRequest[],
    options: GrantOptions = {},
  ): Promise<readonly Grant[]> {
    const answers = await this.#grant(requests, options);
    const moved = requests.filter(({ tag }) => isMoved(answers.get(tag)));
    if (moved.length > 0) {
      const following = this.#follow(moved, options).catch(() => undefined);
      // When that takes longer, ids that are granted later are a gap.
      const followed = await bounded(following, FOLLOW_MS, nodeTimers, () => undefined);
      for (const grant of followed ?? []) answers.set(grant.tag, grant);
    }
    return requests.map(({ tag }) => answers.get(tag) ?? refusedAsMoved(tag));
  }

  async raise(request: RaiseRequest): Promise<Raised | Refused> {
    const raise = async (): Promise<Raised | Refused> =>
      this.#in(this.#locator.placeOf(request.tag), (store) => store.raise(request));
    const answer = await raise();
    if (answer.outcome !== "refused" || answer.reason !== "TAG_MOVED") return answer;
    await this.#locator.find([request.tag]);
    return raise();
  }

  /** Rejects when one of the databases does, as with grants. A tag that moves takes no mark along: servers keep them anew. */
  async exchangeMarks(
    ...[risen, asked]: Parameters<Store["exchangeMarks"]>
  ): ReturnType<Store["exchangeMarks"]> {
    const raised = Map.groupBy(risen, ({ tag }) => this.#locator.placeOf(tag));
    const read = Map.groupBy(asked, ({ tag }) => this.#locator.placeOf(tag));
    const members = [...new Set([...raised.keys(), ...read.keys()])];
    const work = members.map((name) =>
      this.#in(name, (store) => store.exchangeMarks(raised.get(name) ?? [], read.get(name) ?? [])),
    );
    return (await settledAll(work)).flat();
  }

  async recordLedger(...[rows, limits]: Parameters<Store["recordLedger"]>): Promise<void> {
    const groups = [...Map.groupBy(rows, ({ tag }) => this.#locator.placeOf(tag))];
    await settledAll(
      groups.map(([name, its]) => this.#in(name, (one) => one.recordLedger(its, limits))),
    );
  }

  async findInLedger(query: Parameters<Store["findInLedger"]>[0]): Promise<LedgerFindings> {
    return mergedFindings(await this.#ofAll((store) => store.findInLedger(query)));
  }

  async listLedger(query: Parameters<Store["listLedger"]>[0]): Promise<LedgerPage> {
    const read = (name: string) => this.#in(name, (store) => store.listLedger(query));
    return pageOfLedger([...this.#members.keys()], query.after, read);
  }

  async giveBack(requests: readonly GiveBackRequest[]): Promise<readonly number[]> {
    const counts = new Map<string, number>();
    const groups = Map.groupBy(requests, ({ tag }) => this.#locator.placeOf(tag));
    const work = [...groups].map(async ([member, its]) => {
      const given = await this.#in(member, (store) => store.giveBack(its));
      for (const [at, { tag }] of its.entries()) counts.set(tag, given[at] ?? 0);
    });
    const settled = await Promise.allSettled(work);
    const failure = settled.find((one) => one.status === "rejected");
    // What an unknown outcome leaves is a gap.
    if (failure !== undefined && counts.size === 0) throw IdmintError.from(failure.reason);
    return requests.map(({ tag }) => counts.get(tag) ?? 0);
  }

  async createTag(...[settings, options]: Parameters<Store["createTag"]>): Promise<Tag> {
    const { name } = settings;
    return this.#onTag(name, (store, isHome) => store.createTag(settings, options, isHome));
  }

  async getTags(names: readonly string[]): Promise<readonly Tag[]> {
    const found = await this.#locator.find(names);
    return [...found.values()].map(({ tag }) => tag);
  }

  async listTags(query: Parameters<Store["listTags"]>[0]): Promise<TagPage> {
    const pages = await this.#ofAll((store) => store.listTags(query));
    return mergedPage(pages, query.limit);
  }

  async recentTags(limit: number): Promise<readonly string[]> {
    const share = Math.ceil(limit / this.#members.size);
    const names = [...this.#members.keys()];
    const asked = names.map(async (name) => {
      const its = this.#in(name, (store) => store.recentTags(share)).catch(() => []);
      return bounded(its, RECENT_MS, nodeTimers, () => []);
    });
    const found = (await Promise.all(asked)).flat();
    return [...new Set(found)].slice(0, limit);
  }

  async listPeriods(query: Parameters<Store["listPeriods"]>[0]): Promise<readonly EndedPeriod[]> {
    const found = (await this.#locator.find([query.tag])).get(query.tag);
    const member = found?.member ?? this.#locator.homeOf(query.tag);
    return this.#in(member, (store) => store.listPeriods(query));
  }

  async leaseWorker(request: WorkerLeaseRequest): Promise<WorkerLease> {
    return this.#onTag(request.tag, (store) => store.leaseWorker(request));
  }

  async renewWorker(renewal: WorkerRenewal): Promise<RenewedWorkerLease> {
    return this.#onTag(renewal.tag, (store) => store.renewWorker(renewal));
  }

  async releaseWorker(key: WorkerLeaseKey): Promise<void> {
    return this.#onTag(key.tag, (store) => store.releaseWorker(key));
  }

  async listWorkers(query: Parameters<Store["listWorkers"]>[0]): Promise<readonly Worker[]> {
    const found = (await this.#locator.find([query.tag])).get(query.tag);
    const member = found?.member ?? this.#locator.homeOf(query.tag);
    return this.#in(member, (store) => store.listWorkers(query));
  }

  async updateTag(...args: Parameters<Store["updateTag"]>): Promise<Tag> {
    return this.#onTag(args[0], (store) => store.updateTag(...args));
  }

  async advanceTag(...args: Parameters<Store["advanceTag"]>): ReturnType<Store["advanceTag"]> {
    return this.#onTag(args[0], (store) => store.advanceTag(...args));
  }

  async returnToPeriod(
    ...args: Parameters<Store["returnToPeriod"]>
  ): ReturnType<Store["returnToPeriod"]> {
    return this.#onTag(args[0], (store) => store.returnToPeriod(...args));
  }

  async setTagState(...args: Parameters<Store["setTagState"]>): Promise<Tag> {
    return this.#onTag(args[0], (store) => store.setTagState(...args));
  }

  /** Servers stop where one database says so. So a stop holds as soon as it is in one, and is over when it is in none. */
  async setIssuing(...args: Parameters<Store["setIssuing"]>): ReturnType<Store["setIssuing"]> {
    const work = [...this.#members.keys()].map(async (name) => {
      const parts = await this.#in(name, (store) => store.setIssuing(...args));
      return parts.map((part) => ({ ...part, name }));
    });
    return (await settledAll(work)).flat();
  }

  /** Tokens are in one database, so that what is revoked there is revoked, whichever others are away. */
  async readTokens(known: string | undefined): Promise<TokenList> {
    return this.#in(FIRST_DATABASE, (store) => store.readTokens(known));
  }

  async addToken(token: Token, by?: AuditNote): Promise<boolean> {
    return this.#in(FIRST_DATABASE, (store) => store.addToken(token, by));
  }

  async removeToken(id: string, by?: AuditNote): Promise<boolean> {
    return this.#in(FIRST_DATABASE, (store) => store.removeToken(id, by));
  }

  /** Each database has the events of what was changed in it. All have to answer. */
  async listAudit(query: Parameters<Store["listAudit"]>[0]): Promise<readonly AuditEvent[]> {
    return mergedAudit(await this.#ofAll((store) => store.listAudit(query)), query.limit);
  }

  /** They belong to no tag, so they are where the tokens are. */
  async recordAudit(events: readonly AuditEvent[]): Promise<void> {
    return this.#in(FIRST_DATABASE, (store) => store.recordAudit(events));
  }

  /** `keep` holds for each database. */
  async trimAudit(query: Parameters<Store["trimAudit"]>[0]): Promise<number> {
    const removed = await this.#ofAll((store) => store.trimAudit(query));
    return removed.reduce((sum, count) => sum + count, 0);
  }

  async changes(query: Parameters<Store["changes"]>[0]): Promise<StoreChanges> {
    return this.#changes.changes(query);
  }

  /**
   * Accepts all databases, in doubt or not: what was put back with its identity nobody can recognise. All have to answer,
   * since the others know which tags such a database gave away. Where this is interrupted, it has to be done again.
   */
  async accept(...args: CallArgs["accept"]): Promise<Accepted> {
    const stores = new Map<string, PostgresStore>();
    for (const [name, member] of this.#members) stores.set(name, await member.store());
    return acceptAll(stores, args);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#members.values()].map((member) => member.close()));
  }

  async #in<T>(name: string, work: (store: PostgresStore) => Promise<T>): Promise<T> {
    const member = this.#members.get(name);
    if (member !== undefined) return work(member.opened ?? (await member.store()));
    throw schemaMismatch(`a tag is in database ${name}, which is none of store.more_urls`);
  }

  async #ofAll<T>(work: (store: PostgresStore) => Promise<T>): Promise<readonly T[]> {
    const members = [...this.#members.values()];
    return Promise.all(
      members.map(async (member) => work(member.opened ?? (await member.store()))),
    );
  }

  /** Rejects when one of the databases does: callers send the tags of different ones apart, by groupOf. */
  async #grant(
    requests: readonly GrantRequest[],
    options: GrantOptions,
  ): Promise<Map<string, Grant>> {
    const groups = Map.groupBy(requests, ({ tag }) => this.#locator.placeOf(tag));
    const work = [...groups].map(([member, its]) =>
      this.#in(member, (store) => store.grant(its, options)),
    );
    return new Map((await settledAll(work)).flat().map((grant) => [grant.tag, grant]));
  }

  /** Grants of tags that were not where they had been. */
  async #follow(
    requests: readonly GrantRequest[],
    options: GrantOptions,
  ): Promise<readonly Grant[]> {
    const found = await this.#locator.find(requests.map(({ tag }) => tag));
    const arrived = requests.filter(({ tag }) => found.get(tag)?.isHere === true);
    if (arrived.length === 0) return [];
    return [...(await this.#grant(arrived, options)).values()];
  }

  /** A change of one tag or of its workers, where it is. */
  async #onTag<T>(
    name: string,
    work: (store: PostgresStore, isHome: boolean) => Promise<T>,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      const place = this.#locator.placeOf(name);
      const isHome = place === this.#locator.homeOf(name);
      try {
        return await this.#in(place, (store) => work(store, isHome));
      } catch (error) {
        if (!(error instanceof TagMovedError) || tries >= MAX_TRIES) throw error;
        await this.#locator.find([name]);
      }
    }
  }
}
