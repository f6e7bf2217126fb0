// Kinds as lists of SQL, for statements that are about some of them.
import { comesFrom, countsToFloor, KIND_NAMES, type KindName } from "@idmint/core/kinds";

function listed(isListed: (of: { readonly kind: KindName }) => boolean): string {
  return KIND_NAMES.filter((kind) => isListed({ kind }))
    .map((kind) => `'${kind}'`)
    .join(", ");
}

/** Those whose unused ids go back. */
export const SEGMENTS: string = listed((kind) => comesFrom(kind, "segments"));
/** Those whose workers have leases. */
export const LEASING: string = listed((kind) => comesFrom(kind, "lease"));
/** Those whose ids the store grants, or bounds. */
export const GRANTED: string = listed(countsToFloor);
