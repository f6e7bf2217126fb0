// Servers that are killed and frozen at random while callers ask all of them.
import { setTimeout as pause } from "node:timers/promises";
import type { Fleet, FleetServer } from "../src/fleet/fleet.ts";

export interface Disturbances {
  readonly forMs: number;
  /** How long a server is frozen: one or the other. */
  readonly frozenMs: readonly [number, number];
  readonly below: (limit: number) => number;
  /** Something else that may happen before a step; what it did, or nothing. */
  readonly between?: () => Promise<string | undefined>;
}

const MIN_STEPS = 4;

/** Kills servers and starts them again, or freezes them. Two at most at a time, so that one is left alone. */
export async function disturbServers(
  { servers }: Fleet,
  { forMs, frozenMs: [short, long], below, between }: Disturbances,
): Promise<readonly string[]> {
  const steps: string[] = [];
  const busy = new Map<FleetServer, Promise<void>>();
  const end = performance.now() + forMs;
  // It ends when its time is over, and not before something happened: a busy machine restarts few servers in that time.
  while (performance.now() < end || steps.length < MIN_STEPS) {
    await pause(400);
    const other = await between?.();
    if (other !== undefined) steps.push(other);
    const server = servers[below(servers.length)];
    if (server === undefined || busy.has(server) || busy.size > 1) continue;
    const isKill = below(2) === 0;
    const frozenMs = below(2) === 0 ? short : long;
    steps.push(`${isKill ? "SIGKILL" : `SIGSTOP for ${frozenMs} ms`} ${server.name}`);
    const work = isKill ? restart(server) : freeze(server, frozenMs);
    const done = work.finally(() => busy.delete(server));
    busy.set(server, done);
    done.catch(() => undefined);
  }
  await Promise.all(busy.values());
  return steps;
}

async function restart(server: FleetServer): Promise<void> {
  await server.kill();
  await server.start();
}

async function freeze({ process }: FleetServer, frozenMs: number): Promise<void> {
  process.signal("SIGSTOP");
  await pause(frozenMs);
  process.signal("SIGCONT");
}
