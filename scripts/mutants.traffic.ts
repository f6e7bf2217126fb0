import type { Mutant } from "./mutant.ts";

const core = "packages/core/src/server/node";
const service = "packages/server/src/service";
const trafficTests = ["packages/core/test/server/node/traffic-state.test.ts"];
const watchTests = ["packages/core/test/server/node/watch-state.test.ts"];
const drainModel = ["packages/server/test/service/drain-state.model.test.ts"];
const drainTests = ["packages/server/test/drain.e2e.test.ts"];

/** What operators say of servers, who follows it, and the list that callers go by. */
export const trafficMutants: readonly Mutant[] = [
  {
    name: "traffic: a drain is written over one that its writer had not seen",
    file: `${core}/traffic-state.ts`,
    find: "  if (old !== undefined && old.revision > wanted.revision) {",
    replace: "  if (old !== undefined && old.revision > wanted.revision + 100n) {",
    tests: trafficTests,
  },
  {
    name: "traffic: a row of a server counts revisions for itself",
    file: `${core}/traffic-state.ts`,
    find: "  for (const { revision } of rows) if (revision > highest) highest = revision;\n",
    replace: "",
    tests: ["packages/testkit/test/memory-store.test.ts"],
  },
  {
    name: "traffic: of databases that differ the one that is read last counts",
    file: `${core}/traffic-state.ts`,
    find: "    if (other === undefined || isAbove(row, other)) state.servers.set(row.server, row);",
    replace: "    state.servers.set(row.server, row);",
    tests: trafficTests,
  },
  {
    name: "traffic: a process of a server has a weight of its own",
    file: `${core}/traffic-state.ts`,
    find: '  return instance.replace(/\\/\\d+$/, "");',
    replace: "  return instance;",
    tests: trafficTests,
  },
  {
    name: "traffic: an outage of the store empties the list",
    file: `${core}/watch-state.ts`,
    find: "sentAt - Math.max(seenAt, answeringSince) < SILENT_MS",
    replace: "sentAt - seenAt < SILENT_MS",
    tests: watchTests,
  },
  {
    name: "traffic: a server that is gone comes back by an outage of the store",
    file: `${core}/watch-state.ts`,
    find: "  const isAlive = before.isAlive && sentAt",
    replace: "  const isAlive = sentAt",
    tests: watchTests,
  },
  {
    name: "traffic: the number of a list does not tell of drains",
    file: `${core}/nodes-version.ts`,
    find: "JSON.stringify([instance, address, zone, weight, isDraining])",
    replace: "JSON.stringify([instance, address, zone, weight])",
    tests: ["packages/core/test/server/node/nodes-version.test.ts"],
  },
  {
    name: "traffic: the end of the calls before an earlier drain ends a later one",
    file: `${service}/drain-state.ts`,
    find: '"unready") || event.round !== round) {',
    replace: '"unready")) {',
    tests: drainModel,
  },
  {
    name: "traffic: an operator brings a server back that stops",
    file: `${service}/drain-state.ts`,
    find: "if (state.isStopping || isDraining !== isServing)",
    replace: "if (isDraining !== isServing)",
    tests: drainModel,
  },
  {
    name: "traffic: a drained server gives back before its calls have ended",
    file: `${service}/drain.ts`,
    find: "    await this.#door?.idle(this.#ports.drainTimeMs);\n",
    replace: "    await this.#door?.idle(0);\n",
    tests: drainTests,
    only: "took before",
  },
  {
    name: "traffic: a server that was undrained issues no more",
    file: `${service}/drain.ts`,
    find: "        if (effect.hasRested) directory().resume();\n",
    replace: "",
    tests: drainTests,
    only: "undrained it is as before",
  },
  {
    name: "traffic: a server that was undrained issues from what it gave back",
    file: `${service}/issue/directory.ts`,
    find: "    const entries = [...this.#entries.values()];\n    this.#entries.clear();\n",
    replace: "    const entries = [...this.#entries.values()];\n",
    tests: drainTests,
    only: "undrained it is as before",
  },
  {
    name: "traffic: requests on a stream are answered by a drained server",
    file: "packages/server/src/api/method.ts",
    find: "      if (drain.cause !== undefined) throw draining(drain.cause);\n",
    replace: "",
    tests: drainTests,
    only: "a stream ends",
  },
  {
    name: "traffic: an answer does not wait until servers follow",
    file: `${service}/traffic.ts`,
    find: "    await this.#followed(row, call);\n",
    replace: "",
    tests: drainTests,
    only: "undrained it is as before",
  },
  {
    name: "traffic: a change that is only tried is made",
    file: `${service}/traffic.ts`,
    find: "    if (validateOnly) return",
    replace: '    if (validateOnly && change.node === "") return',
    tests: drainTests,
    only: "only tried",
  },
  {
    name: "traffic: the last server is drained without a question",
    file: "packages/cli/src/commands/node.ts",
    find: "alive && !draining && !ids.has(nodeId)",
    replace: "alive && !draining",
    tests: ["packages/cli/test/node.e2e.test.ts"],
    only: "the last server asks",
  },
];
