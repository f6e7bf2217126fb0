/** What keeps some of what all share. */
export interface Keeper {
  /** Who it is of. All that is of one caller counts together. */
  readonly caller: string;
}

/**
 * Who has to go, so that at most `most` is kept: each time of the caller who keeps the most then, and of its own the one that
 * keeps the most. So nobody goes for what others keep, while these keep more. Pure.
 */
export function losersOf<Its extends Keeper>(
  all: Iterable<Its>,
  most: number,
  amount: (its: Its) => number,
): Its[] {
  const callers = new Map<string, { sum: number; readonly own: Its[] }>();
  let kept = 0;
  for (const its of all) {
    const share = amount(its);
    if (share <= 0) continue;
    const caller = callers.get(its.caller) ?? { sum: 0, own: [] };
    callers.set(its.caller, caller);
    caller.own.push(its);
    caller.sum += share;
    kept += share;
  }
  for (const { own } of callers.values()) own.sort((a, b) => amount(a) - amount(b));
  const losers: Its[] = [];
  while (kept > most) {
    let greediest = { sum: 0, own: [] as Its[] };
    for (const caller of callers.values()) if (caller.sum > greediest.sum) greediest = caller;
    const loser = greediest.own.pop();
    if (loser === undefined) break;
    greediest.sum -= amount(loser);
    kept -= amount(loser);
    losers.push(loser);
  }
  return losers;
}
