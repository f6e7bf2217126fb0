import type { Mutant } from "./mutant.ts";

const rules = "deploy/prometheus/rules/alerts.yaml";
const dashboards = "packages/testkit/src/deploy/dashboards.ts";
const texts = ["packages/testkit/test/deploy/rules.test.ts"];
const live = ["packages/testkit/test/deploy/watch.e2e.test.ts"];

/** Faults in the rules of Prometheus and in the dashboards. */
export const watchMutants: readonly Mutant[] = [
  {
    name: "watch: one process of several may be silent",
    file: rules,
    find: `expr: up{job=~".*idmint.*"} == 0 or min by (job, instance) (idmint_process_up) == 0`,
    replace: `expr: up{job=~".*idmint.*"} == 0 or max by (job, instance) (idmint_process_up) == 0`,
    tests: live,
  },
  {
    name: "watch: nobody hears when all servers are down",
    file: rules,
    find: `              0 * count by (job) (up{job=~".*idmint.*"})`,
    replace: `              1 * count by (job) (up{job=~".*idmint.*"})`,
    tests: live,
  },
  {
    name: "watch: calls of sequences count as callers who wait for a segment",
    file: rules,
    find: `(idmint_waiters and idmint_segment_remaining_ratio == 0)`,
    replace: `(idmint_waiters)`,
    tests: live,
  },
  {
    name: "watch: refusals for the store are left out as if callers could mend them",
    file: rules,
    find: `RAISE_TOO_LARGE|SEGMENT_INVALID|`,
    replace: `RAISE_TOO_LARGE|SEGMENT_.*|`,
    tests: texts,
  },
  {
    name: "watch: an alert names a runbook that is not there",
    file: rules,
    find: `/ledger-behind.md"`,
    replace: `/ledger.md"`,
    tests: texts,
  },
  {
    name: "watch: charts begin in the line of the row before",
    file: dashboards,
    find: `        y += height;\n        x = 0;`,
    replace: `        x = 0;`,
    tests: texts,
  },
  {
    name: "watch: a panel shows several percentiles of a histogram that has another name",
    file: "packages/testkit/src/deploy/panels.ts",
    find: `"idmint_load_duration_seconds"`,
    replace: `"idmint_loads_duration_seconds"`,
    tests: texts,
  },
];
