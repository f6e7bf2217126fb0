/** A slot that shall go from one database to another, by name. */
export interface Move {
  readonly slot: number;
  readonly from: string;
  readonly to: string;
}

/**
 * The fewest moves after which the slots lie evenly on `targets` (their numbers differ by one at most) and nowhere else.
 * `owners` has the present owner of each slot. Databases that have most keep the odd ones, since that moves least; with
 * equal numbers the order of `targets` decides, so that the same input gives the same plan.
 */
export function planMoves(
  owners: ReadonlyMap<number, string>,
  targets: readonly string[],
): readonly Move[] {
  if (targets.length === 0) throw new RangeError("slots must go to at least one database");
  const held = new Map<string, number[]>(targets.map((name) => [name, []]));
  const leaving: { slot: number; from: string }[] = [];
  for (const [slot, from] of [...owners].toSorted(([a], [b]) => a - b)) {
    const own = held.get(from);
    if (own === undefined) leaving.push({ slot, from });
    else own.push(slot);
  }
  const wanted = shares(held, owners.size);
  for (const [from, own] of held) {
    // The highest leave, wherever they were moved to before: any choice is as good.
    for (const slot of own.splice(wanted.get(from) ?? 0)) leaving.push({ slot, from });
  }
  const moves: Move[] = [];
  for (const [to, own] of held) {
    const missing = (wanted.get(to) ?? 0) - own.length;
    for (const { slot, from } of leaving.splice(0, missing)) moves.push({ slot, from, to });
  }
  return moves.toSorted((a, b) => a.slot - b.slot);
}

function shares(
  held: ReadonlyMap<string, readonly number[]>,
  total: number,
): ReadonlyMap<string, number> {
  const least = Math.floor(total / held.size);
  let odd = total % held.size;
  const byNumber = [...held].toSorted(([, a], [, b]) => b.length - a.length);
  return new Map(byNumber.map(([name]) => [name, least + (odd-- > 0 ? 1 : 0)]));
}
