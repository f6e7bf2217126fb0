// The lists: messages are pushed at the left end. fifo takes from the right one, filo from the left. What a consumer holds
// is in its pending list, the newest at the left. Time is Redis' own in all scripts, and never goes back.
import { CLOCK } from "../redis/clock.ts";
import { defineScript, type Script } from "../redis/script.ts";
import type { QueueOrder } from "./api.ts";

/** Where a queue's data are. All in one hash slot. */
export interface QueueKeys {
  /** List of the messages that wait. */
  readonly ready: string;
  /** What the keys of pending lists begin with; the consumer's id follows. */
  readonly pendingPrefix: string;
  /** Sorted set of consumers, by the time until which they count as alive, in milliseconds. */
  readonly consumers: string;
  /** List of what stood in the queue and no queue had written. */
  readonly foreign: string;
  /** Sorted set of consumers that were silent or left, by the time of the second look at what they hold. */
  readonly lingering: string;
  /** The clock of the two sorted sets. */
  readonly clock: string;
}

export function queueKeys(prefix: string, name: string): QueueKeys {
  const base = `${prefix}:queue:{${name}}`;
  return {
    ready: `${base}:ready`,
    pendingPrefix: `${base}:pending:`,
    consumers: `${base}:consumers`,
    foreign: `${base}:foreign`,
    lingering: `${base}:lingering`,
    clock: `${base}:clock`,
  };
}

/** Which end messages are taken from and put back to. */
export function takingEnd(order: QueueOrder): "LEFT" | "RIGHT" {
  return order === "fifo" ? "RIGHT" : "LEFT";
}

/** Lua: puts an element back where it is taken next, counted as delivered once more. */
const PUT_BACK = `
local function putBack(ready, takingEnd, element)
  local at = string.find(element, ':', 1, true)
  local returned = at and tonumber(string.sub(element, 1, at - 1))
  if returned then
    element = string.format('%.0f', returned + 1) .. string.sub(element, at)
  end
  redis.call(takingEnd == 'RIGHT' and 'RPUSH' or 'LPUSH', ready, element)
end
`;

/** KEYS: ready. ARGV: most messages, elements. Answers the length that was there when it is too long, else nothing. */
export const PUSH: Script = defineScript(`
local length = redis.call('LLEN', KEYS[1])
if length + #ARGV - 1 > tonumber(ARGV[1]) then return tostring(length) end
redis.call('LPUSH', KEYS[1], unpack(ARGV, 2))
return nil
`);

/**
 * KEYS: ready, pending. ARGV: element, end. Only who still holds the element puts it back, so that one that was recovered
 * meanwhile does not come twice.
 */
export const RELEASE: Script = defineScript(`
${PUT_BACK}
if redis.call('LREM', KEYS[2], 1, ARGV[1]) == 0 then return '0' end
putBack(KEYS[1], ARGV[2], ARGV[1])
return '1'
`);

/** KEYS: foreign, pending. ARGV: element. Sets an element aside that is no message. */
export const SET_ASIDE: Script = defineScript(`
if redis.call('LREM', KEYS[2], 1, ARGV[1]) == 1 then redis.call('LPUSH', KEYS[1], ARGV[1]) end
`);

/**
 * KEYS: consumers, lingering, clock, pending. ARGV: consumer, ttl. Answers whether the consumer was alive, how many messages
 * its pending list has, and by how much Redis' clock was set back.
 */
export const HEARTBEAT: Script = defineScript(`
${CLOCK}
local now, back = clock(KEYS[3])
local until_ = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
local wasAlive = until_ and tonumber(until_) > now
return {wasAlive and '1' or '0', tostring(redis.call('LLEN', KEYS[4])), back}
`);

/**
 * KEYS: ready, consumers, lingering, clock. ARGV: prefix of pending lists, end, how long to linger, most messages. Answers how
 * many messages were put back, whether there may be more, and by how much Redis' clock was set back.
 *
 * A MESSAGE IS IN EXACTLY ONE LIST. It moves between the lists within one script or one BLMOVE; a second recoverer finds an
 * empty pending list, and a consumer that acknowledges late finds nothing to remove.
 *
 * NO PENDING LIST IS FORGOTTEN. A consumer is registered before it takes anything. Redis may still move a message to the
 * list of one whose heartbeat is over, by a BLMOVE that it began to wait for before; that wait is far shorter than the
 * time to linger, so the second look finds it.
 *
 * The newest element is popped and pushed first, so the one that was taken first is taken first again.
 */
export const RECOVER: Script = defineScript(`
${CLOCK}
local now, back = clock(KEYS[4])
${PUT_BACK}
local moved, most = 0, tonumber(ARGV[4])
local function drain(consumer)
  local pending = ARGV[1] .. consumer
  while moved < most do
    local element = redis.call('LPOP', pending)
    if not element then return true end
    putBack(KEYS[1], ARGV[2], element)
    moved = moved + 1
  end
  return redis.call('EXISTS', pending) == 0
end
for _, consumer in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 100)) do
  if not drain(consumer) then return {tostring(moved), '1', back} end
  redis.call('ZREM', KEYS[3], consumer)
end
local silent = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)
for _, consumer in ipairs(silent) do
  if not drain(consumer) then return {tostring(moved), '1', back} end
  redis.call('ZREM', KEYS[2], consumer)
  redis.call('ZADD', KEYS[3], now + tonumber(ARGV[3]), consumer)
end
return {tostring(moved), #silent == 100 and '1' or '0', back}
`);
