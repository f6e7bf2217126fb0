import { EtcdCluster } from "../../src/etcd/cluster.ts";
import { TestPostgres } from "../../src/postgres.ts";
import { type Benchmark, type Effort, interleaved, samplesOf } from "../lib/benchmark.ts";
import { BUILT_CLI } from "../lib/build.ts";
import { cores } from "../lib/cpus.ts";
import type { Figure } from "../lib/figure.ts";
import type { Grants, GrantsMade } from "../lib/grants.ts";
import { Subject } from "../lib/process.ts";
import { script } from "../lib/servers.ts";

const MANY = 64;
const TIMEOUT_MS = 120_000;
const PEER = "PostgreSQL";

/** How a store is used. */
const SHAPES = {
  "1": { text: "1 caller", callers: 1, tags: 1, sharesTags: false },
  "64": {
    text: `${MANY} callers, each with a tag of its own`,
    callers: MANY,
    tags: 1,
    sharesTags: false,
  },
  "64-one-tag": {
    text: `${MANY} callers, all with the same tag`,
    callers: MANY,
    tags: 1,
    sharesTags: true,
  },
  batch: { text: `1 caller, ${MANY} tags in each call`, callers: 1, tags: MANY, sharesTags: false },
} as const;
type Shape = keyof typeof SHAPES;

/** Grants of a store in etcd beside one in PostgreSQL, both on the same disk, without a server around them. */
export const etcd: Benchmark = {
  name: "etcd",
  title: "Grants of a store in etcd",
  run: async (effort) => {
    await using one = await EtcdCluster.start();
    await using three = await EtcdCluster.start({ size: 3 });
    // Commits that reach the disk, as in production.
    await using postgres = await TestPostgres.start({ durable: true });
    const urls = {
      one: `etcd://${one.hosts}/bench`,
      three: `etcd://${three.hosts}/bench`,
      postgres: (await postgres.createDatabase()).url,
    };
    for (const url of Object.values(urls)) await migrate(url);
    const figures: Figure[] = [];
    const shapes: readonly Shape[] = effort.quick
      ? ["1", "batch"]
      : (Object.keys(SHAPES) as Shape[]);
    for (const shape of shapes) {
      const results = await interleaved(effort, {
        one: asking(effort, urls.one, shape),
        three: asking(effort, urls.three, shape),
        postgres: asking(effort, urls.postgres, shape),
      });
      figures.push(
        ...figuresOf("one", "1 member", shape, results.one, results.postgres),
        ...figuresOf("three", "3 members", shape, results.three, results.postgres),
      );
    }
    return figures;
  },
};

async function migrate(storeUrl: string): Promise<void> {
  const env = { IDMINT_STORE_URL: storeUrl };
  await using migration = new Subject("idmint migrate", [process.execPath, BUILT_CLI, "migrate"], {
    env,
  });
  await migration.toEnd(TIMEOUT_MS);
}

/** Callers in a process of their own, on the generator's core. */
function asking(effort: Effort, storeUrl: string, shape: Shape): () => Promise<GrantsMade> {
  const { callers, tags, sharesTags } = SHAPES[shape];
  const seconds = effort.quick ? 0.2 : effort.seconds;
  const grants: Grants = { storeUrl, callers, tags, sharesTags, seconds };
  return async () => {
    const command = script("lib/grants.ts", JSON.stringify(grants));
    await using asked = new Subject("the callers", [...cores.generator, ...command]);
    const output = await asked.toEnd(TIMEOUT_MS);
    return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as GrantsMade;
  };
}

function figuresOf(
  id: string,
  members: string,
  shape: Shape,
  ours: readonly GrantsMade[],
  peers: readonly GrantsMade[],
): readonly Figure[] {
  const text = `etcd of ${members}, ${SHAPES[shape].text}`;
  const figure = (name: string, unit: string, pick: (made: GrantsMade) => number): Figure => ({
    id: `etcd.${id}.${shape}.${name}`,
    text: name === "grants" ? text : `${text}: ${name === "p50" ? "median" : "99th percentile"}`,
    unit,
    peer: PEER,
    samples: samplesOf(ours, peers, pick),
  });
  const grants = figure("grants", "grants/s", ({ perSecond }) => perSecond);
  if (shape !== "1") return [grants];
  return [grants, figure("p50", "ms", ({ p50 }) => p50), figure("p99", "ms", ({ p99 }) => p99)];
}
