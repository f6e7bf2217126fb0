// The files whose faults nobody may live with, and the tests that hold them.

/** A file in which faults are made. */
export interface CriticalFile {
  readonly file: string;
  /** How the paths of its in-process tests begin, below packages/. */
  readonly tests: readonly string[];
  /**
   * The invariant of docs/internals/invariants.md that stands above it, by its first words. At least 95 % of its faults are
   * noticed, and of each of the others `explained` says why nobody can.
   */
  readonly invariant?: string;
}

const core = "packages/core/src";
const http2 = "packages/server/src/fast/http2";
const store = "packages/server/src/store";
const buffer = [
  "core/test/segment/cursor",
  "core/test/segment/buffer",
  "core/test/segment/segment",
  "core/test/segment/seen-ranges",
];
const connections = [
  "server/test/fast/http2/connection",
  "server/test/fast/short-memory",
  "server/test/fast/http2/begun",
];

export const criticalFiles: readonly CriticalFile[] = [
  {
    file: `${core}/segment/cursor.ts`,
    tests: buffer,
    invariant: "An id is issued when the cursor passes it",
  },
  {
    file: `${core}/segment/buffer-state.ts`,
    tests: buffer,
  },
  { file: `${core}/segment/segment.ts`, tests: buffer },
  { file: `${core}/segment/seen-ranges.ts`, tests: buffer },
  {
    file: `${core}/sequence/group-commit-state.ts`,
    tests: ["core/test/sequence"],
  },
  {
    file: `${core}/server/store/version-guard.ts`,
    tests: [
      "server/test/service/uniqueness.model",
      "server/test/service/issue/give-back",
      "server/test/service/tags/lost-tag",
      "server/test/service/upstream/grants",
      "core/test/server/store",
    ],
    invariant: "A server uses only ids that are above all it was granted",
  },
  {
    file: `${core}/server/store/grants.ts`,
    tests: ["core/test/server/store", "server/test/service/upstream/grants"],
  },
  { file: `${core}/snowflake/generator-state.ts`, tests: ["core/test/snowflake"] },
  { file: `${core}/snowflake/held-workers.ts`, tests: ["core/test/snowflake"] },
  { file: `${core}/snowflake/layout.ts`, tests: ["core/test/snowflake"] },
  { file: `${core}/worker/lease-state.ts`, tests: ["core/test/worker", "core/test/snowflake"] },
  {
    file: `${core}/server/worker/registry-state.ts`,
    tests: [
      "core/test/server/worker",
      "server/test/service/worker-ids/service",
      "server/test/service/worker-ids/registries",
    ],
  },
  {
    file: `${core}/server/worker/kept-lease-state.ts`,
    tests: [
      "core/test/server/worker/kept-lease",
      "server/test/service/worker-ids/lease-keeper",
      "server/test/store/kept/lease-file",
    ],
    invariant: "Kept time is in the file before it is used",
  },
  { file: `${core}/server/worker/clock-check-state.ts`, tests: ["core/test/server/worker"] },
  {
    file: `${core}/server/access/rights.ts`,
    tests: ["core/test/server/access", "server/test/service/access"],
    invariant: "What a caller may do is decided from the name of the tag",
  },
  {
    file: `${core}/server/access/known-state.ts`,
    tests: ["core/test/server/access", "server/test/service/access"],
  },
  {
    file: `${core}/server/access/tokens.ts`,
    tests: ["core/test/server/access", "server/test/service/access"],
  },
  {
    file: `${core}/server/audit/share.ts`,
    tests: ["core/test/server/audit", "server/test/service/audit/trail"],
    invariant: "Nobody's rows push another's out of the audit trail",
  },
  {
    file: `${core}/server/node/issuing-state.ts`,
    tests: ["core/test/server/node", "server/test/service/tags/issuing"],
    invariant: "A server that others do not wait for issues nothing",
  },
  { file: `${core}/server/redis/mark-state.ts`, tests: ["core/test/server/redis"] },
  {
    file: `${core}/server/ticket/slots-state.ts`,
    tests: ["core/test/server/ticket", "server/test/service/tickets"],
  },
  {
    file: "packages/server/src/service/upstream/lookup-state.ts",
    tests: [
      "server/test/service/upstream/lookup-state",
      "server/test/service/upstream/late-lookup",
    ],
    invariant: "An older record of a tag never replaces a newer one",
  },
  {
    file: `${store}/etcd/cluster/guard-state.ts`,
    tests: ["server/test/store/etcd/cluster/guard-state"],
    invariant: "A store proves that it is the one that was accepted",
  },
  {
    file: `${store}/sqlite/file/witness-state.ts`,
    tests: ["server/test/store/sqlite/file/witness.model"],
    invariant: "A store proves that it is the one that was accepted",
  },
  {
    file: `${store}/etcd/session/clocks-state.ts`,
    tests: ["server/test/store/etcd/session/clocks-state"],
  },
  {
    file: `${store}/postgres/hosts/primary-state.ts`,
    tests: ["server/test/store/postgres/hosts/primary-state"],
  },
  {
    file: `${store}/postgres/hosts/promotion-state.ts`,
    tests: ["server/test/store/postgres/hosts/promotion"],
  },
  { file: `${store}/pins/own-row-state.ts`, tests: ["server/test/store/pins/own-row-state"] },
  {
    file: `${store}/shared/period.ts`,
    tests: ["server/test/store/shared/period", "server/test/store/shared/return-to-period"],
    invariant: "No period begins twice with the same ids",
  },
  {
    file: `${store}/shared/worker-pool.ts`,
    tests: ["server/test/service/worker-ids/service", "core/test/server/worker"],
  },
  { file: `${http2}/receive-window.ts`, tests: connections },
  { file: `${http2}/sender.ts`, tests: connections },
  {
    file: `${http2}/stream-table.ts`,
    tests: ["server/test/fast/http2/stream-table", "server/test/fast/http2/connection"],
  },
  { file: `${http2}/peer-settings.ts`, tests: connections },
  {
    file: `${http2}/hpack/decoder.ts`,
    tests: ["server/test/fast/http2/hpack/decoder", "server/test/fast/http2/hpack/known-texts"],
  },
  { file: `${http2}/hpack/huffman.ts`, tests: ["server/test/fast/http2/hpack/decoder"] },
  {
    file: "packages/client/src/answers.ts",
    tests: ["client/test/client.test", "client/test/repeats"],
  },
  {
    file: "packages/client/src/segment-loads.ts",
    tests: ["client/test/client", "client/test/repeats"],
  },
  {
    file: "packages/client/src/servers/servers-state.ts",
    tests: ["client/test/servers/servers", "client/test/servers/learned-servers"],
  },
  {
    file: "packages/client/src/servers/endpoints-state.ts",
    tests: ["client/test/servers/endpoints"],
  },
];
