// The table of open streams against a map.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Stream } from "../../../src/fast/http2/stream.ts";
import { StreamTable } from "../../../src/fast/http2/stream-table.ts";

type Step = readonly ["open" | "close" | "look", number];

/** Far apart or side by side, and some that share a cell for long. */
const id: fc.Arbitrary<number> = fc
  .oneof(
    fc.nat(40),
    fc.nat(40).map((at) => at * 64),
    fc.nat(2 ** 30 - 1),
  )
  .map((at) => 2 * at + 1);

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.tuple(fc.constantFrom("open", "open", "close", "look"), id),
  { maxLength: 100, size: "max" },
);

test("streams are found as long as they are open, whatever others do", () => {
  fc.assert(
    fc.property(steps, fc.boolean(), (all, isCleared) => {
      const table = new StreamTable();
      const model = new Map<number, Stream>();
      for (const [step, its] of all) {
        if (step === "open" && !model.has(its)) {
          const stream = new Stream();
          stream.begin(its, 0, 0);
          table.add(stream);
          model.set(its, stream);
        } else if (step === "close") {
          // Mostly one that is open.
          const open = its % 8 === 1 ? its : ([...model.keys()][its % model.size] ?? its);
          expect(table.delete(open)).toBe(model.delete(open));
        }
        for (const [known, stream] of model) expect(table.get(known)).toBe(stream);
        expect(table.get(its)).toBe(model.get(its));
        expect(table.size).toBe(model.size);
      }
      const inOrder = [...model.values()].toSorted((a, b) => a.id - b.id);
      expect(table.all()).toEqual(inOrder);
      if (!isCleared) return;
      table.clear();
      expect([table.size, table.all(), table.get(1)]).toEqual([0, [], undefined]);
    }),
    { numRuns: 300 },
  );
});
