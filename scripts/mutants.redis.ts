import type { Mutant } from "./mutant.ts";

const service = "packages/server/src/service";
const postgres = "packages/server/src/store/postgres";
const sqlite = "packages/server/src/store/sqlite";
const setBack = ["packages/server/test/redis-set-back.redis.test.ts"];
const counters = "packages/server/test/service/redis-counters.redis.test.ts";
const onServers = ["packages/server/test/redis.redis.test.ts"];
const coordination = "packages/coordination";
const marks = "packages/core/src/server/redis/mark-state.ts";

/** Faults around what is counted, locked, elected and queued in Redis. */
export const redisMutants: readonly Mutant[] = [
  {
    name: "a sequence in Redis is compared with what this server saw alone",
    file: `${service}/kinds/sequence/redis-counter.ts`,
    find: `const seen = mark > this.#seen ? mark : this.#seen;`,
    replace: `const seen = mark < this.#seen ? this.#seen : this.#seen;`,
    tests: setBack,
    only: "DEBUG RELOAD",
  },
  {
    name: "a server hears the signals of changed tags that it gave itself",
    file: "packages/server/src/store/redis/tag-signals.ts",
    find: `signals.some(({ data }) => data !== this.#self)`,
    replace: `signals.some(({ data }) => data !== "")`,
    tests: ["packages/server/test/tag-signals.redis.test.ts"],
  },
  {
    name: "positions in Redis are compared with what this server saw alone",
    file: `${service}/kinds/redis-snowflake/counter.ts`,
    find: `const seen = Math.max(this.#seen, Number(mark));`,
    replace: `const seen = Math.max(this.#seen, Number(mark) * 0);`,
    tests: setBack,
    only: "positions of a redis_snowflake",
  },
  {
    name: "changes of workers in Redis are not compared",
    file: `${service}/redis/worker-registry.ts`,
    find: `{ generation, seen: Number(mark) }`,
    replace: `{ generation, seen: Number(mark) * 0 }`,
    tests: setBack,
    only: "a lease that Redis forgot",
  },
  {
    name: "a lower generation is asked for in Redis after a higher one was answered to others",
    file: `${service}/redis/agreement.ts`,
    find: `const newest = isOrdered ? marks.newest(this.#tag) : 0n;`,
    replace: `const newest = isOrdered ? marks.newest("") : 0n;`,
    tests: setBack,
    only: "FLUSHALL",
  },
  {
    name: "Redis is asked before the kept mark is read",
    file: `${service}/redis/agreement.ts`,
    find: `    await marks.learn([which]);
    return`,
    replace: `    return`,
    tests: [counters],
  },
  {
    name: "marks of other servers are not learned",
    file: marks,
    find: `highest: maxOf(old?.highest ?? 0n, kept), kept, newest`,
    replace: `highest: old?.highest ?? kept, kept, newest`,
    tests: setBack,
    only: "DEBUG RELOAD",
  },
  {
    name: "marks that the store lost are not told again",
    file: marks,
    find: `    put(state, tag, { generation, highest: maxOf(old?.highest ?? 0n, kept), kept, newest });`,
    replace: `    const highest = maxOf(old?.highest ?? 0n, kept);
    put(state, tag, { generation, highest, kept: maxOf(old?.kept ?? 0n, kept), newest });`,
    tests: ["packages/core/test/server/redis/marks.test.ts"],
  },
  {
    name: "a late answer about a mark takes the place of a newer generation",
    file: marks,
    find: `if (old !== undefined && old.generation !== generation) continue;`,
    replace: ``,
    tests: ["packages/core/test/server/redis/marks.test.ts"],
  },
  {
    name: "marks of PostgreSQL fall",
    file: `${postgres}/marks.ts`,
    find: `DO UPDATE SET mark = excluded.mark WHERE excluded.mark > m.mark`,
    replace: `DO UPDATE SET mark = excluded.mark`,
    tests: ["packages/server/test/store/postgres.pg.test.ts"],
    only: "a mark rises, never falls",
  },
  {
    name: "marks of SQLite fall",
    file: `${sqlite}/marks.ts`,
    find: `DO UPDATE SET mark = excluded.mark WHERE excluded.mark > m.mark`,
    replace: `DO UPDATE SET mark = excluded.mark`,
    tests: ["packages/server/test/store/sqlite.test.ts"],
    only: "a mark rises, never falls",
  },
  {
    name: "a generation that somebody was answered under is believed lost with the row",
    file: "packages/core/src/server/redis/seeding-state.ts",
    find: `if (place.generation < state.generation) return { state, step: { type: "re-seed", doubt } };`,
    replace: ``,
    tests: ["packages/core/test/server/redis/marks.test.ts"],
  },
  {
    name: "a sequence in Redis counts below what this server was answered",
    file: `${service}/kinds/sequence/redis-counter.ts`,
    find: `issue({ tag: name, generation, count, seen });`,
    replace: `issue({ tag: name, generation, count, seen: seen * 0n });`,
    tests: [counters],
  },
  {
    name: "a tag that moved after the raise is started in its old Redis server",
    file: `${service}/redis/agreement.ts`,
    find: `if (place.redisServer !== redisServer.name) return placeRead(state, redisServer.name, place);`,
    replace: ``,
    tests: [counters],
  },
  {
    name: "positions in Redis are compared by their milliseconds alone",
    file: "packages/server/src/store/redis/scripts.ts",
    find: `if at < tonumber(ARGV[3]) then return {'behind', has[1], '', text(now)} end`,
    replace: `if tonumber(has[5]) < math.floor(tonumber(ARGV[3]) / 1024) then return {'behind', has[1], '', text(now)} end`,
    tests: ["packages/server/test/store/redis/snowflakes.redis.test.ts"],
  },
  {
    name: "a lock is extended for whoever asks",
    file: `${coordination}/src/lock/lock-node.ts`,
    find: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('PEXPIRE'`,
    replace: `redis.call('PEXPIRE'`,
    tests: [`${coordination}/test/lock/lock.redis.test.ts`],
  },
  {
    name: "a lock whose time was over before it was taken is held",
    file: `${coordination}/src/lock/acquire.ts`,
    find: `if (elapsedMs(askedAt, runtime.now()) < attempt.ttlMs - driftMs(attempt.ttlMs)) {`,
    replace: `if (elapsedMs(askedAt, runtime.now()) < Infinity - driftMs(attempt.ttlMs)) {`,
    tests: [`${coordination}/test/lock/acquire.test.ts`],
  },
  {
    name: "an election takes the words of another Redis for its own",
    file: `${coordination}/src/election/scripts.ts`,
    find: `if seen_here ~= here or (`,
    replace: `if not seen_here or (`,
    tests: [`${coordination}/test/election/election.redis.test.ts`],
  },
  {
    name: "an election takes a candidate from another Redis for one of its own",
    file: `${coordination}/src/election/scripts.ts`,
    find: ` or (ARGV[2] ~= '' and ARGV[2] ~= here) then`,
    replace: ` then`,
    tests: [`${coordination}/test/election/election.redis.test.ts`],
  },
  {
    name: "a consumer that lives again is looked at as one that left",
    file: `${coordination}/src/queue/scripts.ts`,
    find: `redis.call('ZREM', KEYS[2], ARGV[1])
local wasAlive`,
    replace: `local wasAlive`,
    tests: [`${coordination}/test/queue/queue.redis.test.ts`],
  },
  {
    name: "a tag of an unconfigured Redis server ends the preloading",
    file: `${service}/redis/preload.ts`,
    find: `failures.add(redisServer, IdmintError.from(thrown));`,
    replace: `throw thrown;`,
    tests: onServers,
    only: "tags of Redis servers that a server lacks",
  },
  {
    name: "a Redis Cluster is counted in",
    file: "packages/server/src/store/redis/backend.ts",
    find: `if (misfit === undefined) continue;`,
    replace: `if (misfit !== "") continue;`,
    tests: onServers,
  },
  {
    name: "a replica that may be written to counts",
    file: "packages/server/src/store/redis/scripts.ts",
    find: `if string.find(replication, 'role:slave', 1, true) then return nil, nil, 'READONLY a replica does not count' end`,
    replace: ``,
    tests: onServers,
    only: "counts nothing and says what it is",
  },
  {
    name: "a Redis without a bound of memory is told of",
    file: "packages/server/src/store/redis/fitness.ts",
    find: `isBounded && policy !== "noeviction"`,
    replace: `policy !== "noeviction"`,
    tests: onServers,
    only: "a Redis that may remove keys",
  },
  {
    name: "a Redis server that is not configured is worth another try",
    file: `${service}/call.ts`,
    find: `new IdmintError("NOT_CONFIGURED", `,
    replace: `new IdmintError("STORE_UNAVAILABLE", `,
    tests: onServers,
    only: "is not configured with",
  },
  {
    name: "locks are kept by a Redis that removes keys",
    file: `${coordination}/src/redis/node.ts`,
    find: `if (!this.#mayEvict) await this.#assertKeeps(`,
    replace: `if (!this.#mayEvict && this.#isClosed) await this.#assertKeeps(`,
    tests: [`${coordination}/test/redis/node.redis.test.ts`],
  },
  {
    name: "a minute is reserved above what Redis forgot",
    file: "packages/server/src/store/redis/worker-scripts.ts",
    find: `start + math.min(ahead, \${DEFAULT_RESERVE_AHEAD_MS})`,
    replace: `start + math.min(ahead, \${60 * DEFAULT_RESERVE_AHEAD_MS})`,
    tests: ["packages/server/test/store/redis/workers.redis.test.ts"],
  },
  {
    name: "a minute is reserved above a floor that is ahead of the clock",
    file: "packages/core/src/server/worker/registry-state.ts",
    find: `Math.min(reserveAheadMs, DEFAULT_RESERVE_AHEAD_MS)`,
    replace: `reserveAheadMs`,
    tests: ["packages/testkit/test/memory-store.test.ts"],
  },
];
