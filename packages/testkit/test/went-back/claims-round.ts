// One round of a fleet whose store goes back under load and is accepted again, and what was given meanwhile.
import { rm } from "node:fs/promises";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import { Fleet } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { Crew, type Life, now, TAGS } from "./claims-crew.ts";
import type { seededRandom } from "../fleet-support.ts";

/** A store of its own, and a way in which it goes back. */
export interface SetBack {
  readonly way: string;
  readonly storeUrl: string;
  /** Keeps the store as it is now; servers run and are asked. */
  readonly backUp: (floors: ReadonlyMap<string, bigint>) => Promise<void>;
  /** Puts the kept state in the place of the present one. */
  readonly restore: () => Promise<void>;
  /** What else an accept has to be told. */
  readonly acceptWords?: readonly string[];
  /** Whether what it puts there may not fit together, so that nobody can accept it. */
  readonly mayDamage?: boolean;
  readonly close?: () => Promise<void>;
}

export interface RoundResult {
  readonly ids: number;
  /** Why the round proves nothing; empty: it does. */
  readonly unmet: readonly string[];
  readonly repeats: readonly string[];
  /** From the end of the accept until each server issues of each tag again. */
  readonly backMs: number;
}

type Random = Pick<ReturnType<typeof seededRandom>, "below">;

/** Small, so that servers ask their store all the time. */
const SEGMENT = { min: 20, max: 40 };
const MAX_GAP = 10_000;
/** Longer than any poll: whoever served before has seen what was granted in that time, and has renewed its row. */
const SEEN_MS = 3_000;
/** Until a server issues again: so long that only who hangs exceeds it. */
const BACK_MS = 60_000;
/** For an accept, on a machine that does much else. */
const ACCEPT_MS = 120_000;

interface Times {
  backedUpAt: number;
  setBackAt: number;
  restoredAt: number;
}

interface Told {
  readonly claims: {
    readonly servers: readonly { readonly instance: string; readonly told: string }[];
  } | null;
}

/** Sets a store back under load and accepts it. `folder`: for cache files. */
export async function goBackOnce(
  setBack: SetBack,
  random: Random,
  folder: string,
): Promise<RoundResult> {
  const { below } = random;
  const caches = [0, 1, 2].map((at) => {
    const hasCache = below(2) === 0;
    return hasCache ? { IDMINT_SNOWFLAKE_CACHE_FILE: path.join(folder, `cache-${at}`) } : {};
  });
  const fleet = await Fleet.start({ servers: 3, storeUrl: setBack.storeUrl, envOf: caches });
  const { api } = fleet.first;
  await api.createTag({ name: "segments", ...SEGMENT });
  await api.createSequence("strict");
  const crew = new Crew(fleet);
  crew.say(`caches: ${caches.map((each) => Object.keys(each).length).join("")}`);
  try {
    return await goBack(fleet, crew, setBack, random);
  } catch (thrown) {
    console.log(crew.describe());
    throw thrown;
  } finally {
    await crew.end();
    await fleet.close();
    await setBack.close?.();
    await rm(folder, { recursive: true, force: true });
    fleet.assertNoneCrashed();
  }
}

async function goBack(
  fleet: Fleet,
  crew: Crew,
  setBack: SetBack,
  { below }: Random,
): Promise<RoundResult> {
  const kept = await keepState(fleet, crew, setBack);
  const times: Times = { backedUpAt: now(), setBackAt: 0, restoredAt: 0 };
  crew.say("kept");
  // Nobody runs while a store is put back and accepted; else some are restarted and new.
  const isCold = below(6) === 0;
  const faults = faultsOf(fleet, crew, below);
  await Promise.all(faults.filter(({ isEarly }) => isEarly).map(({ run }) => run(below(1_000))));
  for (const server of crew.servers) {
    await until(`${server.name} serves`, () => crew.draw(server), { withinMs: BACK_MS });
  }
  await pause(SEEN_MS + 200 + below(1_500));
  if (isCold) await Promise.all(crew.servers.map((server) => crew.kill(server)));
  times.setBackAt = now();
  crew.say(`set back: ${setBack.way}`);
  await setBack.restore();
  times.restoredAt = now();
  crew.say("restored");
  const late = isCold ? [] : faults.filter(({ isEarly }) => !isEarly);
  const ended = Promise.all(
    late.map(({ run }) => run(below(2) === 0 ? below(SEEN_MS) : SEEN_MS + below(4_000))),
  );
  await pause(below(2) === 0 ? below(500) : below(5_000));
  // Of those that were killed nobody can be asked.
  const hasDead = isCold || (faults.length > 0 && below(4) > 0);
  const gap = hasDead ? MAX_GAP : below(2) === 0 ? 0 : below(MAX_GAP + 1);
  const told = await accept(fleet, crew, setBack, gap);
  const acceptedAt = now();
  await ended;
  for (const server of crew.servers) crew.up(server);
  if (told === undefined) return resultOf(crew, ["the store is damaged"], 0);
  const backMs = await issueAgain(crew, acceptedAt);
  await pause(1_500);
  const spoken = (told.claims?.servers ?? [])
    .filter((its) => its.told === "all" || its.told === "since")
    .map(({ instance }) => instance.slice(instance.indexOf(":") + 1));
  const proof = { kept, gap: BigInt(gap), acceptedAt, spoken: new Set(spoken), isCold };
  return resultOf(crew, unmetOf(crew, times, proof), backMs);
}

interface Fault {
  /** Before the store goes back, in the time that it will lose; else after it, maybe before anybody saw it or while it is accepted. */
  readonly isEarly: boolean;
  readonly run: (inMs: number) => Promise<void>;
}

