import type { Mutant } from "./mutant.ts";

const hosts = "packages/server/src/store/postgres/hosts";
const model = ["packages/server/test/store/primary-state.model.test.ts"];
const pairs = ["packages/server/test/store/postgres-hosts.pg.test.ts"];

const promotion = ["packages/server/test/store/promotion.model.test.ts"];
const standbys = ["packages/server/test/store/postgres-standbys.pg.test.ts"];

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
    file: "packages/server/src/store/postgres/connections.ts",
    find: `if (url !== this.#url) {`,
    replace: `if (url === "") {`,
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
  {
    name: "failover: any promoted standby is accepted, named or not",
    file: `${hosts}/promotion-state.ts`,
    find: `if (!facts.standbys.includes(facts.clusterName.toLowerCase())) return "operator";`,
    replace: "",
    tests: promotion,
  },
  {
    name: "failover: a server that has seen nothing vouches for a promoted standby",
    file: `${hosts}/promotion-state.ts`,
    find: `if (witness.renewals === undefined) return "operator";`,
    replace: "witness = { ...witness, renewals: witness.renewals ?? 0n };",
    tests: promotion,
  },
  {
    name: "failover: a backup of a standby passes for the standby",
    file: `${hosts}/promotion-state.ts`,
    find: `facts.renewals < witness.renewals;`,
    replace: `facts.renewals < 0n;`,
    tests: promotion,
  },
  {
    name: "failover: one of several standbys is enough",
    file: `${hosts}/standby-names.ts`,
    find: `if (Number(digits ?? 1) !== names.length ||`,
    replace: `if (Number(digits ?? 1) > names.length ||`,
    tests: ["packages/server/test/store/standby-names.test.ts"],
  },
  {
    name: "failover: an answer that its standby lacks counts",
    file: "packages/server/src/store/postgres/connections.ts",
    find: `if (missing.length > 0) throw unconfirmed(missing);`,
    replace: "",
    tests: standbys,
    only: "ends without a word",
  },
  {
    name: "failover: a row that its standby lacks counts as renewed",
    file: "packages/server/src/store/postgres/changes.ts",
    find: `isRenewed: store.renewed !== null && missing.length === 0,`,
    replace: `isRenewed: store.renewed !== null,`,
    tests: standbys,
    only: "cancelled wait",
  },
  {
    name: "failover: who objects leaves no word of it",
    file: `${hosts}/promotion.ts`,
    find: `if (verdict === "object") await session.query({ text: OBJECT });`,
    replace: "",
    tests: standbys,
    only: "objects for all",
  },
  {
    name: "failover: a server with one host undermines the standby",
    file: "packages/server/src/store/postgres/identity.ts",
    find: `AND 'standbys' <> ALL (\${allowed})`,
    replace: `AND 'standbys' = ALL (\${allowed}) AND false`,
    tests: standbys,
    only: "names one host",
  },
  {
    name: "failover: a tag stays refused after its store was accepted",
    file: "packages/server/src/service/upstream/refusals.ts",
    find: `onWentBack(ofStore ? undefined : tag, why);`,
    replace: `onWentBack(tag, why);`,
    tests: ["packages/server/test/service/grants.test.ts"],
  },
  {
    name: "failover: waits for a standby that are given up pile up",
    file: "packages/server/src/store/postgres/connections.ts",
    find: `client.abandon()`,
    replace: `client.destroy()`,
    tests: standbys,
    only: "pile up",
  },
];
