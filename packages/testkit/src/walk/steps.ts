// The steps of a walk: calls of the port, alone, together or cut off, and what happens to the store itself.
import { STORE_CALLS } from "@idmint/core/server";
import fc from "fast-check";
import type { CallRow } from "./call.ts";
import { SERVER_CALLS } from "./server-calls.ts";
import { TAG_CALLS } from "./tag-calls.ts";

const ROWS: Readonly<Record<string, CallRow>> = { ...TAG_CALLS, ...SERVER_CALLS };

for (const name of Object.keys(STORE_CALLS)) {
  // These are `poll` and `renew`.
  if (name !== "changes") rowOf(name);
}

export function rowOf(name: string): CallRow {
  const found = ROWS[name];
  if (found === undefined) throw new Error(`no call ${name}`);
  return found;
}

/** A call by what is drawn of it. */
export interface Drawn {
  readonly name: string;
  readonly handle: number;
  readonly what: unknown;
}

/** When a call is cut off: after so many turns of the event loop and milliseconds nobody waits any more, or the line ends. */
interface Cut {
  readonly turns: number;
  readonly ms: number;
  readonly ends: "line" | "wait";
}

export type Step =
  | { readonly do: "ask"; readonly call: Drawn }
  | { readonly do: "together"; readonly calls: readonly Drawn[] }
  | { readonly do: "cut"; readonly call: Drawn; readonly after: Cut }
  | { readonly do: "shift"; readonly days: number }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "reopen"; readonly handle: number }
  | { readonly do: "keep" }
  | { readonly do: "putBack" };

const handle = fc.nat(2);

function callsOf(names: readonly string[]): fc.Arbitrary<Drawn> {
  return fc.oneof(
    ...names.map((name) => {
      const { weight, draw } = rowOf(name);
      return { weight, arbitrary: fc.record({ name: fc.constant(name), handle, what: draw }) };
    }),
  );
}

/** Calls that are one transaction each. A renewal and the poll that it comes with are two, and so is a list of the ledger's rows. */
const WHOLE = Object.keys(ROWS).filter((name) => !["poll", "renew", "recordLedger"].includes(name));
/** An accept takes its time from the store's clock, which a walk can tell only while it waits. */
const CUT = WHOLE.filter((name) => name !== "accept");

const doing = <Do extends string>(what: Do): { do: fc.Arbitrary<Do> } => ({
  do: fc.constant(what),
});

export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 60, arbitrary: fc.record({ ...doing("ask"), call: callsOf(Object.keys(ROWS)) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      ...doing("together"),
      calls: fc.array(callsOf(WHOLE), { minLength: 2, maxLength: 3 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      ...doing("cut"),
      call: callsOf(CUT),
      after: fc.record({
        turns: fc.nat(6),
        ms: fc.constantFrom(0, 0, 0, 1, 3),
        ends: fc.constantFrom("line" as const, "wait" as const, "wait" as const),
      }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ ...doing("shift"), days: fc.constantFrom(-3, -1, -1, 1, 2) }),
  },
  { weight: 2, arbitrary: fc.record({ ...doing("pass"), ms: fc.constantFrom(31_000, 100_000) }) },
  { weight: 1, arbitrary: fc.record({ ...doing("reopen"), handle }) },
  { weight: 1, arbitrary: fc.record(doing("keep")) },
  { weight: 1, arbitrary: fc.record(doing("putBack")) },
);
