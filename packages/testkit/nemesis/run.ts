// One run: sites are started, things befall them as planned, and then their histories are judged.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Dice } from "../sim/world/random.ts";
import { OTHER_FAULTS } from "./faults/others.ts";
import { NETWORK_FAULTS, SERVER_FAULTS } from "./faults/servers.ts";
import { Journal } from "./journal.ts";
import type { Case } from "./judge/judge.ts";
import { type Lane, type PlannedFault, planOf, type Possible } from "./plan.ts";
import { Site, type Stage } from "./sites/site.ts";

export interface RunOptions {
  readonly seed: string;
  readonly minutes: number;
  /** For the histories. */
  readonly out: string;
  readonly stages: readonly (() => Promise<Stage>)[];
  /** Words that begin the caller in Python. */
  readonly python?: readonly string[] | undefined;
  readonly print: (line: string) => void;
}

/** The last one that is told of is the newest. */
export interface Ran extends AsyncDisposable {
  readonly journal: Journal;
  readonly cases: readonly Case[];
}

/** Runs all sites at once. What is answered is for the judges, who need the servers: close it. */
export async function run(options: RunOptions): Promise<Ran> {
  const { seed, minutes, out, stages, python, print } = options;
  const journal = new Journal();
  const sites: Site[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(sites.map((site) => site[Symbol.asyncDispose]()));
  };
  try {
    // One after the other: all at once they starve each other on two cores, and elections and leases end.
    for (const begin of stages) {
      const stage = await begin();
      sites.push(await Site.start(stage, journal, out, python));
      print(`${stage.name} is up`);
    }
    const plan = planOf(seed, minutes, sites.map(possibleAt));
    const startedAt = performance.now();
    await Promise.all(sites.flatMap((site) => lanesOf(options, plan, site, startedAt)));
    await pause(Math.max(0, startedAt + minutes * 60_000 - performance.now()));
    print("all faults are over");
    await Promise.all(sites.map((site) => site.settled()));
    await Promise.all(sites.flatMap(({ callers }) => callers.map((caller) => caller.stop())));
    for (const { fleet } of sites) fleet.assertNoneCrashed();
    return { journal, cases: sites.map(caseOf(journal)), [Symbol.asyncDispose]: close };
  } catch (thrown) {
    for (const { fleet, folder } of sites)
      writeFileSync(path.join(folder, "servers.log"), fleet.describe());
    await close();
    throw thrown;
  }
}

function possibleAt({ stage }: Site): Possible {
  const network = stage.ports.length > 0 ? NETWORK_FAULTS : {};
  return {
    site: stage.name,
    servers: stage.servers,
    kinds: {
      servers: [...Object.keys(SERVER_FAULTS), ...Object.keys(network)],
      store: Object.keys(stage.faults),
      others: Object.keys(OTHER_FAULTS),
    },
  };
}

/** In each lane one fault after the other. */
function lanesOf(
  { minutes, print }: Pick<RunOptions, "minutes" | "print">,
  plan: readonly PlannedFault[],
  site: Site,
  begun: number,
): readonly Promise<void>[] {
  const lanes: readonly Lane[] = ["servers", "store", "others"];
  return lanes.map(async (lane) => {
    for (const fault of plan) {
      if (fault.site !== site.name || fault.lane !== lane) continue;
      await pause(Math.max(0, begun + fault.atMs - performance.now()));
      // A busy machine takes longer for each, and what is left then is left out.
      if (performance.now() > begun + minutes * 60_000) return;
      const at = Math.round(performance.now() - begun);
      try {
        await inject(site, fault);
      } catch (cause) {
        throw new Error(`${site.name}: ${fault.kind} (${fault.place})`, { cause });
      }
      const tookMs = Math.round(performance.now() - begun) - at;
      print(`${at} ms: ${site.name}: ${fault.kind} (${fault.place + 1}), ${tookMs} ms`);
    }
  });
}

async function inject(site: Site, { lane, kind, place, seed }: PlannedFault): Promise<void> {
  const dice = new Dice(seed);
  const server = site.servers[place];
  const isOver = site.note("fault", kind, lane === "servers" ? server?.name : "");
  if (lane === "store") await site.stage.faults[kind]?.(site, dice);
  else if (lane === "others") await OTHER_FAULTS[kind]?.(site, dice);
  else if (server !== undefined)
    await { ...SERVER_FAULTS, ...NETWORK_FAULTS }[kind]?.(site, server, dice);
  isOver();
}

function caseOf(journal: Journal): (site: Site) => Case {
  return ({ name, callers, stage, fleet }) => ({
    site: name,
    histories: callers.flatMap(({ histories }) => histories),
    tags: stage.tags,
    windows: journal.windows,
    servers: stage.servers,
    address: fleet.first.address,
    storeUrl: stage.storeUrl,
    hasLedger: stage.hasLedger,
  });
}
