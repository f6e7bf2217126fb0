import { IdmintError } from "@idmint/core";
import {
  ASK_MS,
  type Asked,
  type AskedClaims,
  type CallArgs,
  type Claim,
  type ClaimsAnswer,
  ClaimTally,
  type HeardClaimant,
  type Hearing,
  lostTag,
  storeUnavailable,
  type TakenClaims,
  withClaims,
} from "@idmint/core/server";
import { otherPeriodsText } from "../../shared/period.ts";
import { isBusy, monotonicMs, type Transaction } from "../file/connection.ts";
import type { Database } from "../file/database.ts";
import { addTag, readTag } from "../tags.ts";

const STANDING = "SELECT nonce, expires_at_ms FROM ask WHERE expires_at_ms > ?";
const LOOKS = "SELECT looks, granting FROM ask WHERE nonce = ?";
const LOOK = "UPDATE ask SET looks = max(looks, ?) WHERE nonce = ?";
const ASK = "INSERT INTO ask (singleton, nonce, expires_at_ms, granting) VALUES (1, ?, ?, ?)";
const NODES = "SELECT id, instance, address, renewals FROM node";
const CLAIMANTS =
  "SELECT id, instance, address, since_ms, whole, pages, spoken FROM claimant ORDER BY id";
// Claims that the row has already are left out.
const CLAIM = `INSERT INTO claim AS c (tag, period, last) SELECT ?1, ?2, ?3
  WHERE NOT EXISTS (SELECT 1 FROM tag WHERE name = ?1 AND coalesce(period_start, '') = ?2 AND floor >= ?3)
  ON CONFLICT (tag, period) DO UPDATE SET last = excluded.last WHERE c.last < excluded.last`;
const SPEAK = `INSERT INTO claimant AS c (id, instance, address, since_ms, whole, pages, spoken) VALUES (?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET pages = max(c.pages, excluded.pages), spoken = max(c.spoken, excluded.spoken),
    since_ms = iif(c.spoken, c.since_ms, excluded.since_ms), whole = iif(c.spoken, c.whole, excluded.whole)`;
const CLAIMS = "SELECT tag, period, last FROM claim ORDER BY tag, period";
const RAISE = "UPDATE tag SET floor = ?, other_periods = ? WHERE name = ?";

/** How long a server that claims waits for the lock of another process. */
const CLAIM_WAIT_MS = 300;

/**
 * What servers claim before an accept (ClaimStore of core).
 *
 * INVARIANT: all of it is written and taken under the write lock of the file, so an accept has all that was answered `heard`. A
 * store that is refused takes it too, and nothing else is written with it. These rows are no part of the sum of rows: what is
 * granted rests on none of them.
 */
function write<T>(
  database: Database,
  deadlineMs: number,
  work: (transaction: Transaction, isRefused: boolean) => T,
): T {
  try {
    return database.write(deadlineMs, (transaction) => work(transaction, false));
  } catch (error) {
    if (!(error instanceof IdmintError) || error.reason !== "STORE_EPOCH_CHANGED") throw error;
    return database.write(deadlineMs, (transaction) => work(transaction, true), {
      fenced: "allow",
    });
  }
}

/** Nonce of the ask that stands. */
export function standingAsk(transaction: Transaction, nowMs: number): string | undefined {
  return transaction.get(STANDING, Math.floor(nowMs))?.["nonce"] as string | undefined;
}

export function askForClaims(
  database: Database,
  deadlineMs: number,
  ...[nonce, forMs]: CallArgs["askForClaims"]
): Asked {
  return write(database, deadlineMs, (transaction, isRefused) => {
    const nowMs = Math.floor(database.now());
    const standing = transaction.get(STANDING, nowMs);
    const leftMs = Number(standing?.["expires_at_ms"] ?? nowMs) - nowMs;
    // Beyond that it was asked before the clock was set back.
    if (leftMs > 0 && leftMs <= 2 * ASK_MS) return { outcome: "busy", forMs: leftMs };
    endAsks(transaction);
    transaction.run(ASK, nonce, nowMs + forMs, isRefused ? 0 : 1);
    return { outcome: "asked", hearing: hearingOf(transaction, "stands") };
  });
}

