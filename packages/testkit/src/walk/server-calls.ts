// The calls about servers, callers and operators that a walk makes.
import type { AuditEvent, Claim, LedgerRow, Worker } from "@idmint/core/server";
import fc from "fast-check";
import { noteOf } from "../store/suite-audit.ts";
import { nodeOf } from "../store/suite-nodes.ts";
import { tokenOf } from "../store/suite-tokens.ts";
import { leaseOf, renewalOf } from "../workers/support.ts";
import { type CallRow, callOf, row } from "./call.ts";
import { day, name, NAMES } from "./tag-calls.ts";
import type { View } from "./view.ts";

const LATER_MS = 2_000_000_000_000;
const word = fc.constantFrom("right", "right", "right", "wrong");
const principal = fc.constantFrom("ops-1", "ops-2");
const server = fc.constantFrom("s1", "s2");

/** The nonce of the ask that stands, or another one. */
function nonceOf({ database }: View, which: string): string {
  return which === "right" ? (database.ask?.nonce ?? "none") : "other";
}

function claimsFrom(
  view: View,
  wanted: readonly { readonly name: string; readonly day: number; readonly last: bigint }[],
): readonly Claim[] {
  const claims = wanted.flatMap(({ name: tag, day: on, last }) => {
    const kind = view.row(tag)?.kind;
    // Of names that the store does not know the suite tries what becomes.
    if (kind === undefined) return [];
    const isDaily = kind.kind === "sequence" && kind.periods !== undefined;
    return [{ tag, period: isDaily ? view.startOf(on) : "", last }];
  });
  return [...new Map(claims.map((one) => [`${one.tag} ${one.period}`, one])).values()];
}

function workerOf({ database }: View, tag: string, which: number): Worker | undefined {
  return database.workers.get(tag)?.[which];
}

function tokenFor(worker: Worker | undefined, which: string): bigint {
  const right = worker?.token ?? 1n;
  return which === "right" ? right : right + 1n;
}

const worker = { tag: name, which: fc.nat(3), token: word };

