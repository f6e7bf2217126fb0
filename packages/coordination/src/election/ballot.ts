// The keys of an election at one Redis, and what its answers mean.
import { CoordinationError, type Reason } from "../errors.ts";
import type { CallLimits } from "../redis/bounded.ts";
import type { RedisNode } from "../redis/node.ts";
import type { Script } from "../redis/script.ts";
import { CAMPAIGN, ENTER, RENEW, RESIGN } from "./scripts.ts";

/** What came of asking to be elected. */
export type Verdict =
  | { readonly type: "elected"; readonly term: bigint }
  /** Somebody else leads, for so long unless it renews. */
  | {
      readonly type: "led";
      readonly leader: string;
      readonly leftMs: number;
      /** By how much that was too long before: Redis' clock was set back by so much at least. */
      readonly setBackMs: number;
    }
  /** Redis does not know who led before; nobody is elected for so long. */
  | { readonly type: "settling"; readonly leftMs: number; readonly setBackMs: number };

/** One candidate's way to Redis. */
export interface Ballot {
  /** Asks to be elected as `owner`; the term is above `floor`, or 0n when `isMinting` is false. */
  readonly campaign: (
    owner: string,
    term: { readonly floor: bigint; readonly isMinting: boolean },
    limits: CallLimits,
  ) => Promise<Verdict>;
  /** Writes a term from outside; false when `owner` does not lead any more. TOKEN_WENT_BACK when it is not new. */
  readonly enter: (owner: string, term: bigint, limits: CallLimits) => Promise<boolean>;
  /** Keeps the leadership for another ttl; false when it is not the owner's. */
  readonly renew: (owner: string, limits: CallLimits) => Promise<boolean>;
  /** Gives the leadership up. */
  readonly resign: (owner: string, limits: CallLimits) => Promise<boolean>;
}

/** Keys: `<prefix>:election:{name}` (leader, expires), `:term` (stays), `:seen` and `:settling` (expire). */
export function redisBallot(
  node: RedisNode,
  {
    name,
    prefix,
    ttlMs,
  }: { readonly name: string; readonly prefix: string; readonly ttlMs: number },
): Ballot {
  const leader = `${prefix}:election:{${name}}`;
  const keys = [leader, `${leader}:term`, `${leader}:seen`, `${leader}:settling`];
  const fail = (reason: Reason, text: string): never => {
    throw new CoordinationError(reason, `election "${name}": ${text}`, {
      metadata: { election: name },
    });
  };
  // The Redis that answered last.
  let last = "";
  const run = async (
    what: string,
    script: Script,
    args: readonly string[],
    limits: CallLimits,
  ): Promise<readonly string[]> => {
    const [here = "", ...answer] = (await node.script(
      `${what} in election "${name}"`,
      script,
      { keys, args: [String(ttlMs), last, ...args] },
      limits,
    )) as readonly string[];
    if (answer[0] === "replica") fail("NODE_UNAVAILABLE", `${node.name} is a replica`);
    if (answer[0] === "mismatch") {
      const text = `other candidates have a ttlMs of ${answer[1]}, this one ${ttlMs}; all need the same`;
      fail("ELECTION_MISMATCH", text);
    }
    last = here;
    return answer;
  };
  return {
    async campaign(owner, { floor, isMinting }, limits) {
      const args = [owner, String(floor), isMinting ? "1" : "0"];
      const answer = await run("standing", CAMPAIGN, args, limits);
      const [what, first = "", back = "", leader = ""] = answer;
      const left = { leftMs: Number(first), setBackMs: Number(back) };
      if (what === "led") return { type: "led", leader, ...left };
      if (what === "settling") return { type: "settling", ...left };
      if (what === "exhausted")
        fail("TOKEN_EXHAUSTED", "its terms, which end at 2^53, are used up");
      return { type: "elected", term: BigInt(first) };
    },
    async enter(owner, term, limits) {
      const [what, before] = await run("entering a term", ENTER, [owner, String(term)], limits);
      if (what === "back") {
        fail("TOKEN_WENT_BACK", `term ${term} is not above ${before}, which was given before`);
      }
      return what === "entered";
    },
    async renew(owner, limits) {
      const [what] = await run("renewing", RENEW, [owner], limits);
      return what === "renewed";
    },
    async resign(owner, limits) {
      const values = { keys: [leader], args: [owner] };
      return (await node.script("resigning", RESIGN, values, limits)) === "resigned";
    },
  };
}
