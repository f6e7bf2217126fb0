import type { Mutant } from "./mutant.ts";

const main = "packages/server/src/main";
const idle = ["packages/testkit/test/idle.e2e.test.ts"];

/** What a server holds that does nothing yet. */
export const memoryMutants: readonly Mutant[] = [
  {
    name: "memory: what asks other servers is loaded without others",
    file: `${main}/peers.ts`,
    find: "if (peers.length === 0 && known().length === 0) return [];",
    replace: "",
    tests: idle,
    only: "no driver",
  },
  {
    name: "memory: the cipher is loaded without keys",
    file: `${main}/text-ids.ts`,
    find: "if (unguessableKeys.size === 0) return new Map();",
    replace: "",
    tests: idle,
    only: "no driver",
  },
  {
    name: "memory: the descriptors are loaded before anybody reflects",
    file: "packages/server/src/api/standard/reflection.ts",
    find: "let loading: Promise<ReflectionIndex> | undefined;",
    replace: "let loading: Promise<ReflectionIndex> | undefined = load();",
    tests: idle,
    only: "no driver",
  },
  {
    name: "memory: JSON is loaded before the first call",
    file: "packages/server/src/http/connect.ts",
    find: "let loading: Promise<typeof Json> | undefined;",
    replace: `let loading: Promise<typeof Json> | undefined = import("./json.ts");`,
    tests: idle,
    only: "no driver",
  },
];
