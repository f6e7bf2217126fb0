import type { Mutant } from "./mutant.ts";

const load = "packages/server/src/config/load.ts";
const config = ["packages/server/test/config/config.test.ts"];
const confirm = "packages/cli/src/confirm.ts";
const confirms = ["packages/cli/test/confirm.test.ts"];
const onStores = ["packages/cli/test/confirm.e2e.test.ts"];

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
  {
    name: "cli: a step that cannot be undone goes on where nobody can be asked",
    file: confirm,
    find: `  if (io.ask === undefined) {`,
    replace: `  if (io.ask === undefined) return;
  if (io.ask === undefined) {`,
    tests: confirms,
  },
  {
    name: "cli: any answer on a terminal goes on",
    file: confirm,
    find: `if (answer?.trim().toLowerCase() === "yes") return;`,
    replace: `if (answer !== undefined) return;`,
    tests: confirms,
  },
  {
    name: "cli: a terminal that is closed goes on",
    file: confirm,
    find: `if (answer?.trim().toLowerCase() === "yes") return;`,
    replace: `if (answer === undefined || answer.trim().toLowerCase() === "yes") return;`,
    tests: [...confirms, ...onStores],
  },
  {
    name: "cli: a store is accepted without a question",
    file: "packages/cli/src/commands/store.ts",
    find: `    await confirm(command, io, { place: \`store: \${place}\`, effect });
`,
    replace: ``,
    tests: onStores,
  },
  {
    name: "cli: a schema that is there is migrated without a question",
    file: "packages/cli/src/migration.ts",
    find: `if (from === 0 || steps.length === 0) continue;`,
    replace: `if (from <= 1 || steps.length === 0) continue;`,
    tests: confirms,
  },
  {
    name: "cli: a store is shown with the parameters of its URL",
    file: "packages/server/src/config/place.ts",
    find: `const end = socket === null ? "" : `,
    replace: `const end = socket === null ? new URL(text).search : `,
    tests: config,
  },
];
