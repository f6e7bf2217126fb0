import { IdmintError } from "@idmint/core";
import { storeUnavailable } from "@idmint/core/server";
import { CallFailure } from "../cluster/failure.ts";
import { isElected, type StoreRecord } from "../cluster/guard-state.ts";
import type { KeyValue, Range, StatusAnswer } from "../cluster/protocol.ts";
import type { Etcd, Session } from "./etcd.ts";
import { notOf, placeOf } from "./proof.ts";
import { recordFrom } from "./rows.ts";

/** A cluster as it is now, to be recorded as the accepted one. */
interface PresentCluster {
  readonly clusterId: string;
  /** Not above the lead that it has: the index is asked for before the revision, which only grows. */
  readonly lead: bigint;
  /** A term that a leader was elected in; 0n where the member was not sure. */
  readonly term: bigint;
  readonly status: StatusAnswer;
}

export async function readCluster({ etcd, deadlineMs, keys }: Session): Promise<PresentCluster> {
  return etcd.ask(deadlineMs, async (ask) => {
    const status = await ask("status", {});
    const { header } = await ask("range", { key: keys.one("store") });
    if (header === null) throw storeUnavailable("etcd answers without a header");
    const term = isElected(status) ? BigInt(status.raftTerm) : 0n;
    const lead = BigInt(status.raftIndex) - BigInt(header.revision);
    return { clusterId: header.clusterId, lead, term, status };
  });
}

/** Keys of the cluster, whether it is the accepted one or not. */
export async function readPlainly(
  { etcd, deadlineMs }: Session,
  ranges: readonly Range[],
): Promise<readonly (KeyValue | undefined)[]> {
  return etcd.ask(deadlineMs, async (ask) => {
    const success = ranges.map((range) => ({ range }));
    const { answers } = await ask("txn", { compare: [], success, failure: [] });
    return answers.map(({ range }) => range?.kvs[0]);
  });
}

/** Which cluster an address leads to, and which store it has. */
interface Place {
  readonly clusterId: string;
  readonly storeId: string | undefined;
}

/** Asks every member of what it is, all at once; those that are silent for a while tell why they say nothing. */
async function placesOf(etcd: Etcd): Promise<ReadonlyMap<string, CallFailure | Place>> {
  return etcd.askAll(async (ask): Promise<Place> => {
    const { header, kvs } = await ask("range", { key: etcd.keys.one("store") });
    if (header === null) throw storeUnavailable("etcd answers without a header");
    const [store] = kvs;
    const storeId = store === undefined ? undefined : recordFrom(store.value).storeId;
    return { clusterId: header.clusterId, storeId };
  });
}

/**
 * Refuses members of several clusters, where nothing says yet which of them is meant. A member that is silent is no reason:
 * it proves itself before it is used.
 */
export async function requireOneCluster(etcd: Etcd): Promise<void> {
  if (etcd.pin.id !== undefined) return;
  const answered = [...(await placesOf(etcd))].flatMap(([at, place]) =>
    place instanceof CallFailure ? [] : [{ at, ...place }],
  );
  const clusters = new Set(answered.map(({ clusterId }) => clusterId));
  const stores = new Set(answered.flatMap(({ storeId }) => storeId ?? []));
  if (clusters.size <= 1 && stores.size <= 1) return;
  const all = answered.map(
    ({ at, clusterId, storeId }) => `${at} is ${placeOf(clusterId, storeId, etcd.keys)}`,
  );
  throw new IdmintError(
    "STORE_REFUSED",
    `the members in store.url are not of one cluster: ${all.join("; ")}; name the members of one cluster, or have servers know their store by store.expect_id`,
  );
}

/** Why a member is not used; empty: it is of the store, or silent. */
function troubleOf(
  etcd: Etcd,
  at: string,
  its: CallFailure | Place,
  accepted: string | undefined,
): string {
  const { id } = etcd.pin;
  if (its instanceof CallFailure || id === undefined) return "";
  const place = placeOf(its.clusterId, its.storeId, etcd.keys);
  if (its.storeId !== id) return notOf(at, id, place);
  if (accepted === undefined || its.clusterId === accepted) return "";
  return `the etcd at ${at} is a copy of the store, restored or cloned: ${place}`;
}

/** What is wrong with members, in words. Without a pin the store that most of them have is the one that is meant. */
export async function memberTroubles(etcd: Etcd): Promise<readonly string[]> {
  const places = [...(await placesOf(etcd))];
  const ids = places.flatMap(([, its]) => (its instanceof CallFailure ? [] : (its.storeId ?? [])));
  const countOf = (id: string): number => ids.filter((its) => its === id).length;
  const [most] = ids.toSorted((a, b) => countOf(b) - countOf(a));
  if (etcd.pin.id === undefined && most !== undefined) await etcd.pin.believe(most);
  return places
    .map(([at, its]) =>
      its instanceof CallFailure
        ? `the etcd at ${at} does not answer: ${its.said}`
        : troubleOf(etcd, at, its, undefined),
    )
    .filter((text) => text !== "");
}

/** How often members are looked at that are not asked, in milliseconds. */
const LOOK_MS = 10_000;

/**
 * Looks now and then at members that are not asked, so that one of another store is named before it is needed. Only names
 * them: whoever is asked proves itself. Nobody waits for it.
 */
export function lookAround(etcd: Etcd, { clusterId }: StoreRecord): void {
  const now = performance.now();
  if (now < etcd.lookAroundAt) return;
  etcd.lookAroundAt = now + LOOK_MS;
  const look = async (): Promise<void> => {
    for (const [at, its] of await placesOf(etcd)) {
      etcd.name(at, troubleOf(etcd, at, its, clusterId));
    }
  };
  look().catch(() => undefined);
}
