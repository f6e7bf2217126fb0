import type { Mutant } from "./mutant.ts";

const service = "packages/server/src/service";
const postgres = "packages/server/src/store/postgres";
const sqlite = "packages/server/src/store/sqlite";
const setBack = ["packages/server/test/redis-set-back.redis.test.ts"];
const marks = "packages/core/src/sequence/redis-mark-state.ts";

/** Faults around what is counted, locked, elected and queued in Redis. */
export const redisMutants: readonly Mutant[] = [
  {
    name: "a sequence in Redis is compared with what this server saw alone",
    file: `${service}/redis-sequence.ts`,
    find: `const seen = mark > this.#seen ? mark : this.#seen;`,
    replace: `const seen = mark < this.#seen ? this.#seen : this.#seen;`,
    tests: setBack,
  },
  {
    name: "positions in Redis are compared with what this server saw alone",
    file: `${service}/redis-snowflake.ts`,
    find: `const seen = Math.max(this.#seen, Number(mark));`,
    replace: `const seen = Math.max(this.#seen, Number(mark) * 0);`,
    tests: setBack,
  },
  {
    name: "changes of workers in Redis are not compared",
    file: `${service}/redis-workers.ts`,
    find: `{ generation, seen: Number(mark) }`,
    replace: `{ generation, seen: Number(mark) * 0 }`,
    tests: setBack,
  },
  {
    name: "a lower generation is asked for in Redis after a higher one was answered to others",
    file: `${service}/redis-agreement.ts`,
    find: `const newest = isOrdered ? marks.newest(this.#tag) : 0n;`,
    replace: `const newest = isOrdered ? marks.newest("") : 0n;`,
    tests: setBack,
  },
  {
    name: "Redis is asked before the kept mark is read",
    file: `${service}/redis-agreement.ts`,
    find: `    await marks.learn([which]);
    return`,
    replace: `    return`,
    tests: setBack,
  },
  {
    name: "marks of other servers are not learned",
    file: marks,
    find: `highest: maxOf(old?.highest ?? 0n, kept), kept, newest`,
    replace: `highest: old?.highest ?? kept, kept, newest`,
    tests: setBack,
  },
  {
    name: "marks that the store lost are not told again",
    file: marks,
    find: `    put(state, tag, { generation, highest: maxOf(old?.highest ?? 0n, kept), kept, newest });`,
    replace: `    const highest = maxOf(old?.highest ?? 0n, kept);
    put(state, tag, { generation, highest, kept: maxOf(old?.kept ?? 0n, kept), newest });`,
    tests: ["packages/core/test/redis-marks.test.ts"],
  },
  {
    name: "a late answer about a mark takes the place of a newer generation",
    file: marks,
    find: `if (old !== undefined && old.generation !== generation) continue;`,
    replace: ``,
    tests: ["packages/core/test/redis-marks.test.ts"],
  },
  {
    name: "marks of PostgreSQL fall",
    file: `${postgres}/marks.ts`,
    find: `DO UPDATE SET mark = excluded.mark WHERE excluded.mark > m.mark`,
    replace: `DO UPDATE SET mark = excluded.mark`,
    tests: ["packages/server/test/store/postgres.pg.test.ts"],
  },
  {
    name: "marks of SQLite fall",
    file: `${sqlite}/marks.ts`,
    find: `DO UPDATE SET mark = excluded.mark WHERE excluded.mark > m.mark`,
    replace: `DO UPDATE SET mark = excluded.mark`,
    tests: ["packages/server/test/store/sqlite.test.ts"],
  },
  {
    name: "a generation that somebody was answered under is believed lost with the row",
    file: "packages/core/src/sequence/redis-seeding-state.ts",
    find: `if (place.generation < state.generation) return { state, step: { type: "re-seed", doubt } };`,
    replace: ``,
    tests: ["packages/core/test/redis-marks.test.ts"],
  },
];
