import { DEFAULT_RESERVE_AHEAD_MS } from "@idmint/core";
import { checked, type Script, script } from "./scripts.ts";

/*
 * The workers of a tag are fields of its hash, beside {store, generation, run_id, replid, start_ms, limit_ms, changes}:
 *   w:<data center>:<worker id>  instance, token, reserved_until_ms and expires_at_ms, with spaces between them
 *   i:<data center>:<instance>   the worker id it had last; only a hint, the worker's own field decides
 *   u:<data center>              how many worker ids have a field; they are 0 … u − 1
 *   f:<data center>              before this time none of them is free, unless one is released
 *
 * INVARIANTS, beside those of scripts.ts
 * - start_ms < every reservation ≤ limit_ms, which the RDBMS had before Redis got it. So times that two generations reserve
 *   never meet, and rows may vanish with a generation.
 * - A lease reserves above what was reserved for its worker id, and its token is new; only who presents a worker's token
 *   reserves more. Tokens are random, since a Redis that lost its state would count to the same ones again.
 *
 * ARGV of each: generation, changes seen, data center, then as it says. Data center, worker id and instance hold no space.
 */
const ROWS = `${checked(["start_ms", "limit_ms", "changes"])}
if doubt then return doubt end
local start, limit, changes = tonumber(has[5]), tonumber(has[6]), tonumber(has[7] or '0')
if changes < tonumber(ARGV[2]) then return {'behind', has[1]} end
local dc = ARGV[3]
local function furthest(ahead, lead)
  return math.max(now + ahead, start + math.min(ahead, ${DEFAULT_RESERVE_AHEAD_MS})) + lead
end
local function field(id) return 'w:' .. dc .. ':' .. id end
local function unpacked(packed)
  if not packed then return nil end
  local instance, token, reserved, expires = string.match(packed, '^(%S+) (%S+) (%S+) (%S+)$')
  return {instance = instance, token = token, reserved = tonumber(reserved), expires = tonumber(expires)}
end
local function packed(row)
  return row.instance .. ' ' .. row.token .. ' ' .. text(row.reserved) .. ' ' .. text(row.expires)
end
local function done(id, row, before)
  return {'done', id, row.token, text(before + 1), text(row.reserved), text(now), text(limit), text(changes + 1)}
end
`;

/** ARGV: instance, reserve ahead, new token, worker ids of the layout, ttl, lead allowed. */
export const WORKER_LEASE: Script = script(
  "worker_lease",
  `${ROWS}
local instance, ahead = ARGV[4], tonumber(ARGV[5])
local used = tonumber(redis.call('HGET', KEYS[1], 'u:' .. dc) or '0')
local id = redis.call('HGET', KEYS[1], 'i:' .. dc .. ':' .. instance)
local old = id and unpacked(redis.call('HGET', KEYS[1], field(id)))
if old and old.instance ~= instance then old = nil end
if not old and used < tonumber(ARGV[7]) then
  id, old = text(used), {reserved = start}
  used = used + 1
elseif not old then
  local first = redis.call('HGET', KEYS[1], 'f:' .. dc)
  if first and now < tonumber(first) then return {'exhausted'} end
  local soonest
  for from = 0, used - 1, 500 do
    local fields = {}
    for each = from, math.min(from + 499, used - 1) do fields[#fields + 1] = field(text(each)) end
    for at, value in ipairs(redis.call('HMGET', KEYS[1], unpack(fields))) do
      local row = unpacked(value)
      local free = math.max(row.expires, row.reserved)
      if not soonest or free < soonest then soonest = free end
      if free <= now and (not old or row.expires < old.expires) then
        id, old = text(from + at - 1), row
      end
    end
  end
  if not old then
    redis.call('HSET', KEYS[1], 'f:' .. dc, text(soonest))
    return {'exhausted'}
  end
end
local untilMs = math.min(math.max(now, old.reserved) + ahead, furthest(ahead, tonumber(ARGV[9])))
if untilMs > old.reserved and untilMs > limit then return {'limit', text(untilMs)} end
local row = {
  instance = instance, token = ARGV[6],
  reserved = math.max(old.reserved, untilMs), expires = now + tonumber(ARGV[8])
}
redis.call('HSET', KEYS[1], field(id), packed(row), 'i:' .. dc .. ':' .. instance, id,
  'u:' .. dc, text(used), 'changes', text(changes + 1))
if old.instance and old.instance ~= instance then
  redis.call('HDEL', KEYS[1], 'i:' .. dc .. ':' .. old.instance)
end
return done(id, row, old.reserved)
`,
);

/** ARGV: worker id, token, new token, reserve until, reserve ahead, ttl, lead allowed. */
export const WORKER_RENEW: Script = script(
  "worker_renew",
  `${ROWS}
local id, row = ARGV[4], unpacked(redis.call('HGET', KEYS[1], field(ARGV[4])))
if not row or row.token ~= ARGV[5] then return {'lost'} end
local before = row.reserved
local most = furthest(tonumber(ARGV[8]), tonumber(ARGV[10]))
local untilMs = math.max(before, math.min(tonumber(ARGV[7]), most))
if untilMs > before and untilMs > limit then return {'limit', text(untilMs)} end
row.reserved = untilMs
row.token, row.expires = ARGV[6], now + tonumber(ARGV[9])
redis.call('HSET', KEYS[1], field(id), packed(row), 'changes', text(changes + 1))
return done(id, row, before)
`,
);

/** ARGV: worker id, token, new token. */
export const WORKER_RELEASE: Script = script(
  "worker_release",
  `${ROWS}
local id, row = ARGV[4], unpacked(redis.call('HGET', KEYS[1], field(ARGV[4])))
if not row or row.token ~= ARGV[5] then return {'lost'} end
row.token, row.expires = ARGV[6], math.min(row.expires, now)
redis.call('HSET', KEYS[1], field(id), packed(row), 'f:' .. dc, '0', 'changes', text(changes + 1))
return done(id, row, row.reserved)
`,
);
