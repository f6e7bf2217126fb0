import type { Mutant } from "./mutant.ts";

const load = "packages/server/src/config/load.ts";
const configCheck = ["packages/cli/test/config-check.test.ts"];

/** Faults of the commands that check, prove and import: config check, doctor, verify, tag import. */
export const toolsMutants: readonly Mutant[] = [
  {
    name: "config check: rules across options wait until each option is right",
    file: load,
    find: `violations.push(...RULES.flatMap(`,
    replace: `if (violations.length === 0) violations.push(...RULES.flatMap(`,
    tests: configCheck,
  },
  {
    name: "config check: a value that is wrong counts as its default for the rules",
    file: load,
    find: `Object.defineProperty(values, name, { get: unreadable });`,
    replace: `values[name] = option.type.parse(option.default ?? "");`,
    tests: configCheck,
  },
  {
    name: "config check: a secret is shown",
    file: load,
    find: `if (option.isSecret === true) return "(secret)";`,
    replace: ``,
    tests: configCheck,
  },
  {
    name: "config check: only the first error of a file that is no YAML is told",
    file: "packages/server/src/config/sources.ts",
    find: `document.errors.map(`,
    replace: `document.errors.slice(0, 1).map(`,
    tests: configCheck,
  },
];
