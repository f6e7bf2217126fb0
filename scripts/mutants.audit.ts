import type { Mutant } from "./mutant.ts";

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
];
