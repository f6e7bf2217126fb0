import fc from "fast-check";
import { expect, test } from "vitest";
import { type CalledNode, nodesVersionOf } from "../../../src/server/node/nodes-version.ts";

const node = fc.record({
  instance: fc.string({ maxLength: 4 }),
  address: fc.string({ minLength: 1, maxLength: 4 }),
  zone: fc.string({ maxLength: 2 }),
  weight: fc.nat(1_000),
  isDraining: fc.boolean(),
});

test("servers that see the same answer the same number, whatever the order", () => {
  fc.assert(
    fc.property(fc.array(node, { maxLength: 5 }), fc.array(node, { maxLength: 5 }), (a, b) => {
      expect(nodesVersionOf([...a, ...b])).toBe(nodesVersionOf([...b, ...a]));
    }),
  );
});

test("each field that callers go by changes the number, and servers without an address do not", () => {
  const one: CalledNode = {
    instance: "i",
    address: "a:1",
    zone: "z",
    weight: 100,
    isDraining: false,
  };
  const others: readonly Partial<CalledNode>[] = [
    { instance: "j" },
    { address: "a:2" },
    { zone: "y" },
    { weight: 99 },
    { isDraining: true },
    { instance: "i,a:1", address: "z" },
  ];
  const numbers = [[one], ...others.map((more) => [{ ...one, ...more }]), [one, one], []].map(
    nodesVersionOf,
  );
  expect(new Set(numbers).size).toBe(others.length + 3);
  expect(nodesVersionOf([one, { ...one, instance: "k", address: "" }])).toBe(nodesVersionOf([one]));
  for (const number of numbers) {
    expect(Number.isInteger(number) && number > 0 && number < 2 ** 32).toBe(true);
  }
});
