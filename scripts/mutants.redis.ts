import { type Mutant, mutantsOf } from "./mutant.ts";

// What is kept of the promises by Redis, which only tests with a real one show.
export const redisMutants: readonly Mutant[] =
  mutantsOf(`## coordination/test/election/election.redis.test.ts
# coordination/src/election/scripts.ts
an election takes the words of another Redis for its own
- if seen_here ~= here or (
+ if not seen_here or (
an election renews for whoever asks | renews nothing
- if redis.call('GET', KEYS[1]) ~= ARGV[3] then return {here, 'lost'} end
- redis.call('PEXPIRE'
+ if not redis.call('GET', KEYS[1]) then return {here, 'lost'} end
+ redis.call('PEXPIRE'
# coordination/src/redis/mint.ts
past: a term may be below the one that its candidate knows of | above the floor
- math.max(last, tonumber(floor), time
+ math.max(last, time
## coordination/test/lock/lock.redis.test.ts
# coordination/src/lock/lock-node.ts
a lock is extended for whoever asks
- if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
- redis.call('PEXPIRE'
+ redis.call('PEXPIRE'
a node confirms a token from outside that it knows
-  or (ARGV[3] == '1' and ARGV[2] == last) then
+  then
## coordination/test/lock/redlock.redis.test.ts
# coordination/src/lock/grant.ts
nodes that mint promise the order of tokens | unequal clocks
- nodes.length === 1 || settings.tokenSource !== undefined
+ nodes.length > 0
# coordination/src/lock/lock-node.ts
a node confirms a token that a later one overtook
- (await run("confirming a lock", CONFIRM, claim, args, limits)) === "confirmed";
+ (await run("confirming a lock", CONFIRM, claim, args, limits)) !== "lost";
## coordination/test/redis/sentinel.redis.test.ts
# coordination/src/redis/master-connector.ts
sentinel: a replica is taken for the master that it is called | a dead master and a replica
- if (role === undefined || role === "master") return true;
+ if (role !== "") return true;
## server/test/service/redis/set-back.redis.test.ts
# server/src/service/kinds/redis-snowflake.ts
positions in Redis are compared with what this server saw alone | positions of a redis_snowflake
- const seen = Math.max(this.#seen, Number(mark));
+ const seen = Math.max(this.#seen, Number(mark) * 0);
# server/src/service/redis/agreement.ts
a lower generation is asked for in Redis after a higher one was answered to others | FLUSHALL
- const newest = isOrdered ? marks.newest(this.#tag) : 0n;
+ const newest = isOrdered ? marks.newest("") : 0n;
# server/src/service/redis/worker-registry.ts
changes of workers in Redis are not compared | a lease that Redis forgot
- { generation, seen: Number(mark) }
+ { generation, seen: Number(mark) * 0 }
## server/test/service/redis/two-stores.redis.test.ts
# server/src/main/app.ts
owner: Redis is not told which store counts in it | by turns
- (given ? GIVEN_STORE : pins?.of("").id)
+ (given ? GIVEN_STORE : pins?.of("").id && GIVEN_STORE)
## server/test/service/redis/servers.redis.test.ts
# server/src/store/redis/scripts.ts
a replica that may be written to counts | counts nothing and says what it is
- if string.find(replication, 'role:slave', 1, true) then return nil, nil, 'READONLY a replica does not count' end
## server/test/service/redis/counters.redis.test.ts
# server/src/service/redis/agreement.ts
a tag that moved after the raise is started in its old Redis server
- if (place.redisServer !== redisServer.name) return placeRead(state, redisServer.name, place);
## server/test/service/redis/unseeded.redis.test.ts
# server/src/service/redis/watch.ts
who watches raises again and again what Redis does not take | who watches raises once
- if (leftBehind === forecast.last.generation) continue;
## server/test/store/redis/sequences.redis.test.ts
# server/src/store/redis/connection.ts
redis: a script is sent again after a reconnect
-       autoResendUnfulfilledCommands: false,
-       maxRetriesPerRequest: 0,
+       autoResendUnfulfilledCommands: true,
+       maxRetriesPerRequest: null,
# server/src/store/redis/scripts.ts
redis: increment, then check
- if count > max - cur then return {'exhausted', has[5], has[6]} end
- if count > 0 then redis.call('HINCRBY', KEYS[1], 'cur', ARGV[2]) end
+ if count > 0 then redis.call('HINCRBY', KEYS[1], 'cur', ARGV[2]) end
+ if count > max - cur then return {'exhausted', has[5], has[6]} end
redis: ids are answered as Lua writes its numbers
- return {'issued', has[5], text(cur + count), has[6]}
+ return {'issued', has[5], tostring(cur + count), has[6]}
redis: a master that followed another one meanwhile is believed
- if has[2] ~= run or has[3] ~= history then
+ if has[2] ~= run then
## server/test/store/redis/snowflakes.redis.test.ts
# server/src/store/redis/scripts.ts
positions in Redis are compared by their milliseconds alone
- if at < tonumber(ARGV[3]) then return {'behind', has[1], '', text(now)} end
+ if tonumber(has[5]) < math.floor(tonumber(ARGV[3]) / 1024) then return {'behind', has[1], '', text(now)} end
a redis_snowflake goes a millisecond past its reservation
- if count > 0 and last > limit then
+ if count > 0 and last > limit + 1 then
## server/test/store/redis/two-stores.redis.test.ts
# server/src/store/redis/owned-connection.ts
owner: Redis counts before the store was heard | before the store
- if (own !== undefined) return own;
+ return own ?? "";
# server/src/store/redis/scripts.ts
owner: what another store counts in Redis is counted on | refused, and stays
- local refusal = foreign(owner)
+ local refusal = nil
owner: what counts for no store in Redis is counted on | without a store
- if not owner then return {'restarted', has[1]} end
owner: a tag that moved away is anybody's | moved away
- 'HSET', KEYS[1], 'store', store, 'moved_at_ms'
+ 'HSET', KEYS[1], 'moved_at_ms'
## server/test/store/redis/workers.redis.test.ts
# server/src/store/redis/worker-scripts.ts
a minute is reserved above what Redis forgot
- start + math.min(ahead, \${DEFAULT_RESERVE_AHEAD_MS})
+ start + math.min(ahead, \${60 * DEFAULT_RESERVE_AHEAD_MS})
leases: a reservation in Redis falls with its clock
- math.max(before, math.min(tonumber(ARGV[7]), most))
+ math.min(tonumber(ARGV[7]), most)
snowflake: Redis raises a reservation without asking whose it is
- or row.token ~= ARGV[5] then return {'lost'} end
- local before =
+ then return {'lost'} end
+ local before =
snowflake: Redis reserves more than the store gave it
- if untilMs > before and untilMs > limit then return {'limit', text(untilMs)} end
snowflake: worker ids of Redis begin again at 0
- if not old and used < tonumber(ARGV[7]) then
+ if not old then
+   used = used % tonumber(ARGV[7])
`);
