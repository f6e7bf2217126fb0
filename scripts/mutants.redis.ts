import type { Mutant } from "./mutant.ts";

// What is kept of the promises by Redis, which only tests with a real one show.

const server = "packages/server/src";
const tests = "packages/server/test";
const coordination = "packages/coordination";

export const redisMutants: readonly Mutant[] = [
  {
    name: "an election takes the words of another Redis for its own",
    file: `${coordination}/src/election/scripts.ts`,
    find: "if seen_here ~= here or (",
    replace: "if not seen_here or (",
    tests: [`${coordination}/test/election/election.redis.test.ts`],
  },
  {
    name: "an election takes a candidate from another Redis for one of its own",
    file: `${coordination}/src/election/scripts.ts`,
    find: " or (ARGV[2] ~= '' and ARGV[2] ~= here) then",
    replace: " then",
    tests: [`${coordination}/test/election/election.redis.test.ts`],
  },
  {
    name: "an election renews for whoever asks",
    file: `${coordination}/src/election/scripts.ts`,
    find: `if redis.call('GET', KEYS[1]) ~= ARGV[3] then return {here, 'lost'} end
redis.call('PEXPIRE'`,
    replace: `if not redis.call('GET', KEYS[1]) then return {here, 'lost'} end
redis.call('PEXPIRE'`,
    tests: [`${coordination}/test/election/election.redis.test.ts`],
    only: "renews nothing",
  },
  {
    name: "a Redis that does not know what was elects at once",
    file: `${coordination}/src/election/scripts.ts`,
    find: "if seen_here ~= here or (ARGV[2] ~= '' and ARGV[2] ~= here) then",
    replace: "if false then",
    tests: [`${coordination}/test/election/election.redis.test.ts`],
  },
  {
    name: "past: a term may be below the one that its candidate knows of",
    file: `${coordination}/src/redis/mint.ts`,
    find: "math.max(last, tonumber(floor), time",
    replace: "math.max(last, time",
    tests: [`${coordination}/test/election/election.redis.test.ts`],
    only: "above the floor",
  },
  {
    name: "a lock is extended for whoever asks",
    file: `${coordination}/src/lock/lock-node.ts`,
    find: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('PEXPIRE'`,
    replace: "redis.call('PEXPIRE'",
    tests: [`${coordination}/test/lock/lock.redis.test.ts`],
  },
  {
    name: "a node confirms a token from outside that it knows",
    file: `${coordination}/src/lock/lock-node.ts`,
    find: " or (ARGV[3] == '1' and ARGV[2] == last) then",
    replace: " then",
    tests: [`${coordination}/test/lock/lock.redis.test.ts`],
  },
  {
    name: "whoever failed to take a lock frees its holder's",
    file: `${coordination}/src/lock/lock-node.ts`,
    find: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('DEL', KEYS[1])`,
    replace: "redis.call('DEL', KEYS[1])",
    tests: [`${coordination}/test/lock/lock.redis.test.ts`],
  },
  {
    name: "nodes that mint promise the order of tokens",
    file: `${coordination}/src/lock/grant.ts`,
    find: "nodes.length === 1 || settings.tokenSource !== undefined",
    replace: "nodes.length > 0",
    tests: [`${coordination}/test/lock/redlock.redis.test.ts`],
    only: "unequal clocks",
  },
  {
    name: "a node confirms a token that a later one overtook",
    file: `${coordination}/src/lock/lock-node.ts`,
    find: `(await run("confirming a lock", CONFIRM, claim, args, limits)) === "confirmed";`,
    replace: `(await run("confirming a lock", CONFIRM, claim, args, limits)) !== "lost";`,
    tests: [`${coordination}/test/lock/redlock.redis.test.ts`],
  },
  {
    name: "a node does not tell the last token to who asks elsewhere for one",
    file: `${coordination}/src/lock/lock-node.ts`,
    find: "else token = redis.call('GET', KEYS[2]) or '0' end",
    replace: "else token = '0' end",
    tests: [`${coordination}/test/lock/redlock.redis.test.ts`],
  },
  {
    name: "sentinel: a replica is taken for the master that it is called",
    file: `${coordination}/src/redis/master-connector.ts`,
    find: `if (role === undefined || role === "master") return true;`,
    replace: `if (role !== "") return true;`,
    tests: [`${coordination}/test/redis/sentinel.redis.test.ts`],
    only: "a dead master and a replica",
  },
  {
    name: "sentinel: what was in flight is sent again to the next master",
    file: `${coordination}/src/redis/node.ts`,
    find: `  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,`,
    replace: `  autoResendUnfulfilledCommands: true,
  maxRetriesPerRequest: null,`,
    tests: [`${coordination}/test/redis/sentinel.redis.test.ts`],
    only: "a command in flight",
  },
  {
    name: "sentinel: a promoted replica is believed",
    file: `${server}/store/redis/scripts.ts`,
    find: "if has[2] ~= run or has[3] ~= history then",
    replace: "if has[2] == '' then",
    tests: [`${tests}/redis-sentinel.redis.test.ts`],
    only: "a replica that was promoted",
  },
  {
    name: "marks of other servers are not learned",
    file: "packages/core/src/server/redis/mark-state.ts",
    find: "highest: maxOf(old?.highest ?? 0n, kept), kept, newest",
    replace: "highest: old?.highest ?? kept, kept, newest",
    tests: [`${tests}/redis-set-back.redis.test.ts`],
    only: "DEBUG RELOAD",
  },
  {
    name: "positions in Redis are compared with what this server saw alone",
    file: `${server}/service/kinds/redis-snowflake.ts`,
    find: "const seen = Math.max(this.#seen, Number(mark));",
    replace: "const seen = Math.max(this.#seen, Number(mark) * 0);",
    tests: [`${tests}/redis-set-back.redis.test.ts`],
    only: "positions of a redis_snowflake",
  },
  {
    name: "a sequence in Redis is compared with what this server saw alone",
    file: `${server}/service/kinds/sequence/redis-counter.ts`,
    find: "const seen = mark > this.#seen ? mark : this.#seen;",
    replace: "const seen = mark < this.#seen ? this.#seen : this.#seen;",
    tests: [`${tests}/redis-set-back.redis.test.ts`],
    only: "DEBUG RELOAD",
  },
  {
    name: "a lower generation is asked for in Redis after a higher one was answered to others",
    file: `${server}/service/redis/agreement.ts`,
    find: "const newest = isOrdered ? marks.newest(this.#tag) : 0n;",
    replace: `const newest = isOrdered ? marks.newest("") : 0n;`,
    tests: [`${tests}/redis-set-back.redis.test.ts`],
    only: "FLUSHALL",
  },
  {
    name: "changes of workers in Redis are not compared",
    file: `${server}/service/redis/worker-registry.ts`,
    find: "{ generation, seen: Number(mark) }",
    replace: "{ generation, seen: Number(mark) * 0 }",
    tests: [`${tests}/redis-set-back.redis.test.ts`],
    only: "a lease that Redis forgot",
  },
  {
    name: "owner: Redis is not told which store counts in it",
    file: `${server}/main/app.ts`,
    find: `(given ? GIVEN_STORE : pins?.of("").id)`,
    replace: `(given ? GIVEN_STORE : pins?.of("").id && GIVEN_STORE)`,
    tests: [`${tests}/redis-two-stores.redis.test.ts`],
    only: "by turns",
  },
  {
    name: "a replica that may be written to counts",
    file: `${server}/store/redis/scripts.ts`,
    find: "if string.find(replication, 'role:slave', 1, true) then return nil, nil, 'READONLY a replica does not count' end",
    replace: "",
    tests: [`${tests}/redis.redis.test.ts`],
    only: "counts nothing and says what it is",
  },
  {
    name: "a sequence in Redis counts below what this server was answered",
    file: `${server}/service/kinds/sequence/redis-counter.ts`,
    find: "issue({ tag: name, generation, count, seen });",
    replace: "issue({ tag: name, generation, count, seen: seen * 0n });",
    tests: [`${tests}/service/redis-counters.redis.test.ts`],
  },
  {
    name: "Redis is asked before the kept mark is read",
    file: `${server}/service/redis/agreement.ts`,
    find: `    await marks.learn([which]);
    return`,
    replace: "    return",
    tests: [`${tests}/service/redis-counters.redis.test.ts`],
  },
  {
    name: "a tag that moved after the raise is started in its old Redis server",
    file: `${server}/service/redis/agreement.ts`,
    find: "if (place.redisServer !== redisServer.name) return placeRead(state, redisServer.name, place);",
    replace: "",
    tests: [`${tests}/service/redis-counters.redis.test.ts`],
  },
  {
    name: "redis: two servers give it a new start from the same maximum",
    file: `${server}/service/kinds/sequence/redis-counter.ts`,
    find: "          newGeneration: true,",
    replace: "          newGeneration: false,",
    tests: [
      `${tests}/service/redis-sequence.model.test.ts`,
      `${tests}/service/redis-counters.redis.test.ts`,
    ],
  },
  {
    name: "redis: a new start below what the store had reserved",
    file: `${server}/service/kinds/sequence/redis-counter.ts`,
    find: "redisServer.sequences.seed({ tag: name, generation, cur: before, max: floor, doubt }),",
    replace:
      "redisServer.sequences.seed({ tag: name, generation, cur: this.#seen, max: floor, doubt }),",
    tests: [
      `${tests}/service/redis-sequence.model.test.ts`,
      `${tests}/service/redis-counters.redis.test.ts`,
    ],
  },
  {
    name: "redis: Redis is raised before the store",
    file: `${server}/service/redis/raise.ts`,
    find: `  const { generation, floor } = await raisedOrEnd(ports, tag, target);
`,
    replace: `  const place = await ports.readPlace(tag);
  const ahead = { tag, generation: place.generation, max: place.floor + target.by };
  await redisServerNamed(ports.redisServer, tag, redisServer).sequences.raise(ahead);
  const { generation, floor } = await raisedOrEnd(ports, tag, target);
`,
    tests: [
      `${tests}/service/redis-sequence.model.test.ts`,
      `${tests}/service/redis-counters.redis.test.ts`,
    ],
  },
  {
    name: "redis: a script is sent again after a reconnect",
    file: `${server}/store/redis/connection.ts`,
    find: `      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,`,
    replace: `      autoResendUnfulfilledCommands: true,
      maxRetriesPerRequest: null,`,
    tests: [`${tests}/store/redis/sequences.redis.test.ts`],
  },
  {
    name: "redis: increment, then check",
    file: `${server}/store/redis/scripts.ts`,
    find: `if count > max - cur then return {'exhausted', has[5], has[6]} end
if count > 0 then redis.call('HINCRBY', KEYS[1], 'cur', ARGV[2]) end`,
    replace: `if count > 0 then redis.call('HINCRBY', KEYS[1], 'cur', ARGV[2]) end
if count > max - cur then return {'exhausted', has[5], has[6]} end`,
    tests: [`${tests}/store/redis/sequences.redis.test.ts`],
  },
  {
    name: "redis: ids are answered as Lua writes its numbers",
    file: `${server}/store/redis/scripts.ts`,
    find: "return {'issued', has[5], text(cur + count), has[6]}",
    replace: "return {'issued', has[5], tostring(cur + count), has[6]}",
    tests: [`${tests}/store/redis/sequences.redis.test.ts`],
  },
  {
    name: "redis: a master that followed another one meanwhile is believed",
    file: `${server}/store/redis/scripts.ts`,
    find: "if has[2] ~= run or has[3] ~= history then",
    replace: "if has[2] ~= run then",
    tests: [`${tests}/store/redis/sequences.redis.test.ts`],
  },
  {
    name: "positions in Redis are compared by their milliseconds alone",
    file: `${server}/store/redis/scripts.ts`,
    find: "if at < tonumber(ARGV[3]) then return {'behind', has[1], '', text(now)} end",
    replace:
      "if tonumber(has[5]) < math.floor(tonumber(ARGV[3]) / 1024) then return {'behind', has[1], '', text(now)} end",
    tests: [`${tests}/store/redis/snowflakes.redis.test.ts`],
  },
  {
    name: "a redis_snowflake goes a millisecond past its reservation",
    file: `${server}/store/redis/scripts.ts`,
    find: "if count > 0 and last > limit then",
    replace: "if count > 0 and last > limit + 1 then",
    tests: [`${tests}/store/redis/snowflakes.redis.test.ts`],
  },
  {
    name: "owner: Redis counts before the store was heard",
    file: `${server}/store/redis/owned-connection.ts`,
    find: "if (own !== undefined) return own;",
    replace: `return own ?? "";`,
    tests: [`${tests}/store/redis/two-stores.redis.test.ts`],
    only: "before the store",
  },
  {
    name: "owner: what another store counts in Redis is counted on",
    file: `${server}/store/redis/scripts.ts`,
    find: "local refusal = foreign(owner)",
    replace: "local refusal = nil",
    tests: [`${tests}/store/redis/two-stores.redis.test.ts`],
    only: "refused, and stays",
  },
  {
    name: "owner: what counts for no store in Redis is counted on",
    file: `${server}/store/redis/scripts.ts`,
    find: "if not owner then return {'restarted', has[1]} end",
    replace: "",
    tests: [`${tests}/store/redis/two-stores.redis.test.ts`],
    only: "without a store",
  },
  {
    name: "owner: a seed takes the place of another store's count",
    file: `${server}/store/redis/scripts.ts`,
    find: "local refusal = foreign(has[5])",
    replace: "local refusal = nil",
    tests: [`${tests}/store/redis/two-stores.redis.test.ts`],
    only: "refused|same emptiness",
  },
  {
    name: "owner: a bound of another store is raised in Redis",
    file: `${server}/store/redis/scripts.ts`,
    find: "local refusal = foreign(has[3])",
    replace: "local refusal = nil",
    tests: [`${tests}/store/redis/two-stores.redis.test.ts`],
    only: "refused, and stays",
  },
  {
    name: "owner: another store's tag that moves is forgotten",
    file: `${server}/store/redis/scripts.ts`,
    find: `if refusal then return refusal end
if redis.call('HEXISTS'`,
    replace: "if redis.call('HEXISTS'",
    tests: [`${tests}/store/redis/two-stores.redis.test.ts`],
    only: "moved away",
  },
  {
    name: "owner: a tag that moved away is anybody's",
    file: `${server}/store/redis/scripts.ts`,
    find: "'HSET', KEYS[1], 'store', store, 'moved_at_ms'",
    replace: "'HSET', KEYS[1], 'moved_at_ms'",
    tests: [`${tests}/store/redis/two-stores.redis.test.ts`],
    only: "moved away",
  },
  {
    name: "a minute is reserved above what Redis forgot",
    file: `${server}/store/redis/worker-scripts.ts`,
    find: "start + math.min(ahead, ${DEFAULT_RESERVE_AHEAD_MS})",
    replace: "start + math.min(ahead, ${60 * DEFAULT_RESERVE_AHEAD_MS})",
    tests: [`${tests}/store/redis/workers.redis.test.ts`],
  },
  {
    name: "leases: a reservation in Redis falls with its clock",
    file: `${server}/store/redis/worker-scripts.ts`,
    find: "math.max(before, math.min(tonumber(ARGV[7]), most))",
    replace: "math.min(tonumber(ARGV[7]), most)",
    tests: [`${tests}/store/redis/workers.redis.test.ts`],
  },
  {
    name: "leases: Redis counts from its clock, though the floor is ahead of it",
    file: `${server}/store/redis/worker-scripts.ts`,
    find: "math.max(now + ahead, start +",
    replace: "math.max(now + ahead, now +",
    tests: [`${tests}/store/redis/workers.redis.test.ts`],
  },
  {
    name: "snowflake: Redis raises a reservation without asking whose it is",
    file: `${server}/store/redis/worker-scripts.ts`,
    find: `or row.token ~= ARGV[5] then return {'lost'} end
local before =`,
    replace: `then return {'lost'} end
local before =`,
    tests: [`${tests}/store/redis/workers.redis.test.ts`],
  },
  {
    name: "snowflake: Redis reserves more than the store gave it",
    file: `${server}/store/redis/worker-scripts.ts`,
    find: `if untilMs > before and untilMs > limit then return {'limit', text(untilMs)} end
`,
    replace: "",
    tests: [`${tests}/store/redis/workers.redis.test.ts`],
  },
  {
    name: "snowflake: worker ids of Redis begin again at 0",
    file: `${server}/store/redis/worker-scripts.ts`,
    find: "if not old and used < tonumber(ARGV[7]) then",
    replace: `if not old then
  used = used % tonumber(ARGV[7])`,
    tests: [`${tests}/store/redis/workers.redis.test.ts`],
  },
];
