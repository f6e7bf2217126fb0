import { asError, type NodeCause } from "../errors.ts";

/** What the nodes said so far. */
export interface Tally<T> {
  /** Answers that count. */
  readonly yes: readonly T[];
  /** Nodes that answered something else. */
  readonly no: readonly string[];
  readonly failed: readonly NodeCause[];
}

/** More than half: any two majorities have a node in common. */
export function majorityOf(nodeCount: number): number {
  return Math.floor(nodeCount / 2) + 1;
}

/** Whether more answers can change nothing: a majority said yes, or none can any more. */
function isDecided(tally: Tally<unknown>, nodeCount: number): boolean {
  const { yes, no, failed } = tally;
  const majority = majorityOf(nodeCount);
  return yes.length >= majority || nodeCount - no.length - failed.length < majority;
}

/**
 * Asks all nodes at once, and answers as soon as it is decided. An answer of undefined or false is a no. Answers that come
 * later are not heard.
 */
export async function ask<N extends { readonly name: string }, T>(
  nodes: readonly N[],
  question: (node: N) => Promise<T | undefined | false>,
): Promise<Tally<T>> {
  const { promise, resolve } = Promise.withResolvers<Tally<T>>();
  let tally: Tally<T> = { yes: [], no: [], failed: [] };
  const count = (add: Partial<Tally<T>>): void => {
    tally = { ...tally, ...add };
    if (isDecided(tally, nodes.length)) resolve(tally);
  };
  for (const node of nodes) {
    question(node).then(
      (answer) => {
        const isNo = answer === undefined || answer === false;
        count(isNo ? { no: [...tally.no, node.name] } : { yes: [...tally.yes, answer] });
        return undefined;
      },
      (error: unknown) => {
        count({ failed: [...tally.failed, { node: node.name, error: asError(error) }] });
      },
    );
  }
  return promise;
}
