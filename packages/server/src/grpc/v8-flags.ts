// The cures of `gc-cures.ts` that are flags of V8, which says there what they are for. It is a module of its own, and
// imports nothing but node:v8, because it is the first thing that every command line and every process of a server loads.
import { cachedDataVersionTag, setFlagsFromString } from "node:v8";

/** active: applied, and seen to work. unavailable: this Node does not have what it takes, and runs as it always did. */
export type CureStatus = "not_applied" | "active" | "unavailable";

/** Each as it is without the cure, and with it. */
const FLAGS = {
  pretenuring: ["--allocation-site-pretenuring", "--no-allocation-site-pretenuring"],
  heapGrowth: ["--heap-growing-percent=0", "--heap-growing-percent=50"],
} as const;

export type FlagCures = Readonly<Record<keyof typeof FLAGS, CureStatus>>;

let cures: FlagCures = { pretenuring: "not_applied", heapGrowth: "not_applied" };

/** Which of them this process has. */
export function flagCures(): FlagCures {
  return cures;
}

const FIRST_NODE_KNOWN = 22;

/**
 * Sets V8's flags for this process. To be called before anything else runs: code that was compiled before keeps what it
 * learned. It is the same as to give them to `node`, which NODE_OPTIONS refuses. Harmless when they are given already.
 */
export function applyFlagCures(): FlagCures {
  cures = { pretenuring: apply(FLAGS.pretenuring), heapGrowth: apply(FLAGS.heapGrowth) };
  return cures;
}

/**
 * V8 says nothing of its flags, but the tag under which it caches code is made from them: a flag exists where setting it
 * one way and the other gives two tags.
 */
function apply([without, cure]: readonly [string, string]): CureStatus {
  // V8 writes to stderr about a flag it does not know, so older ones, which were not tried, are not asked.
  if (Number.parseInt(process.versions.node, 10) < FIRST_NODE_KNOWN) return "unavailable";
  setFlagsFromString(without);
  const before = cachedDataVersionTag();
  setFlagsFromString(cure);
  return cachedDataVersionTag() === before ? "unavailable" : "active";
}
