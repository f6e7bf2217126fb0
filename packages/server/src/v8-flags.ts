// Flags of V8 that keep a server's garbage collections short. This is a module of its own, and imports nothing but node:v8,
// because it is the first thing that every command line and every process of a server loads.
import { cachedDataVersionTag, setFlagsFromString } from "node:v8";

/** active: set, and seen to work. unavailable: this Node does not have it, and runs as it always did. */
export type FlagStatus = "not_set" | "active" | "unavailable";

/** Each as it is without us, and as we set it. */
const FLAGS = {
  /**
   * V8 remembers per place in the code whether the objects made there live long, and makes further ones in the old space where
   * they do. Under load a call's objects outlive one collection now and then, so V8 comes to make all of them in the old
   * space, where they pile up and keep young ones alive.
   */
  pretenuring: ["--allocation-site-pretenuring", "--no-allocation-site-pretenuring"],
  /**
   * V8 lets the old space grow to several times what lives before it collects it. node:http2 makes a string in it for each
   * value of each call's headers, and each holds memory outside the heap: without the flag, a server of the grpc-js door
   * grew to 630 MB under full load, and then stood still for 0.4 s to free it. With half as much again as what lives it
   * takes 340 MB, and stands still for 0.05 s every three seconds.
   */
  heapGrowth: ["--heap-growing-percent=0", "--heap-growing-percent=50"],
} as const;

export type FlagStatuses = Readonly<Record<keyof typeof FLAGS, FlagStatus>>;

let flags: FlagStatuses = { pretenuring: "not_set", heapGrowth: "not_set" };

/** Which of them this process has. */
export function v8Flags(): FlagStatuses {
  return flags;
}

const FIRST_NODE_KNOWN = 22;

/**
 * Sets V8's flags for this process. To be called before anything else runs: code that was compiled before keeps what it
 * learned. It is the same as to give them to `node`, which NODE_OPTIONS refuses. Harmless when they are given already.
 */
export function setV8Flags(): FlagStatuses {
  flags = { pretenuring: set(FLAGS.pretenuring), heapGrowth: set(FLAGS.heapGrowth) };
  return flags;
}

/**
 * V8 says nothing of its flags, but the tag under which it caches code is made from them: a flag exists where setting it
 * one way and the other gives two tags.
 */
function set([without, wanted]: readonly [string, string]): FlagStatus {
  // V8 writes to stderr about a flag it does not know, so older ones, which were not tried, are not asked.
  if (Number.parseInt(process.versions.node, 10) < FIRST_NODE_KNOWN) return "unavailable";
  setFlagsFromString(without);
  const before = cachedDataVersionTag();
  setFlagsFromString(wanted);
  return cachedDataVersionTag() === before ? "unavailable" : "active";
}
