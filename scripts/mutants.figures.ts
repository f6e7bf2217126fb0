import type { Mutant } from "./mutant.ts";

const service = "packages/server/src/service/figures";
const state = `${service}/figures-state.ts`;
const fleet = `${service}/fleet.ts`;
const ring = ["packages/server/test/figures/figures-state.model.test.ts"];
const gathering = ["packages/server/test/figures/fleet.model.test.ts"];
const peers = "packages/server/src/grpc/peers/figures.ts";
const asking = ["packages/server/test/figures/peer-figures.test.ts"];
const active = ["packages/server/test/alarms/active-state.model.test.ts"];

/** Faults in what servers count, and in what they tell of each other. */
export const figuresMutants: readonly Mutant[] = [
  {
    name: "figures: a second that was not counted is told with old counts",
    file: state,
    find: `    if (seconds[at] !== second) continue;\n    const label`,
    replace: `    const label`,
    tests: ring,
  },
  {
    name: "figures: a clock that is read a little late tears runs",
    file: state,
    find: `  return isTrue ? next : Math.floor(shown);`,
    replace: `  return isTrue && shown >= next ? next : Math.floor(shown);`,
    tests: ring,
  },
  {
    name: "figures: refusals are compared with the counts that go on",
    file: state,
    find: `  return { ...sample, refusals: new Map(sample.refusals) };`,
    replace: `  return sample;`,
    tests: ring,
  },
  {
    name: "figures: what a tag issued before it was left is lost",
    file: state,
    find: `  tag.issued[at] = ended + begun;`,
    replace: `  tag.issued[at] = counted === tag.counted ? ended : begun;`,
    tests: ring,
  },
  {
    name: "figures: the tag that was asked for first leaves, however often it is asked for",
    file: state,
    find: `  state.tags.delete(name);\n  state.tags.set(name, known`,
    replace: `  state.tags.set(name, known`,
    tests: ring,
  },
  {
    name: "figures: a server that is gone is waited for",
    file: fleet,
    find: `  const alive = rows.filter(({ isAlive, row }) => isAlive && row.address !== own);`,
    replace: `  const alive = rows.filter(({ row }) => row.address !== own);`,
    tests: gathering,
  },
  {
    name: "figures: other servers are not shown the caller's token",
    file: fleet,
    find: `      authorization: call.authorization(),`,
    replace: `      authorization: undefined,`,
    tests: gathering,
  },
  {
    name: "figures: a server is both told and silent",
    file: fleet,
    find: `    .filter(({ row }) => !byId.has(row.id))`,
    replace: `    .filter(({ isOwn }) => !isOwn)`,
    tests: gathering,
  },
  {
    name: "figures: a call that ended keeps its place among those that ask others",
    file: fleet,
    find: `      this.#gathering--;`,
    replace: ``,
    tests: gathering,
  },
  {
    name: "figures: a process that hangs is asked all the same",
    file: "packages/server/src/processes/processes.ts",
    find: `others.filter((each) => each?.isSilent === false)`,
    replace: `others.filter((each) => each !== undefined)`,
    tests: ["packages/server/test/processes/processes.test.ts"],
  },
  {
    name: "figures: figures of a tag need a right for all tags",
    file: "packages/server/src/api/nodes/figures.ts",
    find: `      about: ({ tag }) => tag,\n`,
    replace: ``,
    tests: ["packages/server/test/api/needs.test.ts"],
  },
  {
    name: "figures: a connection that brought no answer is used again",
    file: peers,
    find: `  return code !== status.UNAVAILABLE && code !== status.DEADLINE_EXCEEDED;`,
    replace: `  return code !== status.UNAVAILABLE;`,
    tests: asking,
  },
  {
    name: "figures: other servers are asked for a caller who went away",
    file: peers,
    find: `    else signal.addEventListener("abort", cancel, { once: true });`,
    replace: ``,
    tests: asking,
  },
  {
    name: "figures: a token crosses a network in plain text",
    file: peers,
    find: `    if (asking.authorization !== undefined && !isSafe(address)) {`,
    replace: `    if (asking.authorization === undefined && !isSafe(address)) {`,
    tests: asking,
  },
  {
    name: "figures: what callers return counts as never issued",
    file: `${service}/figures.ts`,
    find: `      issued: counters.issuedIds + counters.returnedIds,`,
    replace: `      issued: counters.issuedIds,`,
    tests: ["packages/server/test/figures/figures.test.ts"],
  },
  {
    name: "figures: a server asks another one for all servers",
    file: peers,
    find: `thisServer: true`,
    replace: `thisServer: false`,
    tests: asking,
  },
  {
    name: "figures: an alarm outlives what ends it",
    file: "packages/server/src/alarms/active-state.ts",
    find: `  if (change.type === "alarm" && change.ends !== undefined) state.delete(change.ends);\n`,
    replace: ``,
    tests: active,
  },
  {
    name: "figures: an alarm that lasts is forgotten after a while",
    file: "packages/server/src/alarms/active-state.ts",
    find: `    if (!isLasting && now - at >= RECENT_MS) state.delete(key);`,
    replace: `    if (now - at >= RECENT_MS) state.delete(key);`,
    tests: active,
  },
];
