import fc from "fast-check";
import { expect, test } from "vitest";
import type { KeyValue } from "../../../../src/store/etcd/cluster/protocol.ts";
import { Keys } from "../../../../src/store/etcd/session/keys.ts";
import { MAX_PACKS, type Place, placesOf } from "../../../../src/store/etcd/session/places.ts";
import { valueOfPack } from "../../../../src/store/etcd/session/rows.ts";

const keys = new Keys("/test/");

function keyOf(key: Buffer, names: readonly string[]): KeyValue {
  return { key, modRevision: "1", value: valueOfPack(names) };
}

/** Places in their order: a run of them in one pack, or each by itself. Between two runs some revisions are of no tag. */
const runs = fc.array(
  fc.record({
    skipped: fc.integer({ min: 1, max: 3 }),
    length: fc.integer({ min: 1, max: 6 }),
    isPacked: fc.boolean(),
  }),
  { maxLength: 12 },
);

interface Stored {
  readonly changes: KeyValue[];
  readonly packs: KeyValue[];
  readonly all: Place[];
}

function stored(its: readonly { skipped: number; length: number; isPacked: boolean }[]): Stored {
  const into: Stored = { changes: [], packs: [], all: [] };
  let revision = 0n;
  for (const { skipped, length, isPacked } of its) {
    revision += BigInt(skipped - 1);
    const names: string[] = [];
    for (let at = 0; at < length; at++) {
      const tag = `t${++revision}`;
      names.push(tag);
      into.all.push({ tag, revision, isPacked });
      if (!isPacked) into.changes.push(keyOf(keys.change(revision), [tag]));
    }
    if (isPacked) into.packs.push(keyOf(keys.pack(revision), names));
  }
  return into;
}

/** As etcd answers it. */
function after(kvs: readonly KeyValue[], since: bigint, limit: number): readonly KeyValue[] {
  return kvs.filter((kv) => Keys.revisionOf(kv) > since).slice(0, limit);
}

test("pages have every place after a revision once, in their order, whatever is packed", () => {
  const since = fc.bigInt({ min: 0n, max: 40n });
  fc.assert(
    fc.property(runs, fc.integer({ min: 1, max: 7 }), since, (its, limit, first) => {
      const { changes, packs, all } = stored(its);
      const told: Place[] = [];
      for (let from = first, pages = 0; ; pages++) {
        expect(pages).toBeLessThanOrEqual(all.length);
        const page = placesOf({
          since: from,
          limit,
          changes: after(changes, from, limit + 1),
          packs: after(packs, from, MAX_PACKS + 1),
        });
        expect(page.places.length).toBeLessThanOrEqual(limit);
        told.push(...page.places);
        if (!page.more) break;
        // A page that says that there is more has something, or a poll would ask for the same again.
        expect(page.places).not.toEqual([]);
        from = page.places.at(-1)?.revision ?? from;
      }
      expect(told).toEqual(all.filter(({ revision }) => revision > first));
    }),
    { numRuns: 2_000 },
  );
});
