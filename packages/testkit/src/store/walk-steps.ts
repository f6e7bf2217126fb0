// The steps of a walk that compares stores. Numbers are small or near the ends, so that steps meet each other.
import { MAX_ID } from "@idmint/core";
import type { RaiseRequest, TagSettings, TagState } from "@idmint/core/server";
import fc from "fast-check";

/** The settings of a tag that a step asks for. */
export interface Settings {
  readonly kind: string;
  readonly start: bigint;
  readonly ceiling: bigint;
  readonly min: number;
  readonly order: TagSettings["order"];
  readonly description: string;
}

/** A request, by what is known of the tag when it is its turn. */
interface Request {
  readonly tag: string;
  readonly count: number;
  readonly kind: string;
  readonly least: string;
  readonly after: string;
  readonly seen: string;
}

interface Name {
  readonly name: string;
}

/** What each step takes. */
interface Steps {
  grant: { requests: readonly Request[] };
  giveBack: { which: number; keep: number; again: boolean };
  raise: Pick<RaiseRequest, "atLeast" | "by" | "newGeneration" | "tag"> & { seen: string };
  shift: { days: number };
  create: Name & { settings: Settings };
  update: Name & { settings: Settings; revision: string };
  advance: Name & { by: bigint; maxRaise: bigint; validateOnly: boolean };
  setState: Name & { state: TagState; revision: string };
  accept: { gap: bigint; claims: readonly (Name & { day: number; last: bigint })[] };
  goBack: Name & { day: number; bound: string };
  reopen: object;
}

/** A step of one kind, which one of the handles takes. */
export type Of<Do extends keyof Steps> = { readonly do: Do; readonly handle: number } & Readonly<
  Steps[Do]
>;
export type Step = { [Do in keyof Steps]: Of<Do> }[keyof Steps];

const name = fc.constantFrom("a", "b", "c");
const handle = fc.nat(2);
const count = fc.constantFrom(1, 2, 5, 40, 1_000_000_000);
const edge = fc.constantFrom(1n, 2n, 30n, 2n ** 53n - 50n, MAX_ID - 49n);
const revision = fc.constantFrom("none", "right", "wrong");
const settings = fc.record({
  kind: fc.constantFrom("segment", "segment", "sequence", "daily", "daily", "redis"),
  start: edge,
  ceiling: fc.constantFrom(100n, 2n ** 53n - 1n, MAX_ID),
  min: fc.constantFrom(1, 1_000),
  order: fc.constantFrom("UNORDERED" as const, "PER_CLIENT" as const),
  description: fc.constantFrom("", "x"),
});
const request = fc.record({
  tag: name,
  count,
  kind: fc.constantFrom("right", "right", "right", "other"),
  least: fc.constantFrom("one", "all"),
  after: fc.constantFrom("none", "floor", "above"),
  seen: fc.constantFrom("none", "right", "ahead"),
});
export const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("grant" as const),
      handle,
      requests: fc.uniqueArray(request, { minLength: 1, maxLength: 3, selector: (r) => r.tag }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("giveBack" as const),
      handle,
      which: fc.nat(3),
      keep: fc.nat(3),
      again: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("raise" as const),
      handle,
      tag: name,
      by: fc.constantFrom(0n, 1n, 40n, MAX_ID),
      atLeast: fc.constantFrom(0n, 60n, 2n ** 53n, MAX_ID),
      newGeneration: fc.boolean(),
      seen: fc.constantFrom("none", "right", "ahead"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("shift" as const),
      handle,
      days: fc.constantFrom(-3, -1, -1, -1, 1, 2),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("create" as const), handle, name, settings }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("update" as const), handle, name, settings, revision }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      handle,
      name,
      by: fc.constantFrom(-1n, 0n, 1n, 20n, 2n ** 40n),
      maxRaise: fc.constantFrom(20n, MAX_ID),
      validateOnly: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("setState" as const),
      handle,
      name,
      state: fc.constantFrom<TagState>("ACTIVE", "ACTIVE", "PAUSED", "DELETED"),
      revision,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("accept" as const),
      handle,
      gap: fc.constantFrom(0n, 1n, 1_000n, MAX_ID),
      claims: fc.uniqueArray(
        fc.record({
          name,
          day: fc.constantFrom(-1, 0, 0, 0, 1),
          last: fc.constantFrom(1n, 30n, 70n, 2n ** 41n),
        }),
        { maxLength: 3, selector: (claim) => `${claim.name} ${claim.day}` },
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("goBack" as const),
      handle,
      name,
      day: fc.constantFrom(-3, -2, -1, 0, 0, 1),
      bound: fc.constantFrom("none", "none", "truth", "below"),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reopen" as const), handle }) },
);
