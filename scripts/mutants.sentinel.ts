import type { Mutant } from "./mutant.ts";

const redis = "packages/coordination/src/redis";
const vote = ["packages/coordination/test/redis/sentinel-vote.test.ts"];
const bySentinels = ["packages/coordination/test/redis/sentinel.redis.test.ts"];
const servers = ["packages/server/test/redis-sentinel.redis.test.ts"];

/** Faults around a Redis that is found by its Sentinels. */
export const sentinelMutants: readonly Mutant[] = [
  {
    name: "sentinel: half of the Sentinels are a majority",
    file: `${redis}/sentinel-vote.ts`,
    find: `if (count > votes.length / 2) return answer.at;`,
    replace: `if (count >= votes.length / 2) return answer.at;`,
    tests: vote,
  },
  {
    name: "sentinel: those that are silent are not counted",
    file: `${redis}/sentinel-vote.ts`,
    find: `if (count > votes.length / 2) return answer.at;`,
    replace: `if (count > votes.filter((each) => each.answer.says === "master").length / 2) return answer.at;`,
    tests: vote,
  },
  {
    name: "sentinel: a master that still answers is kept, whoever is named",
    file: `${redis}/master-connector.ts`,
    find: `if (named !== undefined && addressText(named) !== addressText(master)) {`,
    replace: `if (named !== undefined && addressText(named) === "") {`,
    tests: bySentinels,
    only: "a master that still answers",
  },
  {
    name: "sentinel: a master is left when its Sentinels are gone",
    file: `${redis}/master-connector.ts`,
    find: `if (named !== undefined && addressText(named) !== addressText(master)) {`,
    replace: `if (named === undefined || addressText(named) !== addressText(master)) {`,
    tests: bySentinels,
    only: "two of three Sentinels gone",
  },
  {
    name: "sentinel: a replica is taken for the master that it is called",
    file: `${redis}/master-connector.ts`,
    find: `if (role === undefined || role === "master") return true;`,
    replace: `if (role !== "") return true;`,
    tests: bySentinels,
    only: "a dead master and a replica",
  },
  {
    name: "sentinel: what was in flight is sent again to the next master",
    file: `${redis}/node.ts`,
    find: `  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,`,
    replace: `  autoResendUnfulfilledCommands: true,
  maxRetriesPerRequest: null,`,
    tests: bySentinels,
    only: "a command in flight",
  },
  {
    name: "sentinel: connections to Sentinels are left behind",
    file: `${redis}/master-connector.ts`,
    find: `    this.#sentinels?.close();
`,
    replace: ``,
    tests: bySentinels,
    only: "nothing is left behind",
  },
  {
    name: "sentinel: nobody listens for a new master",
    file: `${redis}/sentinels.ts`,
    find: `client.subscribe(SWITCHED)`,
    replace: `Promise.resolve()`,
    tests: bySentinels,
    only: "nothing is left behind",
  },
  {
    name: "sentinel: a promoted replica is believed",
    file: "packages/server/src/store/redis/scripts.ts",
    find: `if has[2] ~= run or has[3] ~= history then`,
    replace: `if has[2] == '' then`,
    tests: servers,
    only: "a replica that was promoted",
  },
  {
    name: "sentinel: a server starts with a Redis among its Sentinels",
    file: "packages/server/src/store/redis/connection.ts",
    find: `if (codeOf(error) === NOT_A_SENTINEL)`,
    replace: `if (codeOf(error) === "")`,
    tests: servers,
    only: "refused at the start",
  },
  {
    name: "sentinel: a server counts at a Sentinel",
    file: "packages/server/src/store/redis/fitness.ts",
    find: `fields.get("redis_mode") === "sentinel"`,
    replace: `fields.get("redis_mode") === ""`,
    tests: servers,
    only: "refused at the start",
  },
];
