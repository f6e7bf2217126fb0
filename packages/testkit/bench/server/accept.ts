import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { EtcdCluster } from "../../src/etcd/cluster.ts";
import { until } from "../../src/fleet/until.ts";
import { TestPostgres } from "../../src/postgres.ts";
import { type Benchmark, type Effort, interleaved, ownSamples } from "../lib/benchmark.ts";
import { BUILT_CLI } from "../lib/build.ts";
import {
  type Copies,
  copyInEtcd,
  copyInPostgres,
  copyInSqlite,
  setBackInEtcd,
  setBackInPostgres,
  setBackInSqlite,
} from "../lib/copy-tag.ts";
import { cores } from "../lib/cpus.ts";
import { atMost, type Figure } from "../lib/figure.ts";
import type { ManyTagsLoad, ManyTagsResult } from "../lib/many-tags-load.ts";
import { Subject } from "../lib/process.ts";
import { type Idmint, script, startIdmint } from "../lib/servers.ts";

const TIMEOUT_MS = 300_000;
const LEAST_RAISED = 0.9;
const PREFIX = "many-";
const ROOT = "/bench/";

/** A store of its own, whose tags can be made and changed by hand. */
interface Place extends AsyncDisposable {
  readonly storeUrl: string;
  readonly copy: (copies: Copies) => Promise<void>;
  /** All floors, below what was granted. */
  readonly setBack: () => Promise<void>;
}

type StoreName = "sqlite" | "postgres" | "etcd";
const STORES: Readonly<Record<StoreName, { title: string; open: () => Promise<Place> }>> = {
  sqlite: { title: "SQLite", open: sqlitePlace },
  postgres: { title: "PostgreSQL", open: postgresPlace },
  etcd: { title: "etcd", open: etcdPlace },
};

/**
 * How long `idmint store accept` takes with very many tags whose floors were set back, while a server runs that was granted ids of
 * each of them.
 */
export const accept: Benchmark = {
  name: "accept",
  title: "Accepting a store of 100,000 tags",
  run: async (effort) => {
    const names = Object.keys(STORES) as StoreName[];
    // Most of the time is waiting, of which nothing is to be seen.
    if (effort.quick) return (await Promise.all(names.map((name) => run(name, effort)))).flat();
    const figures: Figure[] = [];
    for (const name of names) figures.push(...(await run(name, effort)));
    return figures;
  },
};

async function run(name: StoreName, effort: Effort): Promise<readonly Figure[]> {
  const { title, open } = STORES[name];
  const tags = effort.quick ? 200 : 100_000;
  await using few = await open();
  await using one = await serving(few, 1, effort);
  await using full = await open();
  await using many = await serving(full, tags, effort);
  const before = many.subject.rssBytes;
  const results = await interleaved(effort, {
    many: async () => {
      const accepted = await acceptOnce(full, many, tags);
      effort.say(`  ${title}: ${accepted.seconds.toFixed(1)} s`);
      return accepted;
    },
    one: () => acceptOnce(few, one, 1),
  });
  const text = `idmint store accept of ${tags.toLocaleString("en-US")} tags, ${title}`;
  return [
    {
      id: `accept.${name}.beside`,
      text: `${text}: beyond that of one tag`,
      unit: "s",
      samples: results.many.map(({ seconds }, round) => {
        return { ours: seconds - (results.one[round]?.seconds ?? Number.NaN) };
      }),
      bar: atMost(10),
    },
    {
      id: `accept.${name}.all`,
      text: `${text}: from its start to its end`,
      unit: "s",
      samples: ownSamples(results.many, ({ seconds }) => seconds),
    },
    {
      id: `accept.${name}.server-cpu`,
      text: `${text}: processor time of the server that was asked`,
      unit: "s",
      samples: ownSamples(results.many, ({ serverCpu }) => serverCpu),
    },
    {
      id: `accept.${name}.server-rss`,
      text: `${text}: memory (RSS) that the server takes more`,
      unit: "MB",
      samples: [{ ours: (many.subject.rssBytes - before) / 1e6 }],
    },
  ];
}

