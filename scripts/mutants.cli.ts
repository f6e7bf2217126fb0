import type { Mutant } from "./mutant.ts";

const load = "packages/server/src/config/load.ts";
const config = ["packages/server/test/config/config.test.ts"];

/** Faults of the command line and of the configuration. */
export const cliMutants: readonly Mutant[] = [
  {
    name: "cli: the environment wins over flags",
    file: load,
    find: `const readings = [flags, env, file];`,
    replace: `const readings = [env, flags, file];`,
    tests: config,
  },
  {
    name: "cli: the environment chooses the file although a flag does",
    file: load,
    find: `(flags.values.get("config") ?? env.values.get("config"))?.text`,
    replace: `(env.values.get("config") ?? flags.values.get("config"))?.text`,
    tests: config,
  },
];
