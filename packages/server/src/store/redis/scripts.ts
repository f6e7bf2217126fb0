import { createHash } from "node:crypto";
import { MOVE_FAILED_AFTER_MS } from "@idmint/core/server";

/** A script, sent whole once to each Redis, by its hash afterwards. */
export interface Script {
  /** For metrics and traces. */
  readonly name: string;
  readonly lua: string;
  readonly sha: string;
}

/*
 * INVARIANTS, for all scripts
 * 1. All checks come before the first write, and what is issued takes one write: a script that Redis ends in the middle
 *    (memory limit, read-only replica, full disk) has issued nothing.
 * 2. run_id and master_replid are read inside the script, so they are those of the very Redis that counts. run_id is
 *    new in every process; the replication id changes when a replica becomes a master, so a master that was a replica
 *    meanwhile, and took over an older state, is known too.
 * 3. Numbers are doubles in Lua, exact up to 2^53; ids of sequences in Redis end below, and so do positions of
 *    snowflakes. Numbers are answered as texts.
 * 4. A hash is its store's alone: its field `store` is the id of that store. Nothing of another store's hash is counted on
 *    or changed, whatever its generation: two stores give out equal ones. One without the field counts for nobody, and a
 *    seed of a higher generation takes it over.
 *
 * KEYS[1] is the tag's hash, and the last of ARGV the id of the caller's store. Every script that needs to know the Redis
 * it runs in begins with PRESENT.
 */
/** How long an emptiness that nobody ends is remembered. */
const FORGET_VACANCY_S = 60;

/** `foreign` is the answer to whoever asks for a hash of another store. */
const OWNED = `
local store = ARGV[#ARGV]
local function foreign(owner)
  if owner and owner ~= store then return {'foreign', owner} end
end
`;

const PRESENT = `${OWNED}
local function text(number) return string.format('%.0f', number) end
local function present()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local replication = redis.call('INFO', 'replication')
  if string.find(replication, 'role:slave', 1, true) then return nil, nil, 'READONLY a replica does not count' end
  return run, string.match(replication, 'master_replid:(%w+)'), 'ERR INFO tells neither run_id nor master_replid'
end
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local function missing()
  local vacancy = redis.call('HGET', KEYS[1], 'vacant')
  if not vacancy then
    local time = redis.call('TIME')
    vacancy = time[1] .. '.' .. time[2]
    redis.call('HSET', KEYS[1], 'vacant', vacancy)
    redis.call('EXPIRE', KEYS[1], ${FORGET_VACANCY_S})
  end
  return {'missing', '0', vacancy}
end
`;

/** Does what every script does, and changes nothing: a field that no hash has is removed. */
export const PROBE: Script = script(
  "probe",
  `redis.call('INFO', 'server')
redis.call('TIME')
redis.call('HMGET', KEYS[1], 'store')
return redis.call('HDEL', KEYS[1], 'probe')`,
);

/** `doubt` is why nothing may be issued under generation ARGV[1], or nil; `now` is Redis' clock. */
export function checked(fields: readonly string[]): string {
  const names = fields.map((field) => `, '${field}'`).join("");
  return `${PRESENT}
local now = clock()
local function check(has, owner)
  local refusal = foreign(owner)
  if refusal then return refusal end
  if has[4] then return {'moved', has[1] or '0', text(now - tonumber(has[4]))} end
  if not has[1] or not has[5] or not has[6] then return missing() end
  if not owner then return {'restarted', has[1]} end
  local run, history, why = present()
  if not run or not history then return redis.error_reply(why) end
  if has[2] ~= run or has[3] ~= history then return {'restarted', has[1]} end
  if has[1] ~= ARGV[1] then return {'other-generation', has[1]} end
  return nil
end
local has = redis.call('HMGET', KEYS[1], 'generation', 'run_id', 'replid', 'moved_at_ms'${names}, 'store')
local owner = table.remove(has)
local doubt = check(has, owner)
`;
}

/** ARGV: generation, count, highest id seen. Issues (cur, cur + count] when that is not above max. */
export const SEQUENCE_ISSUE: Script = script(
  "sequence_issue",
  `${checked(["cur", "max"])}
if doubt then return doubt end
local cur, max, count = tonumber(has[5]), tonumber(has[6]), tonumber(ARGV[2])
if cur < tonumber(ARGV[3]) then return {'behind', has[1]} end
if count > max - cur then return {'exhausted', has[5], has[6]} end
if count > 0 then redis.call('HINCRBY', KEYS[1], 'cur', ARGV[2]) end
return {'issued', has[5], text(cur + count), has[6]}
`,
);

/**
 * ARGV: generation, count, first position that the caller has not seen answered, most milliseconds ahead of the clock.
 * Issues count positions from where the tag is or from now on, whichever is later.
 */
