import type { Mutant } from "./mutant.ts";

const rights = "packages/core/src/server/access/rights.ts";
const rightsTests = ["packages/core/test/server/access/rights.model.test.ts"];
const known = "packages/core/src/server/access/known-state.ts";
const knownTests = ["packages/core/test/server/access/known-state.test.ts"];
const keptTests = ["packages/server/test/kept-callers.e2e.test.ts"];
const accessTests = ["packages/server/test/access.e2e.test.ts"];
const tlsTests = ["packages/server/test/access-tls.e2e.test.ts"];
const needsTests = ["packages/server/test/api/needs.test.ts"];

/** Who may. */
export const accessMutants: readonly Mutant[] = [
  {
    name: "access: the right for one name is one for all that begin like it",
    file: rights,
    find: "    for (const { prefix, bits } of this.#prefixes) if (beginning.startsWith(prefix)) held |= bits;",
    replace:
      "    for (const { prefix, bits } of this.#prefixes) if (beginning.startsWith(prefix)) held |= bits;\n    for (const [name, bits] of this.#names) if (beginning.startsWith(name)) held |= bits;",
    tests: rightsTests,
  },
  {
    name: "access: rights for the beginning of a list count for a part of it",
    file: rights,
    find: "beginning.startsWith(prefix)) held",
    replace: "beginning.startsWith(prefix) || prefix.startsWith(beginning)) held",
    tests: rightsTests,
  },
  {
    name: "access: a row that forgets its tag is for whoever has the role anywhere",
    file: "packages/server/src/api/need.ts",
    find: "{ ...need, isBeginning: true, about: ALL_TAGS }",
    replace: "{ ...need, roles: 0, about: ALL_TAGS }",
    tests: needsTests,
  },
  {
    name: "access: whoever may look at a tag may advance it",
    file: "packages/server/src/api/tag-service.ts",
    find: "      response: AdvanceTagResponse,\n      need: NEEDS.admin,",
    replace: "      response: AdvanceTagResponse,\n      need: NEEDS.observe,",
    tests: needsTests,
  },
  {
    name: "access: servers do not hear of a token that was revoked",
    file: "packages/server/src/store/sqlite/records/tokens.ts",
    find: "    if (row === undefined) return false;\n    transaction.run(CHANGE, randomUUID());",
    replace: "    if (row === undefined) return false;",
    tests: ["packages/server/test/store/sqlite.test.ts"],
  },
  {
    name: "access: a server that is cut off believes its tokens for ever",
    file: known,
    find: "maxOfflineMs === undefined ? Infinity : sentAt + maxOfflineMs",
    replace: "maxOfflineMs === undefined ? Infinity : sentAt + maxOfflineMs * 1e9",
    tests: knownTests,
  },
  {
    name: "access: a restart makes a list of callers last longer",
    file: known,
    find: "  state.ofStore = tokens;\n  state.believedUntil = believedUntil;",
    replace: "  state.ofStore = tokens;\n  state.believedUntil = believedUntil + 60_000;",
    tests: knownTests,
  },
  {
    name: "access: an old cache file says that there are no principals",
    file: known,
    find: "version !== undefined || clock.now() <= believedUntil",
    replace: "version !== undefined || believedUntil > -Infinity",
    tests: knownTests,
  },
  {
    name: "access: a token is answered before a next run of the server would know it",
    file: "packages/server/src/service/access/access.ts",
    find: "      await within(async () => saved?.(), LOOK_MS, timers);",
    replace: "",
    tests: keptTests,
    only: "first token",
  },
  {
    name: "access: a server that can let in nobody is ready",
    file: "packages/server/src/service/node.ts",
    find: "admission.isLasting || !access.knowsCallers) return",
    replace: "admission.isLasting) return",
    tests: keptTests,
    only: "knows nobody",
  },
  {
    name: "access: hashes of tokens can be read by others",
    file: "packages/server/src/store/kept/lease-file.ts",
    find: "    await file.chmod(0o600);\n",
    replace: "",
    tests: ["packages/server/test/store/lease-file.test.ts"],
  },
  {
    name: "access: a token outlives its time",
    file: known,
    find: "  return token.expiresAtMs <= wallMs ?",
    replace: "  return token.expiresAtMs + 1 <= wallMs ?",
    tests: knownTests,
  },
  {
    name: "access: a certificate of two principals is one of the first",
    file: known,
    find: "  return found.size === 1 ? only : undefined;",
    replace: "  return only;",
    tests: knownTests,
  },
  {
    name: "access: a stream outlives its token",
    file: "packages/server/src/grpc/door.ts",
    find: "    for (const [stream, context] of this.#streams) this.#recheck(stream, context);",
    replace: "",
    tests: accessTests,
  },
  {
    name: "access: a secret is not compared",
    file: "packages/server/src/service/access/access.ts",
    find: "    if (!timingSafeEqual(",
    replace: "    if (false && !timingSafeEqual(",
    tests: accessTests,
  },
  {
    name: "access: TLS 1.2 is spoken once the certificates changed",
    file: "packages/server/src/grpc/credentials.ts",
    find: '["_getConstructorOptions", "calculateSecureContextOptions"] as const',
    replace: '["_getConstructorOptions"] as const',
    tests: tlsTests,
  },
  {
    name: "access: a certificate is read again by a file that is wrong",
    file: "packages/server/src/access/file.ts",
    find: "      if (next !== text) onChange(parseAccess(next));",
    replace:
      "      if (next !== text) onChange(parseAccess(next.startsWith('principals: [') ? 'principals: {}' : next));",
    tests: tlsTests,
  },
  {
    name: "access: the SDK sends its token to other machines in plain text",
    file: "packages/client/src/options.ts",
    find: "!addresses.every(isOnThisMachine)",
    replace: "!addresses.some(isOnThisMachine)",
    tests: ["packages/client/test/options.test.ts"],
  },
];
