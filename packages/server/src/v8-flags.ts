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
/** How long there is not much to do before memory is given back, and how long it is left alone then. */
const QUIET_MS = 10_000;
const BETWEEN_MS = 30_000;
/** A look at which there is much to do counts as much as so many others. */
const BUSY_LOOKS = 4;
/** A young generation above this is worth it. */
const WORTH_BYTES = YOUNG_BYTES / 4;
/** V8 begins to collect, in small steps, when so much memory was taken outside of its heap. */
const PRESSURE_BYTES = 96 * 1_024 * 1_024;
const GROW = "--semi-space-growth-factor=2";
const GIVE_PAGES = "--optimize-for-size";
const KEEP_PAGES = "--no-optimize-for-size";
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
 * Whether it is worth to give memory back, with a young generation of `bytes`.
 *
 * V8 collects nothing in a process that has nothing to do, so it would keep for good what a flood or an hour of much load made.
 */
export function mayGiveBack(bytes: number, quietForMs: number, sinceMs: number): boolean {
  return bytes > WORTH_BYTES && quietForMs >= QUIET_MS && sinceMs >= BETWEEN_MS;
}

/**
 * Keeps this process's young generation small until it has much to do, and gives memory back some time after. To be called
 * before the rest is loaded, which would make it grow. It keeps no process alive, and does nothing where this Node has no such
 * flag.
 */
export function holdYoungGeneration(): void {
  if (set([GROW, STAY]) === "unavailable") return;
  let before = performance.eventLoopUtilization();
  let isGrowing = false;
  let quietForMs = 0;
  let sinceMs = BETWEEN_MS;
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    const bytes = youngBytes();
    quietForMs = Math.max(0, quietForMs + (utilization > BUSY ? -BUSY_LOOKS : 1) * LOOK_MS);
    sinceMs += LOOK_MS;
    if (mayGiveBack(bytes, quietForMs, sinceMs)) {
      sinceMs = 0;
      giveMemoryBack();
    }
    const may = mayGrow(bytes, utilization);
    if (may !== isGrowing) setFlagsFromString(may ? GROW : STAY);
    isGrowing = may;
  }, LOOK_MS).unref();
}

/**
 * Lets V8 collect once, bit by bit beside the calls, and give the pages back to the system that it does not need any more.
 *
 * V8 has no call for that. It does it by itself under pressure from outside of its heap, with the flag. The memory that makes
 * the pressure is never touched, so the system never has to find it.
 */
export function giveMemoryBack(): void {
  if (set([KEEP_PAGES, GIVE_PAGES]) === "unavailable") return;
  try {
    // Nobody needs it; that it is taken is all.
    void new ArrayBuffer(PRESSURE_BYTES);
  } finally {
    setFlagsFromString(KEEP_PAGES);
  }
}

function youngBytes(): number {
  return (
    getHeapSpaceStatistics().find((space) => space.space_name === "new_space")?.space_size ?? 0
  );
}
