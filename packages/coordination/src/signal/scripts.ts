import { CLOCK } from "../redis/clock.ts";
import { MINT } from "../redis/mint.ts";
import { defineScript, type Script } from "../redis/script.ts";

/** Days without a broadcast after which a name's count is forgotten: 7, in milliseconds. */
const COUNT_TTL_MS = 604_800_000;

/** KEYS: count. ARGV: channel, message. Counts and sends in one step, so that the counts come in the order of the messages. */
export const BROADCAST: Script = defineScript(`
${MINT}
local previous = redis.call('GET', KEYS[1]) or '0'
local count = mint(KEYS[1], 0)
if not count then return redis.error_reply('the count is used up') end
redis.call('PEXPIRE', KEYS[1], ${COUNT_TTL_MS})
return tostring(redis.call('PUBLISH', ARGV[1], '2:' .. previous .. ':' .. count .. ':' .. ARGV[2]))
`);

/** Where the waiters for one of a name are. All in one hash slot. */
export interface OneKeys {
  /** KEYS 1 to 5 of all scripts: waiters, chosen, given, kept, clock. */
  readonly shared: readonly [string, string, string, string, string];
  /** What the keys of taken signals begin with; the waiter's id follows. */
  readonly takenPrefix: string;
}

export function oneKeys(prefix: string, name: string): OneKeys {
  const base = `${prefix}:signal:one:{${name}}`;
  return {
    shared: [`${base}:waiters`, `${base}:chosen`, `${base}:given`, `${base}:kept`, `${base}:clock`],
    takenPrefix: `${base}:taken:`,
  };
}

/** When a list of waiters that nobody renews goes, and the clock, in milliseconds; above the longest lease. */
const WAITERS_TTL_MS = 120_000;

/**
 * A waiter's id is `instance/number`; it waits (in `waiters`, by the end of its lease), is chosen (in `chosen` by the end of
 * its lease, its signal in `given`), or has taken its signal (`taken:…`), or is none of these.
 *
 * A SIGNAL IS IN ONE PLACE: kept, given to one waiter, or taken by one. Each script moves it in one step. A signal that
 * was given and not taken in time goes to the next waiter; who comes for it later finds it gone.
 *
 * A waiter is chosen only when somebody hears the channel of its instance, so one whose process died is passed over.
 *
 * The clock of the leases never goes back. When it is gone, nobody was here for longer than any lease, so all are over.
 *
 * KEYS: waiters, chosen, given, kept, clock. ARGV: lease, prefix of the instances' channels. Every answer begins with by how
 * much Redis' clock was set back.
 */
const ONE = `${CLOCK}
local waiters, chosen, given, kept = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lease = tonumber(ARGV[1])
local now, back, isKnown = clock(KEYS[5])
redis.call('PEXPIRE', KEYS[5], ${WAITERS_TTL_MS})
local over = isKnown and now or '+inf'

local function choose(message)
  while true do
    local id = redis.call('ZRANGE', waiters, 0, 0)[1]
    if not id then return false end
    redis.call('ZREM', waiters, id)
    if redis.call('PUBLISH', ARGV[2] .. string.match(id, '^[^/]+'), id) > 0 then
      redis.call('ZADD', chosen, now + lease, id)
      redis.call('HSET', given, id, message)
      return true
    end
  end
end

local function passOn(message)
  if not choose(message) then redis.call('LPUSH', kept, message) end
end

local function takeGiven(id)
  local message = redis.call('HGET', given, id)
  if message then
    redis.call('HDEL', given, id)
    redis.call('ZREM', chosen, id)
  end
  return message
end

local function sweep()
  redis.call('ZREMRANGEBYSCORE', waiters, '-inf', over)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', chosen, '-inf', over, 'LIMIT', 0, 100)) do
    local message = takeGiven(id)
    if message then passOn(message) end
  end
end
`;

/** ARGV 3, 4: most kept, message. Answers given, kept or full. */
export const SIGNAL_ONE: Script = defineScript(`
${ONE}
sweep()
if choose(ARGV[4]) then return {back, 'given'} end
if redis.call('LLEN', kept) >= tonumber(ARGV[3]) then return {back, 'full'} end
redis.call('RPUSH', kept, ARGV[4])
return {back, 'kept'}
`);

/**
 * KEYS 6: taken. ARGV 3, 4: id, most waiters. Takes the signal that was given to this waiter, or one that is kept, else
 * registers it; called again within two leases it answers the same, so an answer that was lost loses nothing. Answers the
 * state, and the signal.
 */
export const JOIN_ONE: Script = defineScript(`
${ONE}
local id = ARGV[3]
local taken = redis.call('GET', KEYS[6])
if taken then return {back, 'taken', taken} end
local message = takeGiven(id)
if not message then
  sweep()
  message = redis.call('LPOP', kept)
end
if message then
  redis.call('ZREM', waiters, id)
  redis.call('SET', KEYS[6], message, 'PX', 2 * lease)
  return {back, 'taken', message}
end
local isNew = not redis.call('ZSCORE', waiters, id)
if isNew and redis.call('ZCARD', waiters) >= tonumber(ARGV[4]) then return {back, 'full'} end
redis.call('ZADD', waiters, now + lease, id)
redis.call('PEXPIRE', waiters, ${WAITERS_TTL_MS})
return {back, 'waiting'}
`);

/**
 * KEYS 6: taken. ARGV 3, 4: id, take or pass. Ends a wait in the same step in which it looks for a signal of it: that is
 * taken and answered (take), or goes to the next waiter (pass), also when it was taken before.
 */
export const LEAVE_ONE: Script = defineScript(`
${ONE}
redis.call('ZREM', waiters, ARGV[3])
local message = takeGiven(ARGV[3])
if not message then
  message = redis.call('GET', KEYS[6])
  redis.call('DEL', KEYS[6])
end
if not message then return {back} end
if ARGV[4] == 'take' then
  redis.call('SET', KEYS[6], message, 'PX', 2 * lease)
  return {back, message}
end
redis.call('ZREMRANGEBYSCORE', waiters, '-inf', over)
passOn(message)
return {back}
`);

/** ARGV 3 and on: ids. Renews leases, and answers the ids that do not wait any more: chosen ones, or forgotten ones. */
export const RENEW_ONE: Script = defineScript(`
${ONE}
sweep()
local answer = {back}
for at = 3, #ARGV do
  if redis.call('ZSCORE', waiters, ARGV[at]) then
    redis.call('ZADD', waiters, now + lease, ARGV[at])
  else
    answer[#answer + 1] = ARGV[at]
  end
end
redis.call('PEXPIRE', waiters, ${WAITERS_TTL_MS})
return answer
`);
