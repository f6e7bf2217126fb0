/** Something about a database that keeps servers from their work, or may some day. */
export interface StoreFinding {
  /** One word for scripts. */
  readonly name: "encoding" | "full" | "horizon" | "pooler" | "read_only" | "rights" | "unlogged";
  /** Servers do not serve as long as it is so. */
  readonly isFatal: boolean;
  readonly found: string;
  /** What to do about it. */
  readonly fix: string;
}

/** What `idmint store status` shows. */
export interface StoreStatus {
  readonly backend: string;
  /** Version of the schema found; 0: none. */
  readonly schemaVersion: number;
  /** Version of the schema that this release was built for. */
  readonly knownSchemaVersion: number;
  /** Why this release cannot work with the schema, in words; empty when it can. */
  readonly schemaIllness: string;
  /** The random name that the store got when it was made. Empty without a schema. */
  readonly storeId: string;
  /** The random name of the store's history. Every accept changes it. */
  readonly incarnation: string;
  readonly revision: bigint;
  /** Since when an operator has stopped all servers, RFC 3339; empty: they issue. */
  readonly stoppedTime: string;
  /** How many tags there are, tombstones included. */
  readonly tags: number;
  /** The identity that was accepted, and the present one. */
  readonly acceptedIdentity: string;
  readonly presentIdentity: string;
  /** Why nothing is granted; empty when all is well. */
  readonly fenced: string;
  /** Tags that all servers refuse, with the reason, in words; absent or empty: none that the store itself shows. */
  readonly refusedTags?: string;
  /**
   * Standbys that every answer waits for, with commas between them; one of them is accepted by itself when it is promoted.
   * Empty: none are known to have everything.
   */
  readonly standbys: string;
  /** What is wrong with members of a cluster, in words. Absent: the store is no cluster. */
  readonly members?: readonly string[];
  /** What else is wrong with a database. Absent: the backend looks for nothing else. */
  readonly findings?: readonly StoreFinding[];
  /** Settings that are unsafe, allowed or not. */
  readonly unsafe: readonly string[];
  /** The store's own clock when it answered, milliseconds since 1970; undefined: it has none, or no schema yet. */
  readonly timeMs: number | undefined;
}

/** What is shown of a store that has no schema yet. */
export const NO_SCHEMA: Omit<
  StoreStatus,
  "backend" | "schemaVersion" | "knownSchemaVersion" | "schemaIllness"
> = {
  storeId: "",
  incarnation: "",
  revision: 0n,
  stoppedTime: "",
  tags: 0,
  acceptedIdentity: "",
  presentIdentity: "",
  fenced: "",
  standbys: "",
  unsafe: [],
  timeMs: undefined,
};

/** Tags whose names are told. */
const MAX_NAMED = 5;

/** `names`: all of them, or the first ones of `count`. */
export function refusedTagsText(names: readonly string[], count: number, why: string): string {
  if (count === 0) return "";
  const told = names.slice(0, MAX_NAMED);
  const more = count > told.length ? ` and ${count - told.length} more` : "";
  return `${count === 1 ? "one tag" : `${count} tags`}, ${why}: ${told.join(", ")}${more}`;
}