export function hearClaims(
  database: Database,
  deadlineMs: number,
  ...[nonce, { number, answered }]: CallArgs["hearClaims"]
): Hearing {
  return write(database, deadlineMs, (transaction, isRefused) => {
    const found = standingOf(transaction, nonce, answered, isRefused);
    if (found === "stands") transaction.run(LOOK, number, nonce);
    return hearingOf(transaction, found);
  });
}

function hearingOf(transaction: Transaction, found: Found): Hearing {
  const isStanding = found === "stands";
  return {
    isStanding,
    isEarlier: found === "earlier",
    nodes: transaction.all(NODES).map((row) => ({
      id: String(row["id"]),
      instance: String(row["instance"]),
      address: String(row["address"]),
      renewals: row["renewals"] as bigint,
    })),
    claimants: isStanding ? claimantsOf(transaction) : [],
  };
}

export function claim(
  database: Database,
  deadlineMs: number,
  { nonce, claimant, claims, page, isLast }: CallArgs["claim"][0],
): ClaimsAnswer {
  const { id, instance, address, sinceMs, isWhole } = claimant;
  const who = [id, instance, address, Math.round(sinceMs), isWhole ? 1 : 0] as const;
  try {
    return write(
      database,
      Math.min(deadlineMs, monotonicMs() + CLAIM_WAIT_MS),
      (transaction): ClaimsAnswer => {
        if (!isAsked(transaction, nonce)) return "not-asked";
        for (const { tag, period, last } of claims) transaction.run(CLAIM, tag, period, last);
        transaction.run(SPEAK, ...who, page + 1, isLast ? 1 : 0);
        return "heard";
      },
    );
  } catch (error) {
    if (error instanceof IdmintError && isBusy(error.cause ?? {})) return "busy";
    throw error;
  }
}

export function withdrawAsk(database: Database, deadlineMs: number, nonce: string): void {
  write(database, deadlineMs, (transaction) => {
    if (isAsked(transaction, nonce)) endAsks(transaction);
  });
}

/**
 * Raises rows to what was claimed, and makes rows of names that were lost. To be done when periods have begun, and before all rows
 * are raised by the gap.
 */
export function takeClaims(
  transaction: Transaction,
  { nonce, look, isTrusted }: AskedClaims,
  { nowMs, isRefused }: { readonly nowMs: number; readonly isRefused: boolean },
): TakenClaims {
  if (standingOf(transaction, nonce, look, isRefused) !== "stands") {
    throw storeUnavailable("the claims that were asked for are gone");
  }
  const tally = new ClaimTally();
  let lost = 0;
  const all = transaction.all(CLAIMS) as unknown as readonly Claim[];
  for (const [name, claims] of Map.groupBy(all, ({ tag }) => tag)) {
    const row = readTag(transaction, name);
    if (row === undefined) {
      addTag(transaction, lostTag(name, claims, isTrusted, nowMs));
      lost++;
      continue;
    }
    const { row: claimed, missing } = withClaims(row, claims, isTrusted);
    const others = otherPeriodsText(claimed.otherPeriods ?? []);
    transaction.run(RAISE, claimed.floor, others, name);
    tally.claimed(name, missing);
  }
  return { ...tally.taken, lost, claimants: claimantsOf(transaction) };
}

/** No ask stands any more, whoever began it. */
export function endAsks(transaction: Transaction): void {
  for (const table of ["ask", "claimant", "claim"]) transaction.run(`DELETE FROM ${table}`);
}

function isAsked(transaction: Transaction, nonce: string): boolean {
  return standingOf(transaction, nonce) !== "gone";
}

/** `earlier`: the store went back since it was asked; see Hearing. */
type Found = "earlier" | "gone" | "stands";

function standingOf(
  transaction: Transaction,
  nonce: string,
  answered = 0,
  isRefused = false,
): Found {
  const ask = transaction.get(LOOKS, nonce);
  if (ask === undefined) return "gone";
  const isLost = Number(ask["looks"]) < answered || (isRefused && Number(ask["granting"]) === 1);
  return isLost ? "earlier" : "stands";
}

function claimantsOf(transaction: Transaction): readonly HeardClaimant[] {
  return transaction.all(CLAIMANTS).map((row) => ({
    id: String(row["id"]),
    instance: String(row["instance"]),
    address: String(row["address"]),
    sinceMs: Number(row["since_ms"]),
    isWhole: row["whole"] === 1n,
    pages: Number(row["pages"]),
    hasSpoken: row["spoken"] === 1n,
  }));
}