export const SNOWFLAKE_ISSUE: Script = script(
  "snowflake_issue",
  `${checked(["last_ms", "limit_ms", "seq"])}
if doubt then
  -- An answer ends at its first hole.
  doubt[3], doubt[4] = doubt[3] or '', text(now)
  return doubt
end
local at, limit, count = tonumber(has[5]) * 1024 + tonumber(has[7]), tonumber(has[6]), tonumber(ARGV[2])
if at < tonumber(ARGV[3]) then return {'behind', has[1], '', text(now)} end
if now * 1024 > at then at = now * 1024 end
local last = math.floor((at + count - 1) / 1024)
if count > 0 and last > now + tonumber(ARGV[4]) then
  return {'ahead', text(last - now), text(limit), text(now)}
end
if count > 0 and last > limit then return {'limit', '', text(limit), text(now)} end
if count > 0 then
  local next = at + count
  redis.call('HSET', KEYS[1], 'last_ms', text(math.floor(next / 1024)), 'seq', text(next % 1024))
end
return {'issued', text(at), text(limit), text(now)}
`,
);

/** How long the old Redis server remembers that a tag moved away. */
const FORGET_MOVED_S = 3_600;

/**
 * ARGV: generation, the emptiness it may end (or ''), the tag, then fields and values.
 *
 * INVARIANT: a seed is never taken on an empty Redis but in the very time of emptiness in which it was decided on. One
 * that comes late, after Redis was emptied again, would begin below what a higher generation issued meanwhile.
 */
const SEED = `${PRESENT}
local has = redis.call('HMGET', KEYS[1], 'generation', 'moved_at_ms', 'seq_long_term', 'vacant', 'store')
local refusal = foreign(has[5])
if refusal then return refusal end
if has[2] and clock() - tonumber(has[2]) < ${MOVE_FAILED_AFTER_MS} then
  return {'moved', has[1] or '0', text(clock() - tonumber(has[2]))}
end
if has[1] and tonumber(ARGV[1]) <= tonumber(has[1]) then return {'other-generation', has[1]} end
if not has[1] and not has[2] and has[4] ~= ARGV[2] then return missing() end
local run, history, why = present()
if not run or not history then return redis.error_reply(why) end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'generation', ARGV[1], 'run_id', run, 'replid', history, 'store', store,
  unpack(ARGV, 4, #ARGV - 1))
`;

/** KEYS[2]: the set of sequences of this Redis server. */
export const SEQUENCE_SEED: Script = script(
  "sequence_seed",
  `${SEED}
redis.call('HSET', KEYS[1], 'seq_recently', '0', 'seq_long_term', has[3] or '0')
redis.call('SADD', KEYS[2], ARGV[3])
return {'seeded'}
`,
);

export const SNOWFLAKE_SEED: Script = script(
  "snowflake_seed",
  `${SEED}
return {'seeded'}
`,
);

/** ARGV: generation, field, value. Raises a bound of this generation, never lowers it. */
export const RAISE: Script = script(
  "raise",
  `${OWNED}
local has = redis.call('HMGET', KEYS[1], 'generation', ARGV[2], 'store')
local refusal = foreign(has[3])
if refusal then return refusal end
if not has[3] or has[1] ~= ARGV[1] or not has[2] or tonumber(ARGV[3]) <= tonumber(has[2]) then return '0' end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
return '1'
`,
);

/** ARGV: generation, seq_recently, seq_long_term. */
export const WRITE_RATES: Script = script(
  "write_rates",
  `${OWNED}
local has = redis.call('HMGET', KEYS[1], 'generation', 'store')
if has[1] ~= ARGV[1] or has[2] ~= store then return '0' end
redis.call('HSET', KEYS[1], 'seq_recently', ARGV[2], 'seq_long_term', ARGV[3])
return '1'
`,
);

/** KEYS[2]: the set of sequences; ARGV: the tag. */
export const RETIRE: Script = script(
  "retire",
  `${OWNED}
local refusal = foreign(redis.call('HGET', KEYS[1], 'store'))
if refusal then return refusal end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'store', store, 'moved_at_ms',
  time[1] .. string.format('%03d', math.floor(tonumber(time[2]) / 1000)))
redis.call('EXPIRE', KEYS[1], ${FORGET_MOVED_S})
redis.call('SREM', KEYS[2], ARGV[1])
return '1'
`,
);

/** Forgets a tag that was told to move: asked for again, it is given a new start. */
export const FORGET: Script = script(
  "forget",
  `${OWNED}
local refusal = foreign(redis.call('HGET', KEYS[1], 'store'))
if refusal then return refusal end
if redis.call('HEXISTS', KEYS[1], 'moved_at_ms') == 0 then return '0' end
redis.call('DEL', KEYS[1])
return '1'
`,
);

export function script(name: string, lua: string): Script {
  return { name, lua, sha: createHash("sha1").update(lua).digest("hex") };
}
