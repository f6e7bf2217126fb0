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
    find: "  ORDER BY at_ms, id LIMIT ?4)`;",
    replace: "  ORDER BY at_ms DESC, id LIMIT ?4)`;",
    tests: suite,
    only: "of too many",
  },
  {
    name: "audit: the rows of one push out those of others",
    file: "packages/core/src/server/audit/share.ts",
    find: "    if (count > share) return share;",
    replace: "    if (count > share) return undefined;",
    tests: [...suite, "packages/core/test/server/audit/share.model.test.ts"],
  },
  {
    name: "audit: who has few rows leaves nothing to others",
    file: "packages/core/src/server/audit/share.ts",
    find: "Math.floor(left / (ascending.length - at))",
    replace: "Math.floor(keep / ascending.length)",
    tests: ["packages/core/test/server/audit/share.model.test.ts"],
  },
  {
    name: "audit: however many principals there are, each keeps a row",
    file: "packages/core/src/server/audit/share.ts",
    find: "    if (share === 0) return undefined;",
    replace: "    if (share === 0) return 1;",
    tests: suite,
  },
  {
    name: "audit: rows that come faster than one round removes pile up",
    file: "packages/server/src/service/audit/trail.ts",
    find: '      return "more";',
    replace: '      return "done";',
    tests: ["packages/server/test/service/audit-trail.test.ts"],
  },
  {
    name: "audit: etcd tells principals apart by nothing",
    file: "packages/server/src/store/etcd/session/keys.ts",
    find: ".slice(0, WHO_DIGITS);",
    replace: '.slice(0, WHO_DIGITS).replaceAll(/./g, "0");',
    tests: ["packages/server/test/store/etcd/store.etcd.test.ts"],
    only: "the events of one push out",
  },
  {
    name: "audit: PostgreSQL removes more than what is too many",
    file: "packages/server/src/store/postgres/records/audit.ts",
    find: "LIMIT 1 OFFSET $3)\n  ORDER BY o.at_ms, o.id LIMIT $4) RETURNING",
    replace: "LIMIT 1)\n  ORDER BY o.at_ms, o.id LIMIT $4) RETURNING",
    tests: ["packages/server/test/store/postgres.pg.test.ts"],
    only: "the events of one push out",
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
