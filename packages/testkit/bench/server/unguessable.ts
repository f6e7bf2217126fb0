import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Tag } from "@idmint/proto";
import { type Benchmark, type Effort, interleaved, samplesOf } from "../lib/benchmark.ts";
import { atMost } from "../lib/figure.ts";
import { type Idmint, startIdmint } from "../lib/servers.ts";

/** Most unguessable ids of one call. */
const COUNT = 1_000;
const QUICK_CALLS = 3;
/** So many digits that the numerals of the permutation are large ones. */
const CEILING = 99_999_999_999_999_999n;
const KEY = "5a".repeat(32);

/** What a key adds to the processor time of an id in the server: NIST FF1 with AES-256. */
export const unguessable: Benchmark = {
  name: "unguessable",
  title: "Ids that tell nothing",
  run: async (effort) => {
    const folder = mkdtempSync(path.join(tmpdir(), "idmint-bench-"));
    try {
      const file = path.join(folder, "key");
      writeFileSync(file, KEY, { mode: 0o400 });
      await using idmint = await startIdmint({ env: { IDMINT_UNGUESSABLE_KEYS: `1=${file}` } });
      await makeTags(idmint);
      const measure = (tag: string) => () =>
        idmint.whileItRuns(async () => ({ answered: await ask(idmint, tag, effort) }));
      const results = await interleaved(effort, {
        hidden: measure("hidden"),
        plain: measure("plain"),
      });
      return [
        {
          id: "unguessable.cpu",
          text: `processor time of an id with a key, ${COUNT} a call`,
          unit: "µs an id",
          peer: "the same without a key",
          samples: samplesOf(results.hidden, results.plain, ({ cpuUs }) => cpuUs),
          bar: atMost(60),
        },
      ];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function makeTags({ api }: Idmint): Promise<void> {
  const settings = { ceiling: CEILING, kind: { $case: "segment", value: {} } } as const;
  const create = api.tags.createTag.bind(api.tags);
  const plain = Tag.create({ name: "plain", ...settings });
  await api.send(create, { tag: plain, validateOnly: false });
  const hidden = Tag.create({ name: "hidden", ...settings, unguessable: { keyId: 1 } });
  await api.send(create, { tag: hidden, validateOnly: false });
}

/** One call after the other. Answers how many ids came. */
async function ask({ api }: Idmint, tag: string, { seconds, quick }: Effort): Promise<number> {
  const start = performance.now();
  let calls = 0;
  const isOver = (): boolean =>
    quick ? calls >= QUICK_CALLS : performance.now() - start >= seconds * 1_000;
  while (!isOver()) {
    const { ids } = await api.generateIds({ tag, count: COUNT, asList: true });
    if (ids.length !== COUNT) throw new Error(`${ids.length} ids instead of ${COUNT}`);
    calls++;
  }
  return calls * COUNT;
}
