import { IdmintError } from "@idmint/core";
import { isForeign, storeIsAnother } from "@idmint/core/server";
import type { StorePin } from "../../pins/pin.ts";
import { CallFailure, isPassing } from "../cluster/failure.ts";
import {
  type GuardState,
  isElected,
  type Moment,
  type Sight,
  type StoreRecord,
} from "../cluster/guard-state.ts";
import type { Member } from "../cluster/member.ts";
import type { Ask } from "../cluster/members.ts";
import type { KeyValue, StatusAnswer } from "../cluster/protocol.ts";
import type { Keys } from "./keys.ts";
import { recordFrom } from "./rows.ts";

/** What is known of the store when something is asked of it. */
export interface Standing {
  readonly record: StoreRecord;
  /** Of the key `store`, and the revision of etcd at which it was written. */
  readonly value: Buffer;
  readonly modRevision: string;
  /** Why nothing may be granted, in words; empty when all is well. */
  readonly fenced: string;
  /** What this look found to be lost; see Judgement. */
  readonly lost: string;
  /** Revision of etcd at which a server wrote last. */
  readonly written: string;
  readonly recordedTerm: bigint;
  readonly termModRevision: string;
  readonly status: StatusAnswer;
}

/** How a member proves what it is of. */
export class Proof {
  readonly #guard: GuardState;
  readonly #pin: StorePin;
  readonly #keys: Keys;

  constructor(guard: GuardState, pin: StorePin, keys: Keys) {
    this.#guard = guard;
    this.#pin = pin;
    this.#keys = keys;
  }

  /**
   * Looks whether this is the store that this process works with, and the cluster that was accepted. Only reads, so a member
   * that fails at it did nothing.
   *
   * INVARIANT: all that is judged was said over one connection.
   */
  async prove(member: Member, ask: Ask): Promise<Standing> {
    const sentAt = this.#guard.seen;
    const success = (["store", "term", "room"] as const).map((name) => ({
      range: { key: this.#keys.one(name) },
    }));
    try {
      const { header, answers } = await ask("txn", { compare: [], success, failure: [] });
      const { connection } = member;
      const status = await ask("status", {});
      if (header === null) throw new CallFailure("not done", member.at, "no header");
      if (header.memberId !== status.header.memberId) throw balanced(member);
      const [store, term, room] = answers.map(({ range }) => range?.kvs[0]);
      const recordedTerm = BigInt(term?.value.toString() ?? "0");
      const written = room?.modRevision ?? "0";
      const revision = BigInt(header.revision);
      const sight = {
        clusterId: header.clusterId,
        revision,
        term: BigInt(status.raftTerm),
        lead: BigInt(status.raftIndex) - revision,
        written: BigInt(written),
      };
      const record = await this.#recordOf(member, store, sight, sentAt, connection);
      if (member.connection !== connection) {
        throw new CallFailure("not done", member.at, "the connection ended");
      }
      const { fenced, lost } = this.#guard.judge(record, recordedTerm, sight, sentAt);
      if (fenced === "" && isElected(status)) this.#guard.elected(record, sight.term);
      const standing = {
        record,
        value: store?.value ?? Buffer.of(),
        modRevision: store?.modRevision ?? "0",
        fenced,
        lost,
        written,
        recordedTerm,
        termModRevision: term?.modRevision ?? "0",
        status,
      };
      if (fenced === "") member.prove();
      else member.isProved = false;
      return standing;
    } catch (error) {
      throw isPassing(error) ? new CallFailure("not done", member.at, error.said) : error;
    }
  }

  /** The key `store`, when it is that of the store that this process works with. A member of another one is set aside. */
  async #recordOf(
    member: Member,
    store: KeyValue | undefined,
    sight: Sight,
    sentAt: Moment,
    connection: number,
  ): Promise<StoreRecord> {
    const record = store === undefined ? undefined : recordFrom(store.value);
    if (record !== undefined && (await this.#believes(record.storeId))) return record;
    const { id } = this.#pin;
    if (record === undefined && (id === undefined || this.#guard.hasLost(sight, sentAt))) {
      throw storeHasNoRecord(this.#keys);
    }
    const its = placeOf(sight.clusterId, record?.storeId, this.#keys);
    throw member.setAside(notOf(member.at, id ?? "", its), connection);
  }

  async #believes(storeId: string): Promise<boolean> {
    try {
      await this.#pin.believe(storeId);
      return true;
    } catch (error) {
      if (error instanceof IdmintError && isForeign(error)) return false;
      throw error;
    }
  }
}

/** Its other keys may be there, and nobody knows which ids they are of: an accept would have nothing to go by. */
export function storeHasNoRecord(keys: Keys): IdmintError {
  const key = keys.one("store").toString();
  return storeIsAnother(
    `the key ${key}, by which servers know their store, is gone: first put etcd's data back from a backup`,
  );
}

/** A cluster and the store in it, in words. */
export function placeOf(clusterId: string, storeId: string | undefined, keys: Keys): string {
  const its = storeId === undefined ? "without a store" : `with the store ${storeId}`;
  return `cluster ${hexOf(clusterId)} ${its} below ${keys.prefix}`;
}

export function notOf(at: string, storeId: string, place: string): string {
  return `the etcd at ${at} is passed over, since it is not of the store ${storeId}: it is ${place}`;
}

/** A cluster's id as etcdctl writes it. */
export function hexOf(id: string): string {
  return BigInt(id).toString(16);
}

function balanced(member: Member): CallFailure {
  return new CallFailure(
    "refused",
    member.at,
    "calls of one connection reach several members; name the members themselves in store.url, not what spreads calls over them",
  );
}
