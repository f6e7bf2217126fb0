import type { MarkedGeneration, RedisMark } from "../store/redis-bounds.ts";

interface Known {
  readonly generation: bigint;
  /** The highest count of it that this server or the store knows of; undefined: it is still to be read. */
  readonly highest: bigint | undefined;
  /** What the store keeps, as it was last heard. */
  readonly kept: bigint;
  /** The highest generation of the tag that anybody was answered under. */
  readonly newest: bigint;
}

/**
 * What one server knows of how far the tags that it asks Redis for had counted, for all servers together.
 *
 * INVARIANTS
 * 1. Counts of different generations never compare: of each tag one generation is known, the one it was last asked under.
 * 2. A mark is known only after the kept one was read, or with a start that this server gave Redis itself; and it only
 *    rises.
 * 3. While a generation is to be read, no answer about another one, which was asked for before, takes its place.
 * 4. A mark is sent as long as the store keeps less than is known here, also when the store had it and lost it.
 */
export interface MarkState {
  readonly known: Map<string, Known>;
  /** Tags known at most; further ones push out those known longest, which are read again when they are asked for. */
  readonly limit: number;
}

export function createMarkState(limit: number): MarkState {
  return { known: new Map(), limit };
}

/** The highest count known of a tag under a generation; undefined when it is not known. */
export function knownMark(
  state: MarkState,
  { tag, generation }: MarkedGeneration,
): bigint | undefined {
  const known = state.known.get(tag);
  return known?.generation === generation ? known.highest : undefined;
}

/** The highest generation of a tag that anybody was answered under, as far as it is known; 0 when it is not. */
export function newestMarked(state: MarkState, tag: string): bigint {
  return state.known.get(tag)?.newest ?? 0n;
}

/** All that is known, by tag. */
export function knownGenerations(state: MarkState): readonly MarkedGeneration[] {
  return [...state.known].flatMap(([tag, { generation, highest }]) =>
    highest === undefined ? [] : [{ tag, generation }],
  );
}

/** A generation is to be read: what is known of another one of its tag is let go of. */
export function expectMark(state: MarkState, { tag, generation }: MarkedGeneration): void {
  if (state.known.get(tag)?.generation === generation) return;
  put(state, tag, { generation, highest: undefined, kept: 0n, newest: 0n });
}

/** Redis was given a start of this generation by this server, or counted so far for it. */
export function raiseMark(state: MarkState, { tag, generation, mark }: RedisMark): void {
  const old = state.known.get(tag);
  if (old?.generation !== generation) {
    const newest = maxOf(old?.newest ?? 0n, generation);
    put(state, tag, { generation, highest: mark, kept: 0n, newest });
  } else if (old.highest === undefined || mark > old.highest)
    put(state, tag, { ...old, highest: mark });
}

/** Those of these marks that the store does not keep yet. */
export function risenMarks(
  state: MarkState,
  asked: readonly MarkedGeneration[],
): readonly RedisMark[] {
  return asked.flatMap(({ tag, generation }) => {
    const known = state.known.get(tag);
    if (known?.generation !== generation) return [];
    const { highest, kept } = known;
    return highest === undefined || highest <= kept ? [] : [{ tag, generation, mark: highest }];
  });
}

/**
 * The store was sent `sent`, and answered what it kept of those `asked` for, and of higher generations, before or with
 * that. Where another generation came to be known or expected meanwhile, the answer is of no use.
 */
export function marksTold(
  state: MarkState,
  asked: readonly MarkedGeneration[],
  sent: readonly RedisMark[],
  told: readonly RedisMark[],
): void {
  const toldOf = Map.groupBy([...sent, ...told], ({ tag }) => tag);
  for (const { tag, generation } of asked) {
    const old = state.known.get(tag);
    if (old !== undefined && old.generation !== generation) continue;
    const its = toldOf.get(tag) ?? [];
    const kept = its
      .filter((one) => one.generation === generation)
      .reduce((most, { mark }) => maxOf(most, mark), 0n);
    const newest = its.reduce((most, one) => maxOf(most, one.generation), old?.newest ?? 0n);
    put(state, tag, { generation, highest: maxOf(old?.highest ?? 0n, kept), kept, newest });
  }
}

function put(state: MarkState, tag: string, known: Known): void {
  state.known.set(tag, known);
  const [oldest] = state.known.keys();
  if (state.known.size > state.limit && oldest !== undefined) state.known.delete(oldest);
}

function maxOf(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
