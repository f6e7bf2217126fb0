import { invalidField } from "@idmint/core";
import { FIRST_DATABASE } from "../shared/placed-tag.ts";

/** One database in what `idmint store status` shows of several. */
const NAMED = /^\s*([^\s:;]+): *([^\s:;]+)\s*$/;

/** The ids that store.expect_id names, by place: one, or one for each database, as `idmint store status` shows them. */
export function expectedStores(text: string | undefined): ReadonlyMap<string, string> {
  if (text === undefined) return new Map();
  const all = text.split(";").map((part) => NAMED.exec(part));
  const named = all.flatMap((its) => (its === null ? [] : [its]));
  if (named.length < all.length) return new Map([["", text.trim()]]);
  return new Map(named.map(([, name = "", id = ""]) => [name === FIRST_DATABASE ? "" : name, id]));
}

/**
 * The same, for a server whose store has these further databases.
 *
 * INVARIANT: who is told the id of one database is told those of all. A server would believe the first that answers in the
 * place of another one, beside the right first one, and grant what the store's own database grants to others.
 */
export function expectedOfAll(
  text: string | undefined,
  more: Iterable<string>,
): ReadonlyMap<string, string> {
  const expected = expectedStores(text);
  const missing = [...more].filter((name) => !expected.has(name));
  if (expected.size === 0 || missing.length === 0) return expected;
  throw invalidField(
    "store.expect_id",
    `must name each database of the store and leaves out ${missing.join(", ")}; idmint store status shows them as ${FIRST_DATABASE}: ID; ${missing[0]}: ID`,
  );
}
