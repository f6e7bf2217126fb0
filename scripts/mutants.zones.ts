import type { Mutant } from "./mutant.ts";

const servers = "packages/client/src/servers";
const endpointsState = ["packages/client/test/endpoints-state.test.ts"];
const serversState = ["packages/client/test/servers-state.test.ts"];
const learned = ["packages/client/test/learned-servers.test.ts"];

/** Faults of which servers an SDK learns, believes and chooses. */
export const zoneMutants: readonly Mutant[] = [
  {
    name: "zones: servers of other zones are asked like those of the own",
    file: `${servers}/servers-state.ts`,
    find: `zone !== "" && server.zone === zone;
  const ranked`,
    replace: `zone !== "";
  const ranked`,
    tests: [...serversState, "packages/client/test/servers.model.test.ts"],
  },
  {
    name: "zones: weights are not looked at",
    file: `${servers}/rendezvous.ts`,
    find: `-Math.log(unit(address, key)) / weight,`,
    replace: `-Math.log(unit(address, key)) / Math.min(1, weight),`,
    tests: [...endpointsState, ...serversState],
  },
  {
    name: "zones: all clients of a tag prefer one server",
    file: `${servers}/fleet.ts`,
    find: '    return { key, patience: unit("", key), isOrdered: true };',
    replace: '    return { key: tag, patience: unit("", key), isOrdered: true };',
    tests: learned,
  },
  {
    name: "zones: an answer of a server of another store is used",
    file: `${servers}/fleet.ts`,
    find: `return !this.isLearned(endpoint) || this.#servers.nodeIds.has(nodeId);`,
    replace: `return !this.isLearned(endpoint) || nodeId !== "";`,
    tests: [...learned, "packages/client/test/fleet.model.test.ts"],
  },
  {
    name: "zones: a learned address is proved by whoever answers there",
    file: `${servers}/fleet.ts`,
    find: `return found === undefined ? undefined : found.isOfStore && found.isServing;`,
    replace: `return found === undefined ? undefined : found.isServing;`,
    tests: learned,
  },
  {
    name: "zones: a refusal of a server of another store counts",
    file: `${servers}/endpoints.ts`,
    find: `if (!isBusy && this.#fleet.isLearned(endpoint)) {`,
    replace: `if (isBusy && this.#fleet.isLearned(endpoint)) {`,
    tests: learned,
  },
  {
    name: "zones: the list of a server of another store is believed",
    file: `${servers}/servers-state.ts`,
    find: `const all = isTrusted
`,
    replace: `const all = isTrusted || list.servers.length > 0
`,
    tests: serversState,
  },
  {
    name: "zones: an empty list takes all servers away",
    file: `${servers}/servers-state.ts`,
    find: `if (all.size === 0 || isStale(list.servers)) {`,
    replace: `if (isStale(list.servers)) {`,
    tests: [...serversState, "packages/client/test/servers.model.test.ts"],
  },
  {
    name: "zones: a server that is back gets all its tags at once",
    file: `${servers}/endpoints-state.ts`,
    find: `nowMs - wellSinceMs >= patience * SLOW_START_MS;`,
    replace: `nowMs >= wellSinceMs;`,
    tests: endpointsState,
  },
  {
    name: "zones: a zone that is cut off takes all tries of a load",
    file: `${servers}/endpoints-state.ts`,
    find: `return far === undefined ? first : [...first.slice(0, -1), far];`,
    replace: `return far === undefined ? first : [...first];`,
    tests: [...endpointsState, ...learned],
  },
  {
    name: "zones: a load asks an address that nobody has proved",
    file: `${servers}/endpoints-state.ts`,
    find: `if (mode !== "well") continue;`,
    replace: `if (mode === "proving") continue;`,
    tests: [...endpointsState, "packages/client/test/endpoints.model.test.ts"],
  },
  {
    name: "zones: all tags of order PER_CLIENT move at once",
    file: `${servers}/fleet.ts`,
    find: `nowMs >= changedAtMs + route.patience * MOVE_MS;`,
    replace: `nowMs >= changedAtMs;`,
    tests: learned,
  },
  {
    name: "zones: further tries are not limited",
    file: `${servers}/endpoints.ts`,
    find: `if (tries > 0 && !this.#mayRetry()) throw oneOf(failures);`,
    replace: `if (failures.length > 0) this.#mayRetry();`,
    tests: learned,
  },
  {
    name: "core: a busy server is asked again at once",
    file: "packages/core/src/segment/backoff.ts",
    find: `const askedMs = busyMs(error) ?? 0;`,
    replace: `const askedMs = busyMs(error) === undefined ? 1 : 0;`,
    tests: ["packages/core/test/buffer.test.ts"],
  },
];
