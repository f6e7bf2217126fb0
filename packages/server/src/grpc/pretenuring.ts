// One of the two cures of `gc-cures.ts`, which says what it is for. It is a module of its own, and imports nothing but
// node:v8, because it is the first thing that every command line and every process of a server loads.
import { cachedDataVersionTag, setFlagsFromString } from "node:v8";

/** active: applied, and seen to work. unavailable: this Node does not have what it takes, and runs as it always did. */
export type CureStatus = "not_applied" | "active" | "unavailable";

let pretenuring: CureStatus = "not_applied";

/** Whether this process has it. */
export function pretenuringCure(): CureStatus {
  return pretenuring;
}

const PRETENURING_OFF = "--no-allocation-site-pretenuring";
const PRETENURING_ON = "--allocation-site-pretenuring";
const FIRST_NODE_KNOWN = 22;

/**
 * Switches V8's allocation-site pretenuring off for this process. To be called before anything else runs: code that was
 * compiled before keeps what it learned. It is the same as `node --no-allocation-site-pretenuring`, which NODE_OPTIONS
 * refuses. Harmless when it is off already.
 *
 * V8 says nothing of its flags, but the tag under which it caches code is made from them: the flag exists where setting
 * it one way and the other gives two tags.
 */
export function applyPretenuringCure(): CureStatus {
  // V8 writes to stderr about a flag it does not know, so older ones, which were not tried, are not asked.
  if (Number.parseInt(process.versions.node, 10) < FIRST_NODE_KNOWN) {
    pretenuring = "unavailable";
    return pretenuring;
  }
  setFlagsFromString(PRETENURING_ON);
  const withPretenuring = cachedDataVersionTag();
  setFlagsFromString(PRETENURING_OFF);
  pretenuring = cachedDataVersionTag() === withPretenuring ? "unavailable" : "active";
  return pretenuring;
}
