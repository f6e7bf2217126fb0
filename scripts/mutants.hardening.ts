import type { Mutant } from "./mutant.ts";

const grpc = "packages/server/src/grpc";
const waste = ["packages/server/test/grpc/waste-state.model.test.ts"];
const fair = ["packages/testkit/test/fair-reading.e2e.test.ts"];

/** Faults of what keeps hostile callers from taking a server away from the others. */
export const hardeningMutants: readonly Mutant[] = [
  {
    name: "hardening: a connection within its own allowance is held for what others waste",
    file: `${grpc}/waste-state.ts`,
    find: `if (pool.tokens >= 0 || waster.bucket.tokens >= 0 || held.has(waster)) return false;`,
    replace: `if (pool.tokens >= 0 || held.has(waster)) return false;`,
    tests: waste,
  },
  {
    name: "hardening: a connection wastes as much as it likes",
    file: `${grpc}/waste-state.ts`,
    find: `if (pool.tokens >= 0 || waster.bucket.tokens >= 0 || held.has(waster)) return false;`,
    replace: `if (pool.tokens >= -1e6 || waster.bucket.tokens >= 0 || held.has(waster)) return false;`,
    tests: waste,
  },
  {
    name: "hardening: a held connection never goes on",
    file: `${grpc}/waste-state.ts`,
    find: `if (state.pool.tokens <= 0) return undefined;`,
    replace: `if (state.pool.tokens <= state.options.all.burst) return undefined;`,
    tests: waste,
  },
  {
    name: "hardening: the length of a message in crumbs is lost",
    file: `${grpc}/message-bounds.ts`,
    find: `bounds.length * 256 +`,
    replace: `bounds.length +`,
    tests: ["packages/server/test/grpc/message-bounds.test.ts"],
  },
  {
    name: "hardening: calls that are cancelled as they come are begun",
    file: `${grpc}/fair-reading.ts`,
    find: `if (turn === this.#turn && ++reader.unborn === UNBORN) this.#letOthersFirst(reader);`,
    replace: `void turn;`,
    tests: fair,
    only: "cancelled as they come",
  },
  {
    name: "hardening: calls that are cancelled as they come are begun by the fast door",
    file: "packages/server/src/fast/fast-connection.ts",
    find: `isWasteful: () => this.#connection.waitMs > 0,`,
    replace: `isWasteful: () => false,`,
    tests: fair,
    only: "cancelled as they come",
  },
  {
    name: "hardening: calls that are late are forgotten",
    file: "packages/server/src/fast/fast-connection.ts",
    find: `    if (this.#late.size > 0) for (const call of this.#late) call.goOn();`,
    replace: ``,
    tests: fair,
    only: "cancelled as they come",
  },
  {
    name: "hardening: a late call that was cancelled is begun",
    file: "packages/server/src/fast/calls/unary-call.ts",
    find: "      this.#its.late.delete(this);\n      this.#late = undefined;",
    replace: ``,
    tests: fair,
    only: "cancelled as they come",
  },
  {
    name: "hardening: calls are begun for a connection that takes no answers",
    file: `${grpc}/fair-reading.ts`,
    find: `bytes < TURN_BYTES && untaken < most;`,
    replace: `bytes < TURN_BYTES && untaken < most * 1_000;`,
    tests: fair,
    only: "takes no answers",
  },
  {
    name: "hardening: calls that wait for room are forgotten when there is some",
    file: `${grpc}/fair-reading.ts`,
    find: `else if (this.#late.size > 0) this.#openTurn();`,
    replace: ``,
    tests: fair,
    only: "takes no answers",
  },
  {
    name: "hardening: what comes for an unknown method is never read",
    file: `${grpc}/sessions.ts`,
    find: `dropUnread(stream);`,
    replace: ``,
    tests: ["packages/server/test/grpc/unread.test.ts"],
  },
  {
    name: "hardening: a watch of health that does not decode is a fault of the server",
    file: "packages/server/src/api/method.ts",
    find: `method.open(decode(method.request, bytes, path), {`,
    replace: `method.open(method.request.decode(bytes), {`,
    tests: ["packages/server/test/mutated-messages.e2e.test.ts"],
  },
  {
    name: "hardening: the check of a configuration shows its secrets",
    file: "packages/server/src/config/load.ts",
    find: `if (option.isSecret === true) return "(secret)";`,
    replace: ``,
    tests: ["packages/testkit/test/canary.e2e.test.ts"],
    only: "every option",
  },
  {
    name: "hardening: an alarm that was not delivered tells its webhook",
    file: "packages/server/src/alarms/webhook.ts",
    find: "`it cannot be reached (${codeOf(thrown)})`",
    replace: "`${url} cannot be reached (${codeOf(thrown)})`",
    tests: ["packages/testkit/test/canary.e2e.test.ts"],
    only: "every option",
  },
];