/** A server that was granted ids of each of so many tags. */
async function serving({ storeUrl, copy }: Place, tags: number, effort: Effort): Promise<Idmint> {
  const first = await startIdmint({ storeUrl });
  await first.api.createTag({ name: `${PREFIX}0` });
  // What is measured is a server that did nothing but grant.
  if (!effort.quick) await first[Symbol.asyncDispose]();
  if (tags > 1) {
    effort.say(`  makes ${tags.toLocaleString("en-US")} tags`);
    await copy({ prefix: PREFIX, count: tags - 1 });
  }
  const idmint = effort.quick ? first : await startIdmint({ storeUrl });
  await askOnce(idmint, tags);
  return idmint;
}

/** Each tag is asked for an id. */
async function askOnce({ address }: Idmint, tags: number): Promise<void> {
  const shape = { prefix: PREFIX, tags, connections: 8, streams: 32, seconds: 0, once: true };
  const load: ManyTagsLoad = { address, call: "generate", ...shape };
  const command = script("lib/many-tags-load.ts", JSON.stringify(load));
  await using generator = new Subject("the generator", [...cores.generator, ...command]);
  const output = await generator.toEnd(TIMEOUT_MS);
  const { refused, answered } = JSON.parse(
    output.trimEnd().split("\n").at(-1) ?? "",
  ) as ManyTagsResult;
  if (refused > 0 || answered !== tags) throw new Error(`${refused} calls were refused`);
}

interface Accepted {
  readonly seconds: number;
  readonly serverCpu: number;
}

async function acceptOnce(
  { storeUrl, setBack }: Place,
  idmint: Idmint,
  tags: number,
): Promise<Accepted> {
  await setBack();
  const cpuBefore = idmint.subject.cpuSeconds;
  const begin = performance.now();
  const words = ["store", "accept", "--gap", "1000", "--yes", "--json"];
  const env = { IDMINT_STORE_URL: storeUrl };
  await using accepting = new Subject(
    "idmint store accept",
    [process.execPath, BUILT_CLI, ...words],
    {
      env,
    },
  );
  const output = await accepting.toEnd(TIMEOUT_MS);
  const seconds = (performance.now() - begin) / 1_000;
  const serverCpu = idmint.subject.cpuSeconds - cpuBefore;
  // After the accept before, the server may still raise floors that it finds too low by itself.
  const raised = Number(/"raisedTags":(\d+),/u.exec(output)?.[1]);
  if (!(raised >= LEAST_RAISED * tags) || !output.includes('"told":"all"')) {
    throw new Error(`the server did not say all that it was granted:\n${output}`);
  }
  await until("it issues again", () => idmint.api.id(`${PREFIX}0`).then(Boolean), {
    withinMs: 30_000,
  });
  return { seconds, serverCpu };
}

async function sqlitePlace(): Promise<Place> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-bench-"));
  const file = path.join(folder, "idmint.db");
  return {
    storeUrl: `sqlite:${file}`,
    copy: async (copies) => copyInSqlite(file, copies),
    setBack: async () => setBackInSqlite(file),
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function postgresPlace(): Promise<Place> {
  const postgres = await TestPostgres.start({ durable: true });
  const { url: storeUrl } = await postgres.createDatabase();
  return {
    storeUrl,
    copy: (copies) => copyInPostgres(storeUrl, copies),
    setBack: () => setBackInPostgres(storeUrl),
    [Symbol.asyncDispose]: () => postgres.close(),
  };
}

async function etcdPlace(): Promise<Place> {
  const cluster = await EtcdCluster.start();
  return {
    storeUrl: `etcd://${cluster.hosts}${ROOT.slice(0, -1)}`,
    copy: (copies) => copyInEtcd(cluster.gateway, ROOT, copies),
    setBack: () => setBackInEtcd(cluster.gateway, ROOT, PREFIX),
    [Symbol.asyncDispose]: () => cluster.close(),
  };
}
