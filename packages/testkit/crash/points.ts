// Which moments of a server's life are tried, and in which order.
import type { CallName, Point } from "./library.ts";
import type { NamedPoint } from "./life.ts";
import type { StoreName } from "./stores.ts";

/** What is killed: a server, or a command that changes its store. */
export type CommandName = "accept" | "migrate";
type Killed = CommandName | "serve";

interface Failpoint {
  readonly program: Killed;
  /** At which of its times a process dies there, in a life each. */
  readonly at: readonly number[];
  /** Where it is met; default: on all stores. */
  readonly store?: StoreName;
}

/**
 * The moments that the code names by a comment, `// failpoint: NAME`, on a line of its own: those between two promises, at which
 * a process has done the one and not yet the other. Each has to be reached. The first ones are met before all tags have leases.
 */
export const FAILPOINTS: Readonly<Record<string, Failpoint>> = {
  "lease-reserved": { program: "serve", at: [1, 3] },
  "lease-kept": { program: "serve", at: [1, 2, 9] },
  "renewal-reserved": { program: "serve", at: [1, 2] },
  "file-emptied": { program: "serve", at: [1, 2, 9] },
  "file-named": { program: "serve", at: [1, 2, 9] },
  "grants-emptied": { program: "serve", at: [1] },
  "grant-arrived": { program: "serve", at: [1, 2, 3, 20] },
  "ids-taken": { program: "serve", at: [1, 4, 11] },
  "segment-taken": { program: "serve", at: [1, 3] },
  "segment-returned": { program: "serve", at: [1, 3] },
  "advance-durable": { program: "serve", at: [1, 3] },
  "change-obeyed": { program: "serve", at: [1, 2, 5] },
  "giving-back": { program: "serve", at: [1] },
  "given-back": { program: "serve", at: [1] },
  "sqlite-committing": { program: "serve", at: [1, 2, 30], store: "sqlite" },
  "sqlite-committed": { program: "serve", at: [1, 2, 30], store: "sqlite" },
  "sqlite-step-written": { program: "migrate", at: [1], store: "sqlite" },
  "postgres-step-written": { program: "migrate", at: [1, 2, 3, 4], store: "postgres" },
  "accept-asked": { program: "accept", at: [1] },
  "accept-done": { program: "accept", at: [1] },
  "etcd-accept-closed": { program: "accept", at: [1], store: "etcd" },
  "etcd-accept-raised": { program: "accept", at: [1], store: "etcd" },
};

/** The named points of a program on a store. */
export function namedPoints(program: Killed, store: StoreName): NamedPoint[] {
  return Object.entries(FAILPOINTS).flatMap(([failpoint, its]) =>
    its.program === program && (its.store ?? store) === store
      ? its.at.map((at) => ({ failpoint, at }))
      : [],
  );
}

/**
 * The calls `from` … `to` of a class. One that ends a server while it starts is followed by one late in a life: so callers see
 * after each crash whether they can go on, and a server that died in its start is started again by one that dies later.
 */
export function pointsOf(call: CallName, from: number, to: number, isTorn: boolean): Point[] {
  const points = rangeOf(call, from, to, isTorn);
  const late = points.splice(Math.ceil(points.length / 2)).toReversed();
  return points.flatMap((early, at) => [early, ...late.slice(at, at + 1)]);
}

export function rangeOf(call: CallName, from: number, to: number, isTorn: boolean): Point[] {
  return Array.from({ length: to - from + 1 }, (_, at) => ({ call, at: from + at, isTorn }));
}
