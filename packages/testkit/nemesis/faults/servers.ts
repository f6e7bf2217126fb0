// What befalls a server, one at a time on each site, so that another one can always be reached.
import { setTimeout as pause } from "node:timers/promises";
import type { FleetServer } from "../../src/fleet/fleet.ts";
import type { Dice } from "../../sim/world/random.ts";
import type { Way } from "../link.ts";
import type { Site, SiteServer } from "../sites/site.ts";

/** It resolves when the server is well again. */
type ServerFault = (site: Site, server: SiteServer, dice: Dice) => Promise<void>;

/** A standby is made anew meanwhile. */
const START_MS = 60_000;
const WAYS: readonly (readonly Way[])[] = [["there"], ["back"], ["there", "back"]];

async function kill(site: Site, { name, server }: SiteServer, dice: Dice): Promise<void> {
  const isBack = site.note("server", "kill-server", name);
  await server.kill();
  await pause(dice.int(0, 1_500));
  await start(server);
  isBack();
}

async function restart(site: Site, { name, server }: SiteServer): Promise<void> {
  const isBack = site.note("server", "stop-server", name);
  const { code } = await server.stop();
  if (code !== 0) throw new Error(server.describe());
  await start(server);
  isBack();
}

/**
 * As a service manager does: a PostgreSQL that was promoted a moment ago waits for no standby yet, and servers do not start on it until
 * it does.
 */
async function start(server: FleetServer): Promise<void> {
  const end = performance.now() + START_MS;
  for (;;) {
    try {
      await server.start();
      return;
    } catch (thrown) {
      const isUnsafe = server.process.stderr.includes("STORE_UNSAFE");
      if (!isUnsafe || performance.now() > end) throw thrown;
    }
    await pause(250);
  }
}

async function freeze(site: Site, { name, server }: SiteServer, dice: Dice): Promise<void> {
  const isBack = site.note("server", "freeze-server", name);
  server.process.signal("SIGSTOP");
  // Shorter and longer than an SDK waits, and than time is reserved for snowflakes.
  await pause(dice.pick([200, 700, 1_500, 4_000]));
  server.process.signal("SIGCONT");
  isBack();
}

async function cutCallers(site: Site, { name, doors }: SiteServer, dice: Dice): Promise<void> {
  const isBack = site.note("server", "cut-callers", name);
  const ways = dice.pick(WAYS);
  for (const door of doors) door.cut(ways);
  await pause(dice.int(500, 4_000));
  for (const door of doors) door.mend();
  isBack();
}

async function slowCallers(_site: Site, { doors }: SiteServer, dice: Dice): Promise<void> {
  const delayMs = dice.int(20, 300);
  for (const door of doors) door.delayMs = delayMs;
  await pause(dice.int(1_000, 4_000));
  for (const door of doors) door.delayMs = 0;
}

async function cutStore(_site: Site, { ways }: SiteServer, dice: Dice): Promise<void> {
  const directions = dice.pick(WAYS);
  for (const way of ways) way.cut(directions);
  await pause(dice.int(500, 5_000));
  for (const way of ways) way.mend();
}

async function slowStore(_site: Site, { ways }: SiteServer, dice: Dice): Promise<void> {
  const delayMs = dice.int(10, 150);
  for (const way of ways) way.delayMs = delayMs;
  await pause(dice.int(1_000, 4_000));
  for (const way of ways) way.delayMs = 0;
}

async function stepClock(site: Site, _server: SiteServer, dice: Dice): Promise<void> {
  const clock = site.servers.find((server) => server.clock !== undefined)?.clock;
  clock?.set(dice.pick([-5_000, -1_000, -50, 50, 1_000, 5_000]));
  await pause(dice.int(500, 3_000));
  clock?.set(0);
}

async function rollingRestart(site: Site): Promise<void> {
  for (const server of site.servers) await restart(site, server);
}

/** By kind. */
export const SERVER_FAULTS: Readonly<Record<string, ServerFault>> = {
  "kill-server": kill,
  "stop-server": restart,
  "freeze-server": freeze,
  "cut-callers": cutCallers,
  "slow-callers": slowCallers,
  "step-clock": stepClock,
  "rolling-restart": rollingRestart,
};

/** Where there is a network between servers and their store. */
export const NETWORK_FAULTS: Readonly<Record<string, ServerFault>> = {
  "cut-store": cutStore,
  "slow-store": slowStore,
};
