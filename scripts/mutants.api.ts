import type { Mutant } from "./mutant.ts";

const service = "packages/server/src/service";
const shared = "packages/server/src/store/shared";
const bounds = "packages/server/src/grpc/bounds.ts";
const tried = ["packages/server/test/validate-only.redis.test.ts"];
const tags = ["packages/server/test/tags.e2e.test.ts"];
const connections = ["packages/server/test/grpc-door.e2e.test.ts"];
const requests = ["packages/server/test/bad-input.e2e.test.ts"];

/** Faults of the API: changes that are only tried, masks, pages, connections, and what errors say. */
export const apiMutants: readonly Mutant[] = [
  {
    name: "api: a row that is refused to callers answers one of the doors",
    file: "packages/server/src/api/split.ts",
    find: `return [path, unaryHandler({ path, rule, answer, response })] as const;`,
    replace: `return [path, { ...unaryHandler({ path, rule, answer, response }), answer: handler.answer }] as const;`,
    tests: ["packages/server/test/addresses.e2e.test.ts"],
  },
  {
    name: "api: a store makes a change that is only to be validated",
    file: `${shared}/change.ts`,
    find: `return validateOnly ? { ...decision, changed: false } : decision;`,
    replace: `return decision;`,
    tests: ["packages/server/test/store/sqlite.test.ts"],
    only: "only to be validated",
  },
  {
    name: "api: a move that is only to be validated tells the old Redis server to stop",
    file: `${service}/redis/move.ts`,
    find: `if (from !== redisServer && !force) known(redisServers.get(from), from);`,
    replace: `if (from !== redisServer && !force) await retire(redisServers.get(from), from, name);`,
    tests: tried,
  },
  {
    name: "api: a wide path drops what never changes in silence",
    file: `${service}/tags/update-mask.ts`,
    find: `if (isEmpty || sent === present) return;`,
    replace: `if (isEmpty || sent !== present) return;`,
    tests: tags,
  },
  {
    name: "api: * without a kind sets the kind's defaults",
    file: `${service}/tags/update-mask.ts`,
    find: `if (mask.includes(ALL) && draft.kind === undefined) {`,
    replace: `if (mask.length === 0 && draft.kind === undefined) {`,
    tests: tags,
  },
  {
    name: "api: a page is as large as it is asked for",
    file: `${service}/page-token.ts`,
    find: `Math.min(pageSize, MAX_PAGE_SIZE)`,
    replace: `pageSize`,
    tests: tags,
  },
  {
    name: "api: a made-up release token counts as waste",
    file: `${service}/issue/ids.ts`,
    find: `if (released === undefined) return 0;
    if (this.#ledger`,
    replace: `if (released === undefined) {
      this.#counters.wastedIds += unusedCount;
      return 0;
    }
    if (this.#ledger`,
    tests: ["packages/server/test/allocate.e2e.test.ts"],
  },
  {
    name: "api: what waits past 256 calls on a connection stays in the client",
    file: bounds,
    find: `MAX_STREAMS = 1_024;`,
    replace: `MAX_STREAMS = 256;`,
    tests: connections,
    only: "gRPC's usual hundred",
  },
  {
    name: "api: several faults of a request have the reason of the first",
    file: "packages/core/src/errors.ts",
    find: `others.length === 0 ? first : "INVALID_ARGUMENT"`,
    replace: `first`,
    tests: requests,
  },
  {
    name: "api: TAG_EXISTS does not say that the key is another one",
    file: `${shared}/differences.ts`,
    find: `key: unguessable.keys.map(({ keyId, check }) => \`\${keyId}:\${check}\`).join(","),`,
    replace: `key: unguessable.keys.map(({ keyId }) => \`\${keyId}\`).join(","),`,
    tests: ["packages/server/test/store/differences.test.ts"],
  },
];
