import type { Mutant } from "./mutant.ts";

const status = "packages/cli/src/commands/status.ts";
const commands = ["packages/cli/test/commands.test.ts"];

/** Faults of what containers need. */
export const deployMutants: readonly Mutant[] = [
  {
    name: "deploy: the first process of a container takes no signal while it starts",
    file: "packages/cli/src/cli.ts",
    find: `if (process.pid === 1) {`,
    replace: `if (process.pid === 0) {`,
    tests: ["packages/cli/test/first-process.e2e.test.ts"],
  },
  {
    name: "deploy: a stop signal ends a server that should drain",
    file: "packages/cli/src/cli.ts",
    find: `process.listenerCount("SIGTERM") > 1`,
    replace: `process.listenerCount("SIGTERM") > 2`,
    tests: ["packages/cli/test/first-process.e2e.test.ts"],
  },
  {
    name: "deploy: health is well whatever the server says",
    file: status,
    find: `if (health !== "SERVING") throw unhealthy(`,
    replace: `if (health === "UNRECOGNIZED") throw unhealthy(`,
    tests: commands,
  },
  {
    name: "deploy: health needs the rights of an observer",
    file: status,
    find: `      await printAnswer(command, io, { json: () => ({ health })`,
    replace: `      await send(({ nodes }) => nodes.getNodeStatus.bind(nodes), {});
      await printAnswer(command, io, { json: () => ({ health })`,
    tests: commands,
  },
  {
    name: "deploy: the variable that names the authorities is not read",
    file: "packages/cli/src/flags/options.ts",
    find: `  caFile: "IDMINT_CA_FILE",
`,
    replace: ``,
    tests: ["packages/cli/test/options.test.ts"],
  },
];
