import { IdmintError } from "@idmint/core";
import type { Traffic } from "@idmint/core/server";

/**
 * What the databases say of a server after it was written in each of them. Where one has something newer than what was
 * seen, that is the answer. Throws when none of them answered.
 */
export function mergedTraffic(
  settled: readonly PromiseSettledResult<Traffic>[],
  wanted: Traffic,
): Traffic {
  const rows = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const others = rows.filter(
    ({ weight, isDraining }) => weight !== wanted.weight || isDraining !== wanted.isDraining,
  );
  const [newest] = (others.length > 0 ? others : rows).toSorted((a, b) =>
    a.revision > b.revision ? -1 : 1,
  );
  if (newest !== undefined) return newest;
  throw IdmintError.from(settled.find((one) => one.status === "rejected")?.reason);
}
