import type { Mutant } from "./mutant.ts";

const hosts = "packages/server/src/store/postgres/hosts";
const model = ["packages/server/test/store/primary-state.model.test.ts"];
const pairs = ["packages/server/test/store/postgres-hosts.pg.test.ts"];

/** Faults of a store with standbys: which host is used, and who accepts a promoted one. */
export const failoverMutants: readonly Mutant[] = [
  {
    name: "failover: of two primaries the first one is used",
    file: `${hosts}/primary-state.ts`,
    find: `if (other !== undefined) {`,
    replace: `if (other !== undefined && primaries.length > 2) {`,
    tests: model,
  },
  {
    name: "failover: hosts of another cluster count as standbys",
    file: `${hosts}/primary-state.ts`,
    find: `first !== undefined && alien !== undefined`,
    replace: `first?.isPrimary === false && alien !== undefined`,
    tests: model,
  },
  {
    name: "failover: a second primary that comes up later is not looked for",
    file: `${hosts}/primary.ts`,
    find: `if (performance.now() - this.#lookedAtMs > FRESH_MS) this.#look().catch(() => undefined);`,
    replace: "",
    tests: pairs,
    only: "an old primary that comes back",
  },
  {
    name: "failover: a host that failed is not left",
    file: `${hosts}/primary.ts`,
    find: `    this.#url = undefined;
`,
    replace: "",
    tests: pairs,
    only: "grants come from the primary",
  },
  {
    name: "failover: a store is accepted beside a host that is silent",
    file: `${hosts}/others.ts`,
    find: `if (silent.length === 0 || saysStopped) return;`,
    replace: `if (silent.length >= 0 || saysStopped) return;`,
    tests: pairs,
    only: "known to be stopped",
  },
];