export const SERVER_CALLS: Readonly<Record<string, CallRow>> = {
  poll: row(
    2,
    fc.record({ since: fc.constantFrom(0n, 0n, 5n, 40n), nodes: fc.boolean(), seen: word }),
    (view, { since, nodes, seen }) => {
      // A server that has seen more than there is marks the store; that is a going back, which a walk makes itself.
      const which = seen === "right" ? "right" : "ahead";
      const watched = NAMES.map((tag) => ({ tag, version: view.versionOf(tag, which) }));
      return callOf("changes", { since, watched, limit: 100, nodes });
    },
  ),
  renew: row(3, fc.record({ obeyed: fc.bigInt(0n, 3n) }), (view, { obeyed }, handle) => {
    const said = { incarnation: view.incarnation, obeyed, traffic: 0n, isProved: true };
    const renewal = { ...said, node: nodeOf(`n${handle}`), count: BigInt(view.next()) };
    return callOf("changes", { since: 0n, watched: [], limit: 100, nodes: true, renewal });
  }),
  forgetNodes: row(1, fc.record({ id: fc.constantFrom("n0", "n1", "x") }), (view, { id }) =>
    callOf("forgetNodes", [{ part: "", id, renewals: undefined }], view.by()),
  ),
  setTraffic: row(
    2,
    fc.record({
      server,
      weight: fc.constantFrom(0, 100, 1_000, 1_001),
      isDraining: fc.boolean(),
      revision: fc.bigInt(0n, 6n),
    }),
    (view, wanted) => callOf("setTraffic", wanted, view.by()),
  ),
  setIssuing: row(
    2,
    fc.record({ isStopped: fc.boolean(), validateOnly: fc.constantFrom(false, false, true) }),
    (view, { isStopped, validateOnly }) =>
      callOf("setIssuing", isStopped, { validateOnly, by: view.by() }),
  ),
  accept: row(
    1,
    fc.record({
      gap: fc.constantFrom(0n, 1n, 1_000n, 9_223_372_036_854_775_807n, -1n),
      maxOfflineMs: fc.constantFrom(undefined, null, 5_000),
      asked: fc.constantFrom("none", "right", "right", "wrong"),
      look: fc.constantFrom(0, 0, 1),
      isTrusted: fc.constantFrom(true, true, false),
    }),
    (view, { gap, maxOfflineMs, asked, look, isTrusted }) => {
      const its = { nonce: nonceOf(view, asked), look, isTrusted };
      return callOf(
        "accept",
        gap,
        maxOfflineMs,
        view.by(),
        false,
        asked === "none" ? undefined : its,
      );
    },
  ),
  askForClaims: row(2, fc.constant(undefined), (view) =>
    callOf("askForClaims", `ask-${view.next()}`, 60_000),
  ),
  claim: row(
    3,
    fc.record({
      nonce: word,
      id: fc.constantFrom("x", "y"),
      page: fc.nat(1),
      isLast: fc.boolean(),
      claims: fc.array(fc.record({ name, day, last: fc.constantFrom(1n, 30n, 70n, 2n ** 41n) }), {
        maxLength: 3,
      }),
    }),
    (view, { nonce, id, claims, ...page }) => {
      const claimant = { id, instance: id, address: "", sinceMs: 1, isWhole: true };
      const said = { nonce: nonceOf(view, nonce), claimant, ...page };
      return callOf("claim", { ...said, claims: claimsFrom(view, claims) });
    },
  ),
  hearClaims: row(
    1,
    fc.record({ nonce: word, number: fc.nat(2), answered: fc.nat(1) }),
    (view, { nonce, ...look }) => callOf("hearClaims", nonceOf(view, nonce), look),
  ),
  withdrawAsk: row(1, word, (view, nonce) => callOf("withdrawAsk", nonceOf(view, nonce))),
  addToken: row(1, fc.record({ id: fc.constantFrom("aa", "bb", "cc"), principal }), (view, more) =>
    callOf("addToken", tokenOf(more.id, { principal: more.principal }), view.by()),
  ),
  removeToken: row(1, fc.constantFrom("aa", "bb", "dd"), (view, id) =>
    callOf("removeToken", id, view.by()),
  ),
  readTokens: row(1, fc.boolean(), ({ listVersion }, isKnown) =>
    callOf("readTokens", isKnown && listVersion !== "" ? listVersion : undefined),
  ),
  recordLedger: row(
    2,
    fc.record({
      tag: name,
      entry: fc.constantFrom<LedgerRow["entry"]>("grant", "allocation", "release"),
      firstId: fc.bigInt(-1n, 50n),
      ids: fc.bigInt(0n, 20n),
      keepForMs: fc.constantFrom(1_000_000, 1_000_000, 1_000_000, -60_000),
    }),
    (view, { tag, entry, firstId, ids, keepForMs }) => {
      const its = view.row(tag);
      const of = { entry, tag, firstId, lastId: firstId + ids, version: its?.version ?? 0n };
      const who = { nodeId: "n", server: "host:7600", instance: "i", principal: "" };
      const epoch = its?.epoch ?? 0n;
      const rows = [{ ...of, ...who, epoch, sequence: BigInt(view.next()), atMs: 5_000 }];
      return callOf("recordLedger", rows, { keepForMs, maxRows: 1_000_000 });
    },
  ),
  findInLedger: row(1, fc.record({ tag: name, id: fc.bigInt(0n, 60n) }), (_, query) =>
    callOf("findInLedger", query),
  ),
  listLedger: row(1, name, (_, tag) =>
    callOf("listLedger", { tag, after: undefined, limit: 10_000 }),
  ),
  recordAudit: row(
    2,
    fc.record({
      atMs: fc.constantFrom(1_000, 1_000, 2_000, 3_000),
      principal,
      isOld: fc.boolean(),
    }),
    (view, { atMs, isOld, principal: who }) => {
      // One that is there already stays as it is.
      const id = isOld ? "r1" : `r${view.next()}`;
      const told = { resource: "tag/a", outcome: "PERMISSION_DENIED", before: "", after: "" };
      const its = {
        ...noteOf(id, isOld ? {} : { principal: who }),
        kind: "refusal",
        atMs,
        ...told,
      } as const;
      return callOf("recordAudit", [{ ...its, omitted: 0 } satisfies AuditEvent]);
    },
  ),
  listAudit: row(
    1,
    fc.record({
      beforeMs: fc.constantFrom(0, 2_000, 2_500),
      sinceMs: fc.nat(2_000),
      limit: fc.nat(4),
    }),
    (_, { beforeMs, sinceMs, limit }) => {
      const before = beforeMs === 0 ? undefined : { atMs: beforeMs, id: "r1" };
      return callOf("listAudit", { kind: "refusal", before, sinceMs, limit });
    },
  ),
  trimAudit: row(
    1,
    fc.record({
      kind: fc.constantFrom("refusal" as const, "refusal" as const, "change" as const),
      beforeMs: fc.constantFrom(0, 2_000, 2_500),
      keep: fc.nat(5),
      limit: fc.constantFrom(1, 2, 100),
    }),
    (_, { kind, beforeMs, keep, limit }) =>
      // Of changes the store says the time, so who comes first of two is not told by a walk: all of them, or none.
      kind === "refusal"
        ? callOf("trimAudit", { kind, beforeMs, keep, limit })
        : callOf("trimAudit", {
            kind,
            beforeMs: keep === 0 ? LATER_MS : 0,
            keep: 99_999,
            limit: 9_999,
          }),
  ),
  leaseWorker: row(
    5,
    fc.record({
      tag: name,
      instance: fc.constantFrom("a", "b", "c", "d", "e"),
      dataCenter: fc.constantFrom(undefined, 0, 0, 3),
      reserveAheadMs: fc.constantFrom(1_000, 3_000, 60_000, 999),
      epoch: fc.constantFrom("none", "none", "right", "wrong"),
    }),
    (view, { instance, epoch: which, ...more }) => {
      const right = view.row(more.tag)?.epoch ?? 1n;
      const epoch = { none: undefined, right, wrong: right + 1n }[which];
      return callOf("leaseWorker", leaseOf(instance, { ...more, epoch }));
    },
  ),
  renewWorker: row(
    4,
    fc.record({
      ...worker,
      isNext: fc.constantFrom(false, false, true),
      aheadMs: fc.constantFrom(0, -20_000, 3_000, 12_000, 80_000),
    }),
    (view, { tag, which, token, isNext, aheadMs }) => {
      const its = workerOf(view, tag, which);
      const { dataCenter = 0, workerId = which, extension = 0 } = its ?? {};
      const nowMs = Date.now();
      const key = { dataCenter, workerId, token: tokenFor(its, token), nowMs };
      const reserveUntilMs = aheadMs === 0 ? 0 : nowMs + aheadMs;
      const next = extension + (isNext ? 1 : 0);
      return callOf("renewWorker", {
        ...renewalOf({ ...key, extension: next }),
        tag,
        reserveUntilMs,
      });
    },
  ),
  releaseWorker: row(1, fc.record(worker), (view, { tag, which, token }) => {
    const its = workerOf(view, tag, which);
    const { dataCenter = 0, workerId = which } = its ?? {};
    return callOf("releaseWorker", { tag, dataCenter, workerId, token: tokenFor(its, token) });
  }),
  listWorkers: row(
    1,
    fc.record({ tag: name, isPart: fc.boolean(), limit: fc.constantFrom(1, 100) }),
    (_, { tag, isPart, limit }) => {
      const after = isPart ? { dataCenter: 0, workerId: 0 } : undefined;
      return callOf("listWorkers", { tag, after, limit });
    },
  ),
};
