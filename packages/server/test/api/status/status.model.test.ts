// Statuses of refusals: what was made for one error is told for another only when both say the same.
import { IdmintError, type Reason } from "@idmint/core";
import { Status } from "@idmint/proto/rpc";
import fc from "fast-check";
import { expect, test } from "vitest";
import { rpcStatusOf, type StatusPorts, statusOf } from "../../../src/api/status/status.ts";
import { createCounters } from "../../../src/service/counters.ts";

function ports(): StatusPorts & { readonly internal: () => number } {
  let internal = 0;
  return { counters: createCounters(), emit: () => internal++, internal: () => internal };
}

/** Few values of each, so that errors agree in some parts and differ in others. */
const errors = fc
  .record({
    reason: fc.constantFrom<Reason>("TAG_NOT_FOUND", "WRONG_KIND", "OVERLOADED", "INTERNAL"),
    text: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom("a", "“b”", "c".repeat(2_000)) },
      { weight: 1, arbitrary: fc.nat(200).map((n) => `text ${n}`) },
    ),
    tag: fc.constantFrom(undefined, "t"),
    more: fc.constantFrom({}, {}, { limit: "1" }, { limit: "2" }),
    retryAfterMs: fc.constantFrom(undefined, 1, 2),
    violations: fc.array(
      fc.record(
        {
          field: fc.constantFrom("tag", "count"),
          description: fc.constantFrom("is empty", "is long", "d".repeat(3_000)),
          reason: fc.constantFrom("INVALID_ARGUMENT" as const, "UNKNOWN_VALUE" as const),
        },
        { requiredKeys: ["field", "description"] },
      ),
      { maxLength: 2 },
    ),
    isFrozen: fc.boolean(),
  })
  .map(({ reason, text, tag, more, retryAfterMs, violations, isFrozen }) => {
    const metadata = tag === undefined ? more : { ...more, tag };
    const told = retryAfterMs === undefined ? {} : { retryAfterMs };
    const error = new IdmintError(reason, text, { metadata, violations, ...told });
    return isFrozen ? Object.freeze(error) : error;
  });

test("a status is the same whether it was made before or not, and counts each time", () => {
  fc.assert(
    fc.property(fc.array(errors, { minLength: 1, maxLength: 200 }), (all) => {
      const [kept, fresh] = [ports(), ports()];
      for (const error of all) {
        const { code, message, details } = statusOf(error, "a method", kept);
        const expected = rpcStatusOf(error, "a method", fresh);
        expect([code, message]).toEqual([expected.code, expected.message]);
        expect(Status.decode(details)).toEqual(expected);
      }
      expect(kept.counters).toEqual(fresh.counters);
    }),
    { numRuns: 200 },
  );
});

test("refusals that say the same share a status; each unforeseen error goes to the log", () => {
  const its = ports();
  const refused = (text: string) =>
    statusOf(new IdmintError("TAG_NOT_FOUND", text), "a method", its);
  const first = refused("one");
  expect(refused("one")).toBe(first);
  for (let i = 0; i < 100; i++) {
    refused(`another ${i}`);
    // What is told again and again stays.
    expect(refused("one")).toBe(first);
  }
  const other = refused("other");
  for (let i = 0; i < 100; i++) refused(`another ${i}`);
  expect(refused("other")).not.toBe(other);
  for (let i = 0; i < 3; i++) statusOf(new Error("unforeseen"), "a method", its);
  expect(its.internal()).toBe(3);
});

test("errors that differ in one part only share nothing", () => {
  const violation = { field: "tag", description: "is empty", reason: "UNKNOWN_VALUE" as const };
  const base = { metadata: { tag: "t" }, retryAfterMs: 1, violations: [violation] };
  const others = [
    { ...base, retryAfterMs: 2 },
    { ...base, metadata: { tag: "u" } },
    { ...base, metadata: { limit: "t" } },
    { ...base, metadata: { tag: "t", limit: "t" } },
    { ...base, violations: [] },
    { ...base, violations: [violation, violation] },
    { ...base, violations: [{ ...violation, field: "name" }] },
    { ...base, violations: [{ ...violation, description: "is long" }] },
    { ...base, violations: [{ field: "tag", description: "is empty" }] },
  ];
  for (const other of others) {
    const [one, two] = [base, other].map((parts) => {
      const error = new IdmintError("INVALID_ARGUMENT", "the same text", parts);
      return { told: statusOf(error, "a method", ports()), made: rpcStatusOf(error, "", ports()) };
    });
    expect(Status.decode(two!.told.details)).toEqual(two!.made);
    expect(two!.told.details).not.toEqual(one!.told.details);
  }
});
