import fc from "fast-check";
import { expect, test } from "vitest";
import { RedisHashes, type RedisSnapshot } from "../../src/memory/redis/hashes.ts";

const TAGS = ["a", "b"] as const;
const FIELDS = ["x", "y"] as const;

const tag = fc.constantFrom(...TAGS);
const field = fc.constantFrom(...FIELDS);
const step = fc.oneof(
  fc.record({ act: fc.constant("set" as const), tag, field, value: fc.nat(9) }),
  fc.record({ act: fc.constant("delete" as const), tag, field }),
  fc.record({ act: fc.constant("remove" as const), tag }),
  fc.record({ act: fc.constant("miss" as const), tag }),
  fc.record({ act: fc.constant("retire" as const), tag }),
  fc.record({ act: fc.constant("wait" as const), ms: fc.constantFrom(1, 60_000, 3_600_000) }),
  fc.record({ act: fc.constant("keep" as const) }),
  fc.record({ act: fc.constant("restore" as const), at: fc.nat(9) }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** All that a snapshot says, in values of its own. */
function told({ hashes }: RedisSnapshot): unknown {
  return [...hashes].map(([name, { fields, expiresAtMs }]) => [name, [...fields], expiresAtMs]);
}

/** All that is there now: what is over is gone first. */
function present(hashes: RedisHashes): unknown {
  return hashes.tags.flatMap((name) => {
    const fields = [...hashes.fields(name)];
    return fields.length === 0 ? [] : [[name, fields]];
  });
}

function runSteps(steps: readonly Step[]): void {
  let now = 1_000;
  const hashes = new RedisHashes({ wallClock: () => now });
  const kept: { readonly snapshot: RedisSnapshot; readonly said: unknown }[] = [];
  for (const one of steps) {
    if (one.act === "set") hashes.set(one.tag, { [one.field]: one.value });
    else if (one.act === "delete") hashes.delete(one.tag, one.field);
    else if (one.act === "remove") hashes.remove(one.tag);
    else if (one.act === "miss") hashes.missing(one.tag);
    else if (one.act === "retire") hashes.retire({ tag: one.tag, store: "s" });
    else if (one.act === "wait") now += one.ms;
    else if (one.act === "keep") {
      const snapshot = hashes.snapshot();
      kept.push({ snapshot, said: structuredClone(told(snapshot)) });
    } else {
      const found = kept[one.at % Math.max(1, kept.length)];
      if (found === undefined) continue;
      hashes.restore(found.snapshot);
      const fresh = new RedisHashes({ wallClock: () => now });
      fresh.restore(structuredClone(found.snapshot));
      expect(present(hashes)).toEqual(present(fresh));
    }
    for (const { snapshot, said } of kept) expect(told(snapshot)).toEqual(said);
  }
}

test("a snapshot of a Redis stays what it was, whatever is changed and restored afterwards", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), runSteps));
});
