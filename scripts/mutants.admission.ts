import type { Mutant } from "./mutant.ts";

const states = "packages/core/src/server/admission";
const admission = "packages/server/src/service/admission/admission.ts";
const quotas = ["packages/core/test/server/admission/quota.model.test.ts"];
const overload = ["packages/core/test/server/admission/overload.model.test.ts"];
const held = ["packages/core/test/server/admission/held.model.test.ts"];
const waiting = ["packages/core/test/server/admission/waiting.test.ts"];
const shell = ["packages/server/test/service/admission/admission.test.ts"];
const adminQuotas = ["packages/server/test/admin-quotas.e2e.test.ts"];
const calls = ["packages/server/test/admission.e2e.test.ts"];

/** Faults of admission: quotas, overload, and refusals that wait. */
export const admissionMutants: readonly Mutant[] = [
  {
    name: "admission: a call is admitted on a debt",
    file: `${states}/bucket.ts`,
    find: `return tokens >= 1 - ROUNDING ? 0`,
    replace: `return tokens >= 1 - ROUNDING || tokens < -1_000 ? 0`,
    tests: quotas,
  },
  {
    name: "admission: a segment above the burst is stuck for ever",
    file: `${states}/quota-state.ts`,
    find: `if (count > Math.max(1, most)) {`,
    replace: `if (count > fill.burst) {`,
    tests: quotas,
  },
  {
    name: "admission: a call that is refused by one quota is charged to the others",
    file: `${states}/quota-state.ts`,
    find: `  if (refusal !== undefined) return refusal;
  // Invariant 1.`,
    replace: `  // Invariant 1.`,
    tests: quotas,
  },
  {
    name: "admission: each server admits the whole quota",
    file: `${states}/quota-state.ts`,
    find: `const perMs = rate / servers / 1_000;`,
    replace: `const perMs = rate / Math.min(1, servers) / 1_000;`,
    tests: quotas,
  },
  {
    name: "admission: a server does not know how many share a quota",
    file: "packages/server/src/main/running.ts",
    find: `services.poll.reachable ? services.nodes.live : undefined`,
    replace: `services.poll.reachable ? 1 : undefined`,
    tests: calls,
    only: "two servers",
  },
  {
    name: "admission: a bucket in debt is forgotten, and its debt with it",
    file: `${states}/quota-state.ts`,
    find: `if (isFull(bucket, fill)) table`,
    replace: `if (isFull(bucket, fill) || bucket.tokens < 0) table`,
    tests: quotas,
  },
  {
    name: "admission: newcomers beyond the limit have a bucket each",
    file: `${states}/quota-state.ts`,
    find: `const isKept = buckets.size < max && subject`,
    replace: `const isKept = buckets.size < max + 1_000 && subject`,
    tests: quotas,
  },
  {
    name: "admission: what is given back fills a bucket beyond its burst",
    file: `${states}/bucket.ts`,
    find: `Math.min(burst, bucket.tokens + passedMs * perMs)`,
    replace: `Math.max(Math.min(burst, bucket.tokens + passedMs * perMs), bucket.tokens)`,
    tests: quotas,
  },
  {
    name: "admission: callers share one bucket",
    file: `${states}/quota-state.ts`,
    find: `const name = isKept ? subject : OTHERS;`,
    replace: `const name = OTHERS;`,
    tests: quotas,
  },
  {
    name: "admission: a clock that went back fills buckets when it comes back",
    file: `${states}/bucket.ts`,
    find: `bucket.at = Math.max(bucket.at, now);`,
    replace: `bucket.at = now;`,
    tests: quotas,
  },
  {
    name: "admission: a clock that goes back takes what a bucket has",
    file: `${states}/bucket.ts`,
    find: `Math.max(0, now - bucket.at)`,
    replace: `now - bucket.at`,
    tests: quotas,
  },
  {
    name: "admission: who administers some tags may make as many as they like",
    file: "packages/server/src/api/tag-service.ts",
    find: `tagsMade: ({ validateOnly }) => (validateOnly ? 0 : 1),`,
    replace: `tagsMade: () => 0,`,
    tests: adminQuotas,
  },
  {
    name: "admission: calls of administrators are not counted",
    file: admission,
    find: `const isOfAll = (principal.rights.under("") & ADMIN) !== 0;`,
    replace: `const isOfAll = true;`,
    tests: adminQuotas,
    only: "some tags",
  },
  {
    name: "admission: a quota keeps an operator from stopping something",
    file: admission,
    find: `if (isOfAll && isBrake) return undefined;`,
    replace: ``,
    tests: adminQuotas,
    only: "never refused",
  },
  {
    name: "admission: the quota of tenants is one of operators",
    file: admission,
    find: `isByNameOnly: isOfAll };`,
    replace: `isByNameOnly: false };`,
    tests: adminQuotas,
    only: "some tags",
  },
  {
    name: "admission: in an overload whoever comes first gets all",
    file: `${states}/overload-state.ts`,
    find: `if (share.credit >= 1) share.credit--;`,
    replace: `if (share.credit >= 1_000) share.credit--;`,
    tests: overload,
  },
  {
    name: "admission: a caller saves up its share for ever",
    file: `${states}/overload-state.ts`,
    find: `const most = Math.max(1, SAVED_MS * perMs);`,
    replace: `const most = Math.max(1, 1e6 * perMs);`,
    tests: overload,
  },
  {
    name: "admission: an overload is over as soon as enough is refused",
    file: `${states}/overload-state.ts`,
    find: `const waiting = calls + turn.held;`,
    replace: `const waiting = admitted;`,
    tests: overload,
  },
  {
    name: "admission: one long turn is an overload",
    file: `${states}/overload-state.ts`,
    find: `const MIN_FULL_TURNS = 2;`,
    replace: `const MIN_FULL_TURNS = 1;`,
    tests: overload,
  },
  {
    name: "admission: a refusal is held beyond its caller's deadline",
    file: `${states}/held-state.ts`,
    find: `slotOf(Math.min(until, latest))`,
    replace: `slotOf(latest)`,
    tests: held,
  },
  {
    name: "admission: refusals are answered as fast as they come",
    file: `${states}/held-state.ts`,
    find: `if (state.allowance < 1 && state.first > present) break;`,
    replace: `if (state.count < 0) break;`,
    tests: held,
  },
  {
    name: "admission: one caller may fill the server with calls that wait",
    file: `${states}/waiting-state.ts`,
    find: `return (callers.get(caller) ?? 0) < limit / 2 / Math.max(1, callers.size);`,
    replace: `return true;`,
    tests: waiting,
  },
  {
    name: "admission: ids that a call did not get stay charged",
    file: admission,
    find: `      onRefused?.();
      throw thrown;`,
    replace: `      throw thrown;`,
    tests: shell,
  },
  {
    name: "admission: the storm of one caller takes a server away from all",
    file: admission,
    find: `return since !== undefined && isWide &&`,
    replace: `return since !== undefined &&`,
    tests: shell,
  },
  {
    name: "admission: refusals of quotas that are held look like an overload",
    file: "packages/server/src/service/admission/held.ts",
    find: `const shed = error.reason === "OVERLOADED" ? 1 : 0;`,
    replace: `const shed = 1;`,
    tests: shell,
  },
  {
    name: "admission: requests of a stream escape the quotas",
    file: "packages/server/src/api/method.ts",
    find: `const counts = counted((request: Request) => opened(request), method.cost, ports.admission);`,
    replace: `const counts = (request: Request, _context: CallContext) => opened(request);`,
    tests: calls,
    only: "long-lived stream",
  },
  {
    name: "admission: a refused request of a stream does not name its tag for the next one",
    file: "packages/server/src/api/id-service.ts",
    find: `    last = tag;
    return request;`,
    replace: `    last ||= tag;
    return request;`,
    tests: calls,
    only: "names a tag",
  },
  {
    name: "admission: a short turn between long ones hides an overload",
    file: `${states}/overload-state.ts`,
    find: `if (endedAt - busyMs - state.longUntil >= calmMs) forgetLong(state);`,
    replace: `if (waiting < calls * SHARE_OF_TURN) forgetLong(state);`,
    tests: overload,
  },
  {
    name: "admission: bursts with time between them are an overload",
    file: `${states}/overload-state.ts`,
    find: `if (state.longIdleMs > lastedMs * IDLE_SHARE) {`,
    replace: `if (state.longIdleMs > lastedMs) {`,
    tests: overload,
  },
  {
    name: "admission: a narrow caller becomes wide while it is refused",
    file: `${states}/stream-limits-state.ts`,
    find: `const isBusy = held > 0 || inFlight * 2 >= NARROW_STREAMS;`,
    replace: `const isBusy = inFlight * 2 >= NARROW_STREAMS;`,
    tests: ["packages/core/test/server/admission/stream-limits.model.test.ts"],
  },
  {
    name: "admission: calls in flight are not seen",
    file: "packages/server/src/grpc/limited-session.ts",
    find: `return inFlight;`,
    replace: `return 0;`,
    tests: ["packages/server/test/grpc/stream-limits.test.ts"],
  },
  {
    name: "admission: what piled up keeps new calls of a narrow connection from coming",
    file: "packages/server/src/service/admission/held.ts",
    find: `return pile * 2 > this.#state.count;`,
    replace: `return false;`,
    tests: shell,
  },
  {
    name: "admission: a limit falls while calls may be on their way",
    file: "packages/server/src/doors/stream-limits.ts",
    find: `else if (connection.its.inFlight >= connection.limit) {`,
    replace: `else if (connection.its.inFlight > 0) {`,
    tests: ["packages/server/test/grpc/stream-limits.test.ts"],
  },
  {
    name: "admission: quotas are of addresses, whoever the callers are",
    file: "packages/server/src/service/admission/admission.ts",
    find: `caller: call.principal?.name ?? call.caller`,
    replace: `caller: call.caller`,
    tests: ["packages/server/test/access.e2e.test.ts"],
    only: "a quota is of the principal",
  },
];
