import fc from "fast-check";
import { expect, test } from "vitest";
import { type Look, Watched } from "../../../src/commands/watch/watch-state.ts";
import { idmint } from "../../support.ts";

function look(atMs: number, more: Partial<Look> = {}): Look {
  return { atMs, nodeId: "a", issued: 0n, wasted: 0n, floors: new Map(), ...more };
}

test("a rate is the average of the last ten seconds, and there is none at first", () => {
  const watched = new Watched();
  expect(watched.add(look(0, { issued: 100n }))).toMatchObject({ issued: undefined });
  for (let second = 1; second <= 30; second += 1) {
    const issued = 100n + 50n * BigInt(second);
    expect(watched.add(look(second * 1_000, { issued })).issued).toBe(50);
  }
  // What was before ten seconds does not count any more.
  for (let second = 31; second <= 40; second += 1) {
    watched.add(look(second * 1_000, { issued: 1_600n }));
  }
  expect(watched.add(look(41_000, { issued: 1_600n })).issued).toBe(0);
});

test("no rate is negative or made of two processes, however servers restart and give ids back", () => {
  const looks = fc.array(
    fc.record({
      step: fc.integer({ min: 1, max: 5_000 }),
      nodeId: fc.constantFrom("a", "b", "c"),
      issued: fc.bigInt({ min: 0n, max: 1_000n }),
      floor: fc.bigInt({ min: 0n, max: 1_000n }),
    }),
    { minLength: 1, maxLength: 40 },
  );
  fc.assert(
    fc.property(looks, (all) => {
      const watched = new Watched();
      let atMs = 0;
      const before: string[] = [];
      for (const { step, nodeId, issued, floor } of all) {
        atMs += step;
        const floors = new Map([["orders", floor]]);
        const rates = watched.add(look(atMs, { nodeId, issued, floors }));
        if (!before.slice(-10).includes(nodeId)) expect(rates.issued).toBeUndefined();
        else expect(rates.issued).toBeGreaterThanOrEqual(0);
        if (before.length > 0) expect(rates.granted.get("orders")).toBeGreaterThanOrEqual(0);
        before.push(nodeId);
      }
    }),
  );
});

test("a server that is not there at the first look is an error, and so are too many tags", async () => {
  const away = await idmint(["watch", "--address", "127.0.0.1:1"]);
  expect([away.exitCode, away.out]).toEqual([4, ""]);
  const many = await idmint(["watch", ...Array.from({ length: 21 }, (_, at) => `t${at}`)]);
  expect(many.exitCode).toBe(2);
  expect(many.err).toContain("TAGS must be at most 20");
});
