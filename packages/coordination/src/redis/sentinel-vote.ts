/** Where a Redis listens. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** What a Sentinel says when it is asked where the master is. */
export type SentinelAnswer =
  | { readonly says: "master"; readonly at: RedisAddress }
  /** It watches no master of this name. */
  | { readonly says: "unknown" }
  /** A Redis that is no Sentinel. */
  | { readonly says: "not-a-sentinel" }
  /** It lets nobody in with the user and password that it was shown. */
  | { readonly says: "no-entry"; readonly why: "NOAUTH" | "NOPERM" | "WRONGPASS" }
  | { readonly says: "nothing"; readonly why: string };

/** A listed Sentinel and its answer. */
export interface SentinelVote {
  readonly sentinel: string;
  readonly answer: SentinelAnswer;
}

/**
 * The master that Sentinels name.
 *
 * INVARIANT: It is a master only if more than half of the listed Sentinels name it. One that was cut off from the others
 * goes on naming the old master, and so does one that watches another Redis under the same name. Two addresses never
 * have such a majority among the same answers, so nobody has to guess which one is right.
 */
export function agreedMaster(votes: readonly SentinelVote[]): RedisAddress | undefined {
  const counts = new Map<string, number>();
  for (const { answer } of votes) {
    if (answer.says !== "master") continue;
    const key = addressText(answer.at);
    const count = (counts.get(key) ?? 0) + 1;
    if (count > votes.length / 2) return answer.at;
    counts.set(key, count);
  }
  return undefined;
}

/** Why there is no majority, and the way out. */
export function disagreementText(master: string, votes: readonly SentinelVote[]): string {
  const named = votes.flatMap(({ answer }) => (answer.says === "master" ? [answer.at] : []));
  const isSplit = new Set(named.map(addressText)).size > 1;
  const what = isSplit
    ? `its Sentinels disagree about the master "${master}"`
    : `no majority of its Sentinels names the master "${master}"`;
  return `${what}: ${votesText(votes)}`;
}

/** What is wrong with listed Sentinels that are none; undefined: nothing. */
export function wrongSentinelText(votes: readonly SentinelVote[]): string | undefined {
  const wrong = votes.filter(({ answer }) => answer.says === "not-a-sentinel");
  return wrong.length === 0 ? undefined : votesText(wrong);
}

/** Equal answers are told once: callers see the beginning of a long text only. */
function votesText(votes: readonly SentinelVote[]): string {
  const byAnswer = Map.groupBy(votes, ({ answer }) => answerText(answer));
  return [...byAnswer]
    .map(([text, same]) => `${same.map(({ sentinel }) => sentinel).join(", ")}: ${text}`)
    .join("; ");
}

function answerText(answer: SentinelAnswer): string {
  switch (answer.says) {
    case "master":
      return `the master is ${addressText(answer.at)}`;
    case "unknown":
      return "no master of this name; look at the end of the URL";
    case "not-a-sentinel":
      return "this is a Redis and not a Sentinel; write redis://host:port for it, or list the Sentinels of its master";
    case "no-entry":
      return `no entry with the user and password given for Sentinels (${answer.why})`;
    case "nothing":
      return answer.why;
    default:
      return answer satisfies never;
  }
}

export function addressText({ host, port }: RedisAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
