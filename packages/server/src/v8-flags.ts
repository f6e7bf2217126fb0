// Flags of V8 that keep a server's garbage collections short, and its memory small. This is a module of its own, and imports
// nothing but Node, because it is the first thing that every command line and every process of a server loads.
import { performance } from "node:perf_hooks";
import { cachedDataVersionTag, getHeapSpaceStatistics, setFlagsFromString } from "node:v8";

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

/** Both halves of V8's young generation. Twice as much brings no more calls a second, and what a flood leaves takes as long. */
const YOUNG_BYTES = 32 * 1_024 * 1_024;
/** Share of the time in which a server works, above which it is worth the memory. */
const BUSY = 0.5;
const LOOK_MS = 250;
const GROW = "--semi-space-growth-factor=2";
const STAY = "--semi-space-growth-factor=1";

/**
 * Whether V8's young generation of `bytes` may be doubled in a process that works for this share of the time.
 *
 * V8 doubles it whenever much of it survives, to 128 MB. What a server reads at its start survives, and so does all that a
 * flood of calls keeps open: both would take that memory for good.
 */
export function mayGrow(bytes: number, utilization: number): boolean {
  return utilization > BUSY && bytes <= YOUNG_BYTES / 2;
}

/**
 * Keeps this process's young generation small until it has much to do. To be called before the rest is loaded, which would
 * make it grow. It keeps no process alive, and does nothing where this Node has no such flag.
 */
export function holdYoungGeneration(): void {
  if (set([GROW, STAY]) === "unavailable") return;
  let before = performance.eventLoopUtilization();
  let isGrowing = false;
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    const may = mayGrow(youngBytes(), utilization);
    if (may !== isGrowing) setFlagsFromString(may ? GROW : STAY);
    isGrowing = may;
  }, LOOK_MS).unref();
}

function youngBytes(): number {
  return (
    getHeapSpaceStatistics().find((space) => space.space_name === "new_space")?.space_size ?? 0
  );
}
