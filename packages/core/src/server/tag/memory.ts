import { specOf, type TagKind } from "../../kinds/table.ts";
import type { EarlierMemory, Tag } from "./tag.ts";

/** How long callers may go on by themselves: with segments they hold, with time that is reserved for them. */
export function memoryMsOf(kind: TagKind): number {
  return specOf(kind).memoryMs(kind);
}

/**
 * What a row remembers of settings by which callers were allowed to hold ids for longer than by `kind`, which replaces them
 * at `revision`.
 *
 * INVARIANT: the longest time that may still run is never forgotten. Only who knows that what the row remembers so far is
 * over (`isOver`) may let go of it.
 */
export function earlierMemory(
  old: Tag,
  kind: TagKind,
  revision: bigint,
  isOver: boolean,
): EarlierMemory | undefined {
  const before = isOver ? undefined : old.earlier;
  const [was, is] = [memoryMsOf(old.kind), memoryMsOf(kind)];
  if (was > is) return { memoryMs: Math.max(was, before?.memoryMs ?? 0), revision };
  return before !== undefined && before.memoryMs > is ? before : undefined;
}
