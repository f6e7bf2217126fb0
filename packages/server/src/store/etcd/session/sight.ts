import { storeUnavailable } from "@idmint/core/server";
import { isElected } from "../cluster/guard-state.ts";
import type { KeyValue, Range, StatusAnswer } from "../cluster/protocol.ts";
import type { Session } from "./etcd.ts";

/** A cluster as it is now, to be recorded as the accepted one. */
interface PresentSight {
  readonly clusterId: string;
  /** Not above the lead that it has: the index is asked for before the revision, which only grows. */
  readonly lead: bigint;
  /** A term that a leader was elected in; 0n where the member was not sure. */
  readonly term: bigint;
  readonly status: StatusAnswer;
}

export async function sightOf({ etcd, deadlineMs, keys }: Session): Promise<PresentSight> {
  return etcd.ask(deadlineMs, async (ask) => {
    const status = await ask("status", {});
    const { header } = await ask("range", { key: keys.one("store") });
    if (header === null) throw storeUnavailable("etcd answers without a header");
    const term = isElected(status) ? BigInt(status.raftTerm) : 0n;
    const lead = BigInt(status.raftIndex) - BigInt(header.revision);
    return { clusterId: header.clusterId, lead, term, status };
  });
}

/** Keys of whatever cluster answers, whether it is the accepted one or not. */
export async function readUnproved(
  { etcd, deadlineMs }: Session,
  ranges: readonly Range[],
): Promise<readonly (KeyValue | undefined)[]> {
  return etcd.ask(deadlineMs, async (ask) => {
    const success = ranges.map((range) => ({ range }));
    const { answers } = await ask("txn", { compare: [], success, failure: [] });
    return answers.map(({ range }) => range?.kvs[0]);
  });
}
