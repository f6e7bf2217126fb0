import type { Mutant } from "./mutant.ts";

const contexts = "packages/cli/src/flags/contexts.ts";
const contextTests = ["packages/cli/test/contexts.test.ts"];
const addressTests = ["packages/server/test/addresses.e2e.test.ts"];
const refusals = "packages/server/src/service/audit/refusals-state.ts";
const refusalTests = ["packages/server/test/service/refusals-state.model.test.ts"];
const suite = ["packages/server/test/store/sqlite.test.ts"];

/** The audit trail. */
export const auditMutants: readonly Mutant[] = [
  {
    name: "audit: a change is made without its row",
    file: "packages/server/src/store/sqlite/tags.ts",
    find: "if (by !== undefined) addAudit(transaction, tagChanged(by, old, tag));",
    replace: "void by;",
    tests: suite,
  },
  {
    name: "audit: a row tells of a change that was only checked",
    file: "packages/server/src/store/sqlite/nodes.ts",
    find: "      const by = options?.by;\n      if (by !== undefined) addAudit(transaction, issuingChanged(by, stamp.nowMs, isStopped));\n    }",
    replace:
      "    }\n    const by = options?.by;\n    if (by !== undefined) addAudit(transaction, issuingChanged(by, stamp.nowMs, isStopped));",
    tests: suite,
  },
  {
    name: "audit: a trim removes the newest instead of the oldest",
    file: "packages/server/src/store/sqlite/records/audit.ts",
    find: "(at_ms, id) <= (?3, ?4)) ORDER BY at_ms, id LIMIT ?5)",
    replace: "(at_ms, id) <= (?3, ?4)) ORDER BY at_ms DESC, id LIMIT ?5)",
    tests: suite,
  },
  {
    name: "audit: events of one time are lost between two pages",
    file: "packages/server/src/store/sqlite/records/audit.ts",
    find: "AND (at_ms, id) < (?, ?) ORDER",
    replace: "AND at_ms < ? AND id <> ? ORDER",
    tests: suite,
  },
  {
    name: "audit: who makes the most refusals fills the store",
    file: refusals,
    find: "seen.rows < CALLER_ROWS && !isFull",
    replace: "!isFull",
    tests: refusalTests,
  },
  {
    name: "audit: refusals that could not be written are forgotten",
    file: refusals,
    find: "  state.waiting.unshift(...events);\n",
    replace: "  void events;\n",
    tests: refusalTests,
  },
  {
    name: "audit: what was left out is not told",
    file: refusals,
    find: "if (omitted > 0) state.waiting.push({ ...last, omitted });",
    replace: "if (omitted > 1_000_000) state.waiting.push({ ...last, omitted });",
    tests: refusalTests,
  },
  {
    name: "audit: a stop of issuing leaves no row",
    file: "packages/server/src/api/nodes/node-service.ts",
    find: "issuing.stop({ validateOnly, by })",
    replace: "issuing.stop({ validateOnly })",
    tests: ["packages/server/test/audit.e2e.test.ts"],
  },
  {
    name: "addresses: administrators are served at the address for everybody",
    file: "packages/server/src/main/doors/grpc.ts",
    find: "adminAddress === undefined ? api : forCallers(api)",
    replace: "api",
    tests: addressTests,
  },
  {
    name: "addresses: a parent of processes hands administrators to the door for everybody",
    file: "packages/server/src/main/serving.ts",
    find: 'takers("admin")',
    replace: 'takers("grpc")',
    tests: addressTests,
  },
  {
    name: "addresses: reflection cannot be switched off",
    file: "packages/server/src/main/doors/grpc.ts",
    find: 'config.reflection === "on" ? ports.api : withoutReflection(ports.api)',
    replace: "ports.api",
    tests: addressTests,
  },
  {
    name: "contexts: the current one's token goes to any server",
    file: contexts,
    find: 'if (wanted === undefined && (address ?? env["IDMINT_ADDRESS"] ?? "") !== "") return undefined;',
    replace: "void address;",
    tests: contextTests,
  },
  {
    name: "contexts: a file that others can read is used",
    file: contexts,
    find: "(mode & 0o077) !== 0",
    replace: "(mode & 0o002) !== 0",
    tests: contextTests,
  },
  {
    name: "contexts: a variable loses against the context",
    file: "packages/cli/src/flags/options.ts",
    find: "for (const from of [typed, variable, ofContext]) {",
    replace: "for (const from of [typed, ofContext, variable]) {",
    tests: contextTests,
  },
];