/** Servers that are restarted, two at most, and one that is new. */
function faultsOf({ servers }: Fleet, crew: Crew, below: Random["below"]): readonly Fault[] {
  const victims = servers.filter(() => below(3) === 0).slice(0, 2);
  const restarts = victims.map((server): Fault => {
    const [isEarly, downMs] = [below(2) === 0, below(1_500)];
    return { isEarly, run: async (inMs) => pause(inMs).then(() => crew.kill(server, downMs)) };
  });
  if (below(3) > 0) return restarts;
  return [
    ...restarts,
    { isEarly: below(2) === 0, run: (inMs) => pause(inMs).then(() => crew.add()) },
  ];
}

/** The floors of all tags, and the store as it is then or a little later. */
async function keepState(
  { servers, first }: Fleet,
  crew: Crew,
  { backUp }: SetBack,
): Promise<ReadonlyMap<string, bigint>> {
  for (const server of servers) {
    await until(`${server.name} issues`, () => crew.draw(server), { withinMs: BACK_MS });
  }
  const floors = new Map<string, bigint>();
  for (const tag of TAGS) floors.set(tag, (await first.api.getTag(tag)).floor);
  await backUp(floors);
  return floors;
}

/** Undefined: the store is damaged. */
async function accept(
  fleet: Fleet,
  crew: Crew,
  { acceptWords = [], mayDamage = false }: SetBack,
  gap: number,
): Promise<Told | undefined> {
  crew.say(`accept --gap ${gap}`);
  const words = ["store", "accept", "--gap", String(gap), "--yes", "--json", ...acceptWords];
  for (const end = now() + ACCEPT_MS; ;) {
    try {
      const told = JSON.parse(await fleet.cli(...words)) as Told;
      crew.say(`accepted: ${JSON.stringify(told.claims)}`);
      return told;
    } catch (error) {
      const text = String(error);
      if (mayDamage && text.includes("damaged")) return undefined;
      // A command that hears nothing in time is given again, as its exit code says.
      if (!text.includes("exit code 4") || now() > end) throw error;
      crew.say("the store did not answer: accept again");
    }
  }
}

async function issueAgain(crew: Crew, acceptedAt: number): Promise<number> {
  const again = crew.servers.map((server) =>
    until(`${server.name} issues again`, () => crew.draw(server), { withinMs: BACK_MS }),
  );
  await Promise.all(again);
  crew.say("all issue again");
  return now() - acceptedAt;
}

interface Proof {
  readonly kept: ReadonlyMap<string, bigint>;
  readonly gap: bigint;
  readonly acceptedAt: number;
  /** Addresses of servers that said all that they were granted. */
  readonly spoken: ReadonlySet<string>;
  readonly isCold: boolean;
}

/** What is promised only under conditions, and which of these are not met. */
function unmetOf(
  { lives, given }: Crew,
  { backedUpAt, setBackAt, restoredAt }: Times,
  { kept, gap, acceptedAt, spoken, isCold }: Proof,
): readonly string[] {
  const unmet: string[] = [];
  const knows = ({ servedAt, endedAt }: Life): boolean =>
    Math.max(servedAt, backedUpAt) + SEEN_MS <= setBackAt && endedAt > acceptedAt;
  if (!isCold && !lives.some((life) => knows(life))) unmet.push("nobody saw it go back");
  for (const { name, spawnedAt, servedAt, endedAt } of lives) {
    const isUnaware = servedAt > setBackAt && endedAt > setBackAt;
    // One that starts later waits for who saw it go back.
    if (!isCold && isUnaware && spawnedAt < restoredAt) unmet.push(`${name} started meanwhile`);
  }
  const isHeard = ({ server, spawnedAt, endedAt }: Life): boolean =>
    (endedAt > acceptedAt && spoken.has(server.address)) || spawnedAt > acceptedAt;
  const unheard = new Set(lives.filter((life) => !isHeard(life)));
  for (const [tag, floor] of kept) {
    const missing = given.highest(tag, unheard, acceptedAt) - floor - gap;
    if (missing > 0n) unmet.push(`the gap lacks ${missing} ids of ${tag}`);
  }
  return unmet;
}

function resultOf(crew: Crew, unmet: readonly string[], backMs: number): RoundResult {
  const { count: ids, repeats } = crew.given;
  const all = [...crew.said, ...unmet.map((each) => `no proof: ${each}`)];
  console.log(`${all.join("\n")}\n${ids} ids, ${repeats.length} repeats, back after ${backMs} ms`);
  if (repeats.length > 0) console.log(repeats.slice(0, 20).join("\n"));
  if (repeats.length > 0 && unmet.length === 0) console.log(crew.describe());
  return { ids, unmet, repeats, backMs };
}

/** What all rounds must show. */
export function expectProof(results: readonly RoundResult[]): void {
  const proofs = results.filter(({ unmet }) => unmet.length === 0);
  const ids = results.reduce((sum, each) => sum + each.ids, 0);
  const others = results.filter(({ unmet }) => unmet.length > 0);
  console.log({
    rounds: results.length,
    proofs: proofs.length,
    ids,
    repeatsInProofs: proofs.reduce((sum, { repeats }) => sum + repeats.length, 0),
    repeatsInOthers: others.reduce((sum, { repeats }) => sum + repeats.length, 0),
    longestBackMs: Math.max(...results.map(({ backMs }) => backMs)),
  });
  expect(proofs.flatMap(({ repeats }) => repeats)).toEqual([]);
  expect(ids).toBeGreaterThan(100 * results.length);
  // One round alone may be none.
  if (results.length > 1) expect(proofs.length).toBeGreaterThan(results.length / 2);
}
