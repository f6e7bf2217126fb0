import type { Mutant } from "./mutant.ts";

const rights = "packages/core/src/server/access/rights.ts";
const rightsTests = ["packages/core/test/server/access/rights.model.test.ts"];
const known = "packages/core/src/server/access/known-state.ts";
const knownTests = ["packages/core/test/server/access/known-state.test.ts"];
const keptTests = ["packages/server/test/kept-callers.e2e.test.ts"];
const shell = "packages/server/src/service/access/access.ts";
const shellTests = ["packages/server/test/service/access/access.test.ts"];
const anonymousTests = ["packages/server/test/anonymous.e2e.test.ts"];
const twoTokensTests = ["packages/server/test/two-tokens.e2e.test.ts"];
const accessTests = ["packages/server/test/access.e2e.test.ts"];
const tlsTests = ["packages/server/test/access-tls.e2e.test.ts"];
const needsTests = ["packages/server/test/api/needs.test.ts"];

/** Who may. */
export const accessMutants: readonly Mutant[] = [
  {
    name: "access: a token that was revoked stays in a cache file that cannot be written",
    file: "packages/server/src/service/worker-ids/lease-keeper.ts",
    find: "if (this.#staleSince !== undefined) await this.#empty();",
    replace: "this.#staleSince = undefined;",
    tests: ["packages/server/test/service/lease-keeper-saved.test.ts"],
  },
  {
    name: "access: a cache file that cannot be emptied either is not told of",
    file: "packages/server/src/service/worker-ids/lease-keeper.ts",
    find: "clock.now() - this.#staleSince > STALE_MS",
    replace: "clock.now() < this.#staleSince",
    tests: ["packages/server/test/service/lease-keeper-saved.test.ts"],
  },
  {
    name: "access: a cache file that was emptied is believed",
    file: "packages/server/src/store/kept/lease-file.ts",
    find: "if (isOpen) await held.file?.truncate();",
    replace: "if (!isOpen) await held.file?.truncate();",
    tests: ["packages/server/test/store/lease-file.test.ts"],
  },
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
    name: "access: a server that never read who its callers are is ready",
    file: "packages/server/src/service/access/access.ts",
    find: `if (this.kept === undefined) return false;`,
    replace: ``,
    tests: ["packages/server/test/service/access/access.test.ts"],
    only: "everybody may something",
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
    file: "packages/server/src/store/kept/next-file.ts",
    find: 'open(next, "wx", 0o600)',
    replace: 'open(next, "wx", 0o644)',
    tests: ["packages/server/test/store/lease-file.test.ts"],
  },
  {
    name: "access: a token that was proved outlives its time",
    file: shell,
    find: "isBelieved && times.wallMs < proved.expiresAtMs",
    replace: "isBelieved",
    tests: shellTests,
  },
  {
    name: "access: where nothing is known yet, a token is taken for nothing",
    file: shell,
    find: `if (this.principals === "none") return undefined;`,
    replace: `if (this.principals !== "some") return undefined;`,
    tests: shellTests,
  },
  {
    name: "access: before the first look at the store everybody is let in",
    file: shell,
    find: `if (principals === "none" && anonymous === "at-first") return;`,
    replace: `if (principals !== "some" && anonymous === "at-first") return;`,
    tests: shellTests,
  },
  {
    name: "access: of two roles for one name the last one counts",
    file: rights,
    find: "this.#names.set(tags, (this.#names.get(tags) ?? 0) | bits)",
    replace: "this.#names.set(tags, bits)",
    tests: rightsTests,
  },
  {
    name: "access: strangers who may take ids may do everything",
    file: "packages/server/src/access/callers.ts",
    find: `accessAnonymous === "all" ?`,
    replace: `accessAnonymous !== undefined ?`,
    tests: anonymousTests,
    only: "may take ids of the tags",
  },
  {
    name: "access: a token of Tinyid's is one for all doors",
    file: shell,
    find: "    if (parts === undefined) throw BAD_TOKEN;",
    replace:
      "    const tinyid = this.ofTinyidToken(header.slice(7));\n    if (tinyid !== undefined) return tinyid;\n    if (parts === undefined) throw BAD_TOKEN;",
    tests: anonymousTests,
    only: "known by Tinyid's tokens",
  },
  {
    name: "access: an unknown token of Tinyid's is taken for nothing",
    file: shell,
    find: "this.#options.anonymous instanceof Rights && this.#state.tinyid.size === 0 && !isOurs",
    replace: "this.#options.anonymous instanceof Rights",
    tests: anonymousTests,
    only: "go on when the first token",
  },
  {
    name: "access: tokens of Tinyid's leave a loopback server open",
    file: known,
    find: 'certificates.size > 0 || tinyid.size > 0) return "some";',
    replace: 'certificates.size > 0) return "some";',
    tests: anonymousTests,
    only: "known by Tinyid's tokens",
  },
  {
    name: "access: of two tokens over grpc-js the first one counts",
    file: "packages/server/src/grpc/sessions.ts",
    find: "  return count > 1;",
    replace: "  return count > 2;",
    tests: twoTokensTests,
    only: "grpc-js",
  },
  {
    name: "access: of two tokens at the fast door the last one counts",
    file: "packages/server/src/fast/http2/head.ts",
    find: `this.authorization = this.authorization === undefined ? value : "";`,
    replace: "this.authorization = value;",
    tests: twoTokensTests,
    only: "fast",
  },
  {
    name: "access: of two tokens over HTTP the first one counts",
    file: "packages/server/src/http/speaker.ts",
    find: "  joinDuplicateHeaders: true,\n",
    replace: "",
    tests: twoTokensTests,
    only: "over HTTP",
  },
  {
    name: "access: the first token may not do what runbooks say",
    file: "docs/access.md",
    find: "idmint token create ops --admin '*' --issue '*' --store",
    replace: "idmint token create ops --admin '*' --store",
    tests: ["packages/cli/test/runbooks.e2e.test.ts"],
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
    find: "      if (next !== text) onRead(parse(next));",
    replace:
      "      if (next !== text) onRead(parse(next.startsWith('principals: [') ? 'principals: {}' : next));",
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
