import type { Mutant } from "./mutant.ts";

const load = "packages/server/src/config/load.ts";
const doctor = "packages/cli/src/commands/doctor";
const doctors = ["packages/cli/test/doctor.test.ts"];
const planted = ["packages/cli/test/doctor.e2e.test.ts"];
const verify = "packages/cli/src/commands/verify";
const verifies = ["packages/cli/test/verify.test.ts"];
const importer = "packages/cli/src/commands/tag/import";
const imports = ["packages/cli/test/import.test.ts"];
const importing = ["packages/cli/test/import.pg.test.ts"];
const ledgers = ["packages/cli/test/verify-ledger.test.ts"];
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
  {
    name: "doctor: a check that does not end is well",
    file: `${doctor}/checks.ts`,
    find: "fail(`no answer in ${ms} ms`, check.late),",
    replace: "",
    tests: doctors,
  },
  {
    name: "doctor: what needs a failed check is looked at all the same",
    file: `${doctor}/checks.ts`,
    find: `if (!(await outcome).isPassed)`,
    replace: `if (!(await outcome).isPassed && name === "")`,
    tests: doctors,
  },
  {
    name: "doctor: the time that an answer took counts against a clock",
    file: `${doctor}/clocks.ts`,
    find: `Math.abs(aheadMs - middle) - errorMs)`,
    replace: `Math.abs(aheadMs - middle))`,
    tests: doctors,
  },
  {
    name: "doctor: servers that are gone count for the version of the fleet",
    file: `${doctor}/fleet.ts`,
    find: `const alive = nodes.filter((node) => node.alive);`,
    replace: `const alive = nodes;`,
    tests: doctors,
  },
  {
    name: "doctor: the group may read a secret",
    file: `${doctor}/machine.ts`,
    find: `(stats.mode & 0o077) === 0`,
    replace: `(stats.mode & 0o007) === 0`,
    tests: planted,
    only: "a password that others may read",
  },
  {
    name: "doctor: any certificate is trusted",
    file: `${doctor}/reach.ts`,
    find: `socket.authorized ? undefined : String(socket.authorizationError)`,
    replace: `undefined as string | undefined`,
    tests: planted,
    only: "of another authority",
  },
  {
    name: "doctor: any limit of open files is enough",
    file: `${doctor}/machine.ts`,
    find: `if (limit >= need)`,
    replace: `if (limit >= 1)`,
    tests: planted,
    only: "fewer open files",
  },
  {
    name: "verify: ranges that share one id only are disjoint",
    file: `${verify}/ranges.ts`,
    find: `first !== undefined && first <= last`,
    replace: `first !== undefined && first < last`,
    tests: verifies,
  },
  {
    name: "verify: segments with increments are compared by one increment only",
    file: `${verify}/ranges.ts`,
    find: `modulus = (modulus / gcd(modulus, increment)) * increment;`,
    replace: `modulus = increment;`,
    tests: verifies,
  },
  {
    name: "verify: periods of a tag are one",
    file: `${verify}/judge.ts`,
    find: "return `${tag}${SEPARATOR}${period}`;",
    replace: "return `${tag}${SEPARATOR}`;",
    tests: verifies,
  },
  {
    name: "verify: a tag that the store does not have is not compared",
    file: `${verify}/floors.ts`,
    find: `if (tag === undefined) return new Map([["", 0n]]);`,
    replace: `if (tag === undefined) return undefined;`,
    tests: verifies,
  },
  {
    name: "verify: a number that JSON rounded is taken for an id",
    file: `${verify}/history.ts`,
    find: `Number.isSafeInteger(value)`,
    replace: `Number.isInteger(value)`,
    tests: verifies,
  },
  {
    name: "import: the gap is forgotten",
    file: `${importer}/plan.ts`,
    find: `const floor = highest + gap;`,
    replace: `const floor = highest;`,
    tests: imports,
  },
  {
    name: "import: of several databases the last one counts",
    file: `${importer}/plan.ts`,
    find: `other === undefined || other.highest < highest`,
    replace: `other === undefined || other.highest !== highest`,
    tests: imports,
  },
  {
    name: "import: a backslash before a quote ends a text of MySQL",
    file: `${importer}/sql-tokens.ts`,
    find: `if (sign === "\\\\" && hasEscapes)`,
    replace: `if (sign === "\\\\" && hasEscapes && this.#text[at + 1] !== "'")`,
    tests: imports,
  },
  {
    name: "import: rows above AUTO_INCREMENT do not count",
    file: `${importer}/sources.ts`,
    find: `given > inRows ? given : inRows`,
    replace: `given`,
    tests: imports,
  },
  {
    name: "import: a tag is made first, and raised afterwards",
    file: `${importer}/import.ts`,
    find: `const value = { start: floor + 1n };`,
    replace: `const value = { start: 1n };`,
    tests: importing,
  },
  {
    name: "import: rows above a sequence of PostgreSQL do not count",
    file: "packages/server/src/store/takeover/sequences.ts",
    find: `inRows: inRows === undefined || inRows === null ? undefined : BigInt(inRows),`,
    replace: `inRows: undefined,`,
    tests: importing,
  },
  {
    name: "verify: a release does not end an allocation",
    file: `${verify}/ledger.ts`,
    find: `row.entry === "give-back" || row.entry === "release"`,
    replace: `row.entry === "give-back"`,
    tests: ledgers,
  },
  {
    name: "verify: a give-back leaves the ids to the server that had them",
    file: `${verify}/ledger.ts`,
    find: `if (row.entry === "give-back") granted.remove(row);`,
    replace: ``,
    tests: ledgers,
  },
  {
    name: "verify: rows of the ledger that were forgotten count",
    file: `${verify}/ledger.ts`,
    find: `if (version <= forgotten) continue;`,
    replace: ``,
    tests: ledgers,
  },
  {
    name: "verify: one reading of a ledger in use is enough",
    file: `${verify}/ledger.ts`,
    find: `return first.faultCount === 0 ? first : readAndJudge(store, tag, signal);`,
    replace: `return first;`,
    tests: ledgers,
  },
];
