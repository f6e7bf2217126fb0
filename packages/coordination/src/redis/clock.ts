// Redis' clock may be set back, or a replica with a slower one be promoted. What Redis keeps "until" a time then stays for
// longer than anybody asked for: a time left that is longer than it ever was can only be wrong.

/**
 * Lua: `cut(key, ttl)` sees to it that a key goes within `ttl` milliseconds. Answers what is left, and by how much it was too
 * long ('0': it was not). Whoever set the key to go in `ttl` did so before now, so nobody loses time that is theirs.
 */
export const CUT = `
local function cut(key, ttl)
  local left = redis.call('PTTL', key)
  if left <= ttl then return left, '0' end
  redis.call('PEXPIRE', key, ttl)
  return ttl, string.format('%.0f', left - ttl)
end
`;

/**
 * Lua: `clock(key)` answers Redis' time in milliseconds, made to never go back, by how much it had been set back since the
 * last look ('0': it was not), and whether there was a last look. The hash at the key has the last answer and how far this
 * clock is ahead of Redis' own. While Redis' is behind, it stands still for a moment, and then goes on from there.
 */
export const CLOCK = `
local function clock(key)
  local time = redis.call('TIME')
  local seen = redis.call('HMGET', key, 'last', 'ahead')
  local ahead, back = tonumber(seen[2] or '0'), 0
  local now = time[1] * 1000 + math.floor(time[2] / 1000) + ahead
  if seen[1] and now < tonumber(seen[1]) then
    back = tonumber(seen[1]) - now
    now = now + back
  end
  redis.call('HSET', key, 'last', string.format('%.0f', now), 'ahead', string.format('%.0f', ahead + back))
  return now, string.format('%.0f', back), seen[1] ~= false
end
`;
