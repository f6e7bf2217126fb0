import type { Mutant } from "./mutant.ts";

const health = "packages/server/src/grpc/health.ts";
const door = ["packages/server/test/grpc-door.e2e.test.ts"];

/** What the Helm chart rests on. */
export const chartMutants: readonly Mutant[] = [
  {
    name: "a server without its store is not alive",
    file: health,
    find: "this.#serving || service === LIVENESS",
    replace: "this.#serving",
    tests: door,
    only: "liveness serves",
  },
  {
    name: "who watches liveness is told that nothing changed",
    file: health,
    find: " && service !== LIVENESS",
    replace: "",
    tests: door,
    only: "liveness serves",
  },
  {
    name: "connections live as long as they like",
    file: "packages/server/src/grpc/door.ts",
    find: '"grpc.max_connection_age_ms": options.maxConnectionAgeMs',
    replace: '"grpc.max_connection_age_ms": 30 * 60_000',
    tests: door,
    only: "as old as the limit",
  },
];
