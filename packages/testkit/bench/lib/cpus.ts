import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";

/**
 * Which cores the server and the generator run on: apart, so that neither takes the other's time. The generator has the
 * last core and the server the others; on one core, or without taskset, nobody is pinned.
 */
export interface Cores {
  readonly server: readonly string[];
  readonly generator: readonly string[];
  readonly arePinned: boolean;
}

function pin(list: string): readonly string[] {
  return ["taskset", "-c", list];
}

const UNPINNED: Cores = { server: [], generator: [], arePinned: false };

function findCores(): Cores {
  const count = availableParallelism();
  if (count < 2) return UNPINNED;
  const last = count - 1;
  const cores = { server: pin(`0-${last - 1}`), generator: pin(`${last}`), arePinned: true };
  const [command = "", ...args] = cores.generator;
  return spawnSync(command, [...args, "true"]).status === 0 ? cores : UNPINNED;
}

/** Prefixes of a command line that pin it. */
export let cores: Cores = findCores();

/** For runs that measure nothing, of which several share the cores. */
export function pinNobody(): void {
  cores = UNPINNED;
}
