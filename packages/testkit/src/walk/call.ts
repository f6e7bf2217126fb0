import type { CallArgs, StoreCall } from "@idmint/core/server";
import type fc from "fast-check";
import type { View } from "./view.ts";

/** A call of the port, and what it is asked. */
export type Call = {
  [Name in StoreCall]: { readonly name: Name; readonly args: CallArgs[Name] };
}[StoreCall];

export function callOf<Name extends StoreCall>(name: Name, ...args: CallArgs[Name]): Call {
  return { name, args } as Call;
}

/** How a walk makes one call of the port: what is drawn, and the call that this is when it is its turn. */
export interface CallRow {
  readonly weight: number;
  readonly draw: fc.Arbitrary<unknown>;
  /** Undefined: there is nothing to ask. `handle`: which server asks. */
  readonly call: (view: View, drawn: unknown, handle: number) => Call | undefined;
}

export function row<Drawn>(
  weight: number,
  draw: fc.Arbitrary<Drawn>,
  call: (view: View, drawn: Drawn, handle: number) => Call | undefined,
): CallRow {
  return { weight, draw, call: call as CallRow["call"] };
}
