// What candidates do at Redis, each in one step.
import { CUT } from "../redis/clock.ts";
import { MINT } from "../redis/mint.ts";
import { defineScript, type Script } from "../redis/script.ts";

// KEYS of every script: leader, term, seen, settling. ARGV of every script: ttl, the Redis that this candidate asked last
// ('' for none), owner. Every answer begins with the name of this Redis.
//
// Nobody is elected at a Redis that does not know what happened within the last ttl: one that restarted, lost its data, was
// promoted, or had no word from any candidate for a whole ttl (it may have been paused or cut off while another was the
// master). `seen` says which Redis was asked last, by run id and replication id; it expires after a ttl without a word.
// When it is missing, or another's, `settling` keeps everybody from being elected for one ttl, counted from this first word:
// by then the term of any leader that another Redis, or this one before, may have elected is over. It begins anew with each
// candidate that comes from another Redis: words that waited in the buffers of a paused master count as words, and candidates
// may return to it within a ttl. The leader whom this Redis does know may go on meanwhile, since nobody else can be elected.
//
// A clock that is set back keeps all of this for longer than a ttl. What is left is cut, and `seen` counts as missing, since
// it does not tell any more when the last word was.
const ARRIVE = `${CUT}
local ttl = tonumber(ARGV[1])
local replication = redis.call('INFO', 'replication')
if not string.find(replication, 'role:master', 1, true) then return {'', 'replica'} end
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local here = run .. ' ' .. string.match(replication, 'master_replid:(%w+)')
local seen = redis.call('GET', KEYS[3])
local seen_here, seen_ttl
if seen then seen_here, seen_ttl = string.match(seen, '^(%w+ %w+) (%d+)$') end
if seen_ttl and seen_ttl ~= ARGV[1] then
  cut(KEYS[3], tonumber(seen_ttl))
  return {'', 'mismatch', seen_ttl}
end
if redis.call('PTTL', KEYS[3]) > ttl then seen_here = nil end
redis.call('SET', KEYS[3], here .. ' ' .. ARGV[1], 'PX', ARGV[1])
if seen_here ~= here or (ARGV[2] ~= '' and ARGV[2] ~= here) then
  redis.call('SET', KEYS[4], here, 'PX', ARGV[1])
end
`;

/** ARGV: …, floor of the term, whether to mint one. Answers 'elected' and the term, or why not and for how long. */
export const CAMPAIGN: Script = defineScript(`${MINT}${ARRIVE}
local leader = redis.call('GET', KEYS[1])
if leader then
  local left, back = cut(KEYS[1], ttl)
  return {here, 'led', tostring(left), back, leader}
end
local left, back = cut(KEYS[4], ttl)
if left >= 0 then return {here, 'settling', tostring(left), back} end
local term = '0'
if ARGV[5] == '1' then term = mint(KEYS[2], ARGV[4]) end
if not term then return {here, 'exhausted'} end
redis.call('SET', KEYS[1], ARGV[3], 'NX', 'PX', ARGV[1])
return {here, 'elected', term}`);

/** ARGV: …, term. Writes a term from outside beside the leader's name. */
export const ENTER: Script = defineScript(`${ARRIVE}
if redis.call('GET', KEYS[1]) ~= ARGV[3] then return {here, 'lost'} end
local last = redis.call('GET', KEYS[2]) or '0'
if #ARGV[4] < #last or (#ARGV[4] == #last and ARGV[4] <= last) then return {here, 'back', last} end
redis.call('SET', KEYS[2], ARGV[4])
return {here, 'entered'}`);

export const RENEW: Script = defineScript(`${ARRIVE}
if redis.call('GET', KEYS[1]) ~= ARGV[3] then return {here, 'lost'} end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {here, 'renewed'}`);

/** KEYS: leader. ARGV: owner. */
export const RESIGN: Script = defineScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('DEL', KEYS[1])
return 'resigned'`);
