// The keys of a lock on one Redis, and the scripts that change them.
import { CoordinationError } from "../errors.ts";
import type { CallLimits } from "../redis/bounded.ts";
import { CUT } from "../redis/clock.ts";
import { LESS, MINT } from "../redis/mint.ts";
import type { RedisNode } from "../redis/node.ts";
import { defineScript, type Script } from "../redis/script.ts";

/** Whose attempt at which lock. */
export interface LockClaim {
  readonly lock: string;
  /** Different for every attempt of everybody. */
  readonly owner: string;
  /** How long a node keeps the lock for it, from each word on, in milliseconds. */
  readonly ttlMs: number;
}

/** One of the independent Redis nodes that keep a lock. */
export interface LockNode {
  readonly name: string;
  readonly isReady: boolean;
  /**
   * Takes the lock unless somebody has it. Answers the counter of this node, which it raised when `isMinting`; undefined
   * when somebody else has the lock.
   */
  readonly take: (
    claim: LockClaim,
    terms: { readonly isMinting: boolean },
    limits: CallLimits,
  ) => Promise<bigint | undefined>;
  /**
   * Writes a token beside the lock, if the lock is still the claim's and the node knows no larger token; false otherwise.
   * A token that `isNew` comes from outside, and must be above what the node knows.
   */
  readonly confirm: (
    claim: LockClaim,
    token: { readonly value: bigint; readonly isNew: boolean },
    limits: CallLimits,
  ) => Promise<boolean>;
  /** Keeps the lock for another `ttlMs`; false when it is not the claim's. */
  readonly extend: (claim: LockClaim, limits: CallLimits) => Promise<boolean>;
  /** Whether the lock is the claim's. */
  readonly holds: (claim: LockClaim, limits: CallLimits) => Promise<boolean>;
  /** Frees the lock if it is the claim's. */
  readonly release: (claim: LockClaim, limits: CallLimits) => Promise<boolean>;
  readonly onDisconnect: (listener: () => void) => () => void;
}

// In all scripts an owner is `valueOf` a claim.

// KEYS: lock, token. ARGV: owner, ttl, whether to mint.
const TAKE = defineScript(`${MINT}${CUT}
local held = redis.call('GET', KEYS[1])
if held then
  local ttl, back = tonumber(string.match(held, ' (%d+)$')), '0'
  if ttl then ttl, back = cut(KEYS[1], ttl) end
  return {'held', back}
end
local token
if ARGV[3] == '1' then token = mint(KEYS[2], '0') else token = redis.call('GET', KEYS[2]) or '0' end
if not token then return {'exhausted', ''} end
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
return {'taken', token}`);

// KEYS: lock, token. ARGV: owner, token, whether the token must be new.
const CONFIRM = defineScript(`${LESS}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
local last = redis.call('GET', KEYS[2]) or '0'
if less(ARGV[2], last) or (ARGV[3] == '1' and ARGV[2] == last) then return 'passed' end
redis.call('SET', KEYS[2], ARGV[2])
return 'confirmed'`);

// KEYS: lock. ARGV: owner, ttl.
const EXTEND = defineScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'extended'`);

// KEYS: lock. ARGV: owner.
const RELEASE = defineScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('DEL', KEYS[1])
return 'released'`);

/**
 * A lock's keys at one Redis: `<prefix>:lock:{name}` (its holder, expires) and `…:token` (the last token, stays).
 * `onSetBack` is told when somebody's lock had more time left than it was ever given, and no longer has.
 */
export function redisLockNode(
  node: RedisNode,
  prefix: string,
  onSetBack: (lock: string, byMs: number) => void = () => undefined,
): LockNode {
  const keyOf = (lock: string): string => `${prefix}:lock:{${lock}}`;
  const run = async (
    what: string,
    script: Script,
    claim: LockClaim,
    args: readonly (string | number)[],
    limits: CallLimits,
  ): Promise<unknown> => {
    const key = keyOf(claim.lock);
    const values = { keys: [key, `${key}:token`], args: [valueOf(claim), ...args] };
    return node.script(what, script, values, limits);
  };
  return {
    name: node.name,
    get isReady() {
      return node.isReady;
    },
    async take(claim, { isMinting }, limits) {
      const { lock, ttlMs } = claim;
      const args = [ttlMs, isMinting ? 1 : 0];
      const answer = await run("taking a lock", TAKE, claim, args, limits);
      const [what, number] = answer as readonly [string, string];
      if (what === "taken") return BigInt(number);
      if (what === "held") {
        if (number !== "0") onSetBack(lock, Number(number));
        return undefined;
      }
      const text = `lock "${lock}" has used up its tokens, which end at 2^53`;
      throw new CoordinationError("TOKEN_EXHAUSTED", text, { metadata: { lock } });
    },
    async confirm(claim, { value, isNew }, limits) {
      const args = [String(value), isNew ? 1 : 0];
      return (await run("confirming a lock", CONFIRM, claim, args, limits)) === "confirmed";
    },
    async extend(claim, limits) {
      return (await run("extending a lock", EXTEND, claim, [claim.ttlMs], limits)) === "extended";
    },
    async holds(claim, limits) {
      const key = keyOf(claim.lock);
      const value = await node.run("looking at a lock", (redis) => redis.get(key), limits);
      return value === valueOf(claim);
    },
    async release(claim, limits) {
      return (await run("releasing a lock", RELEASE, claim, [], limits)) === "released";
    },
    onDisconnect: (listener) => node.onDisconnect(listener),
  };
}

/** What a node keeps of a claim: its ttl beside its owner, since holders of one lock may have different ones. */
function valueOf({ owner, ttlMs }: LockClaim): string {
  return `${owner} ${ttlMs}`;
}
