/**
 * Which tags have series of their own: the busiest ones, so that a hundred thousand tags do not make a hundred thousand
 * series. Pure; it is told of every tag at each collection.
 *
 * INVARIANTS
 * 1. At most `limit` tags have series.
 * 2. No counter goes down, and together they grow by what was counted: a tag's series has what was counted since it got
 *    its place, and `rest` has all else, which stays there.
 * 3. A tag keeps its place unless another was more than twice as busy since places were given last, so that tags which
 *    are equally busy do not take turns.
 */
export interface BusiestState {
  readonly limit: number;
  readonly named: Map<string, NamedTag>;
  /** What the series of tags have got in all, those of tags included that lost their places. */
  attributedIds: number;
  attributedWaste: number;
  rankedAt: number;
}

/** What is counted of a tag, by whoever issues its ids. */
export interface CountedTag {
  readonly name: string;
  readonly issued: number;
  /** What `issued` was when places were given last. */
  ranked: number;
}

/** A tag with a place. */
export interface NamedTag {
  /** The record that was counted last: a tag that was left and looked up again has another one, which begins at 0. */
  from: CountedTag;
  seen: number;
  ids: number;
  wasted: number;
  /** Ids a second, and since when and from what they are counted. */
  rate: number;
  rateSince: number;
  rateFrom: number;
}

/** How often places are given anew. */
const RANK_EVERY_MS = 10_000;
/** Shortest stretch over which a rate is taken. */
const RATE_OVER_MS = 1_000;

export function createBusiestState(limit: number): BusiestState {
  return {
    limit,
    named: new Map(),
    attributedIds: 0,
    attributedWaste: 0,
    rankedAt: -Infinity,
  };
}

/** Ids of a tag became a gap. */
export function wastedOf(state: BusiestState, name: string, count: number): void {
  const named = state.named.get(name);
  if (named === undefined) return;
  named.wasted += count;
  state.attributedWaste += count;
}

/** A look at all tags. */
export interface Ranking {
  readonly isDue: boolean;
  /** The busiest of those without a place, with how many ids they issued. */
  candidates: Candidate[];
  /** The same of those with one; only where places are given anew. */
  readonly holders: Candidate[];
}

interface Candidate {
  readonly tag: CountedTag;
  readonly ids: number;
}

export function beginRanking(state: BusiestState, now: number): Ranking {
  return { isDue: now - state.rankedAt >= RANK_EVERY_MS, candidates: [], holders: [] };
}

/** To be called for each tag. Answers whether it has a place. */
export function lookAtTag(state: BusiestState, ranking: Ranking, tag: CountedTag): boolean {
  const ids = tag.issued - tag.ranked;
  if (ranking.isDue) tag.ranked = tag.issued;
  if (state.named.has(tag.name)) {
    if (ranking.isDue) ranking.holders.push({ tag, ids });
    return true;
  }
  if (ids <= 0 || state.limit === 0) return false;
  ranking.candidates.push({ tag, ids });
  if (ranking.candidates.length > 2 * state.limit) ranking.candidates = busiest(ranking, state);
  return false;
}

/** After all tags were looked at: gives free places to the busiest, and when it is due also those of idle tags. */
export function endRanking(state: BusiestState, ranking: Ranking, now: number): void {
  const waiting = busiest(ranking, state);
  if (ranking.isDue) {
    state.rankedAt = now;
    leavePlaces(state, ranking.holders, waiting);
  }
  for (const { tag } of waiting) {
    if (state.named.size >= state.limit) return;
    const { issued } = tag;
    const rate = { rate: 0, rateSince: now, rateFrom: 0 };
    state.named.set(tag.name, { from: tag, seen: issued, ids: 0, wasted: 0, ...rate });
  }
}

/** Counts what a tag with a place issued since the last look. */
export function countNamed(
  state: BusiestState,
  named: NamedTag,
  tag: CountedTag,
  now: number,
): void {
  const isSame = tag === named.from;
  const ids = isSame ? tag.issued - named.seen : tag.issued;
  named.from = tag;
  named.seen = tag.issued;
  named.ids += ids;
  state.attributedIds += ids;
  if (now - named.rateSince < RATE_OVER_MS) return;
  named.rate = ((named.ids - named.rateFrom) / (now - named.rateSince)) * 1_000;
  named.rateSince = now;
  named.rateFrom = named.ids;
}

function busiest({ candidates }: Ranking, { limit }: BusiestState): Candidate[] {
  return candidates.toSorted((a, b) => b.ids - a.ids).slice(0, limit);
}

/** Invariant 3. A tag that is not there any more was idle. */
function leavePlaces(
  { limit, named }: BusiestState,
  holders: readonly Candidate[],
  waiting: readonly Candidate[],
): void {
  const idsOf = new Map(holders.map(({ tag, ids }) => [tag.name, ids]));
  const weakest = [...named.keys()]
    .map((name) => ({ name, ids: idsOf.get(name) ?? 0 }))
    .toSorted((a, b) => a.ids - b.ids);
  const free = limit - named.size;
  for (const [at, { ids }] of waiting.slice(free).entries()) {
    const last = weakest[at];
    if (last === undefined || ids <= 2 * last.ids) return;
    named.delete(last.name);
  }
}
