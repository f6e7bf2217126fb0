import { NEVER_STOPPED, type PartIssuing } from "../store/issuing.ts";
import type { StorePart } from "./ports.ts";

/**
 * Whether an operator lets the servers on a store issue, as polls of its databases say. Pure: the shell is the poll of the
 * server.
 *
 * INVARIANTS
 * 1. Servers are stopped while any database says so, by what each answered last: one that does not answer changes nothing,
 *    and neither does one that went back to before what it said, until that is accepted as a history of its own.
 * 2. What was held before a stop is never issued after it, also by a server that hears of the stop and of the resumption at
 *    once: their revision tells it, and it drops what it holds. So a server that says that it obeyed a revision (Poll) has
 *    dropped whatever was stopped at or below it.
 */
export type IssuingState = readonly SeenIssuing[];

/** What a database said, and in which history. */
export interface SeenIssuing extends PartIssuing {
  readonly incarnation: string;
}

export type IssuingEffect =
  | { readonly type: "stop-issuing"; readonly sinceMs: number }
  /** Stopped and resumed since the last poll. */
  | { readonly type: "drop-held" }
  | { readonly type: "resume-issuing" };

/** Since when servers are stopped, by the store's clock; undefined: they issue. */
export function stoppedSince(state: readonly PartIssuing[]): number | undefined {
  const times = state.map(({ stoppedAtMs }) => stoppedAtMs).filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}

type Said = Pick<StorePart, "name" | "incarnation" | "issuing">;

/** A poll was answered. The state is the same object where it says nothing new. */
export function sawIssuing(
  state: IssuingState,
  parts: readonly Said[],
): { readonly state: IssuingState; readonly effect: IssuingEffect | undefined } {
  const known = new Map(state.map((part) => [part.name, part]));
  const news = parts.filter((part) => isNews(known.get(part.name), part));
  if (news.length === 0) return { state, effect: undefined };
  const isChange = news.some(
    ({ name, issuing }) => issuing.revision !== (known.get(name) ?? NEVER_STOPPED).revision,
  );
  for (const { name, incarnation, issuing } of news)
    known.set(name, { name, incarnation, ...issuing });
  const next = [...known.values()];
  const [was, is] = [stoppedSince(state), stoppedSince(next)];
  if (!isChange || (was !== undefined && is !== undefined))
    return { state: next, effect: undefined };
  if (is !== undefined) return { state: next, effect: { type: "stop-issuing", sinceMs: is } };
  return { state: next, effect: { type: was === undefined ? "drop-held" : "resume-issuing" } };
}

function isNews(seen: SeenIssuing | undefined, { incarnation, issuing }: Said): boolean {
  return seen?.incarnation !== incarnation || issuing.revision > seen.revision;
}
