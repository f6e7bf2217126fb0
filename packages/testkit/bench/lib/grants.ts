// Callers of a store in a process of their own, without a server around it. Usage: grants.ts '{"storeUrl":"…",…}'. Writes one
// line of JSON.
import { MAX_ID } from "@idmint/core";
import { loadConfig, openStore, storeConfigOf } from "@idmint/server";
import { percentile } from "./statistics.ts";

/** What is asked for. */
export interface Grants {
  readonly storeUrl: string;
  /** Callers, each of which asks for one grant after the other. */
  readonly callers: number;
  /** Tags of each call. */
  readonly tags: number;
  /** Whether all callers ask for the same tags. */
  readonly sharesTags: boolean;
  readonly seconds: number;
}

/** What came of it. */
export interface GrantsMade {
  readonly perSecond: number;
  /** Milliseconds that so many of the calls took at most. */
  readonly p50: number;
  readonly p99: number;
}

const SETTINGS = {
  description: "",
  order: "UNORDERED",
  ceiling: MAX_ID,
  kind: {
    kind: "segment",
    start: 1n,
    min: 1_000,
    max: 100_000_000,
    holdForMs: 900_000,
    maxAgeMs: 600_000,
  },
} as const;
const REQUEST = { kind: "segment", count: 10, minCount: 1, after: 0n, seenVersion: 0n } as const;

async function run(grants: Grants): Promise<GrantsMade> {
  const { storeUrl, callers, tags, sharesTags, seconds } = grants;
  const env = { IDMINT_STORE_URL: storeUrl, IDMINT_STORE_TIMEOUT: "10s" };
  const store = await openStore(storeConfigOf(loadConfig({ env, flags: {}, defaults: {} })));
  const groups = Array.from({ length: sharesTags ? 1 : callers }, (_, at) =>
    Array.from({ length: tags }, (_each, tag) => `t${at * tags + tag}`),
  );
  for (const name of groups.flat()) await store.createTag({ name, ...SETTINGS });
  const times: number[] = [];
  let endAt = performance.now() + seconds * 500;
  const ask = async (_: unknown, at: number): Promise<void> => {
    const requests = (groups[at % groups.length] ?? []).map((tag) => ({ tag, ...REQUEST }));
    while (performance.now() < endAt) {
      const begin = performance.now();
      const answers = await store.grant(requests);
      if (answers.some(({ outcome }) => outcome !== "granted")) throw new Error("a refused grant");
      times.push(performance.now() - begin);
    }
  };
  const all = Array.from({ length: callers });
  // Half of the time again to warm up.
  await Promise.all(all.map(ask));
  times.length = 0;
  const begin = performance.now();
  endAt = begin + seconds * 1_000;
  await Promise.all(all.map(ask));
  const tookSeconds = (performance.now() - begin) / 1_000;
  await store.close();
  const sorted = Float64Array.from(times).toSorted();
  const perSecond = (times.length * tags) / tookSeconds;
  return { perSecond, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) };
}

if (import.meta.main) {
  console.log(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "") as Grants)));
}
