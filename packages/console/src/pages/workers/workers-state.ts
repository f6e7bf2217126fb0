import type { ResponseOf } from "../../api/json.ts";

export type Tag = ResponseOf<"TagService", "listTags">["tags"][number];
export type Worker = ResponseOf<"WorkerService", "listWorkers">["workers"][number];

/** Tags whose ids are made under leases of worker ids. The tables of kinds would double what the first view loads. */
export function leasing(tags: readonly Tag[]): readonly Tag[] {
  return tags.filter(({ snowflake }) => snowflake !== undefined && snowflake !== null);
}

/** How a lease is: held, ended, or ended and its reservation has not passed, so nobody gets it yet. */
export type LeaseState = "leased" | "reserved" | "free";

export function leaseStateOf(
  { leased, reservedUntilTime }: Pick<Worker, "leased" | "reservedUntilTime">,
  nowMs: number,
): LeaseState {
  if (leased) return "leased";
  return Date.parse(reservedUntilTime ?? "") > nowMs ? "reserved" : "free";
}

/** A worker id as it was typed; undefined: none, or no number. */
export function workerIdOf(typed: string): number | undefined {
  return /^\d{1,9}$/.test(typed) ? Number(typed) : undefined;
}

/** Data centers in the order in which they came, each with its workers. */
export function centersOf(
  workers: readonly Worker[],
): readonly { readonly dataCenter: number; readonly workers: readonly Worker[] }[] {
  const centers = Map.groupBy(workers, ({ dataCenter }) => dataCenter);
  return [...centers].map(([dataCenter, its]) => ({ dataCenter, workers: its }));
}
