// Who is asked before a MemoryStore is accepted, and what they claim.
import type {
  Asked,
  AskedClaims,
  CallArgs,
  Claim,
  ClaimsAnswer,
  Hearing,
  Look,
  TakenClaims,
} from "@idmint/core/server";
import { ClaimTally, lostTag, storeUnavailable, withClaims } from "@idmint/core/server";
import type { MemoryAsk, MemoryDatabase } from "./database.ts";
import { fenced } from "./rows.ts";

export function askForClaims(
  database: MemoryDatabase,
  ...[nonce, forMs]: CallArgs["askForClaims"]
): Asked {
  const now = database.now();
  const { ask } = database;
  if (ask !== undefined && ask.expiresAtMs > now) {
    return { outcome: "busy", forMs: ask.expiresAtMs - now };
  }
  const expiresAtMs = now + forMs;
  const granting = fenced(database) === "";
  const said = { claimants: new Map(), claims: new Map() };
  database.ask = { nonce, expiresAtMs, granting, looks: 0, ...said };
  return { outcome: "asked", hearing: hearClaims(database, nonce, { number: 0, answered: 0 }) };
}

export function hearClaims(
  database: MemoryDatabase,
  nonce: string,
  { number, answered }: Look,
): Hearing {
  const standing = askOf(database, nonce);
  const isEarlier = standing !== undefined && isLost(database, standing, answered);
  const ask = isEarlier ? undefined : standing;
  if (ask !== undefined) ask.looks = Math.max(ask.looks, number);
  return {
    isStanding: ask !== undefined,
    isEarlier,
    nodes: [...database.nodes.values()],
    claimants: claimantsOf(ask),
  };
}

export function claim(database: MemoryDatabase, ...[said]: CallArgs["claim"]): ClaimsAnswer {
  const { nonce, claimant, claims, page, isLast } = said;
  const ask = askOf(database, nonce);
  if (ask === undefined) return "not-asked";
  for (const one of claims) {
    const row = database.rows.get(one.tag);
    if (row !== undefined && row.periodStart === one.period && row.floor >= one.last) continue;
    const key = `${one.tag} ${one.period}`;
    const known = ask.claims.get(key);
    if (known === undefined || known.last < one.last) ask.claims.set(key, one);
  }
  const known = ask.claimants.get(claimant.id);
  const pages = Math.max(known?.pages ?? 0, page + 1);
  const hasSpoken = isLast || known?.hasSpoken === true;
  const who = known?.hasSpoken === true ? known : claimant;
  ask.claimants.set(claimant.id, { ...who, pages, hasSpoken });
  return "heard";
}

export function withdrawAsk(database: MemoryDatabase, nonce: string): void {
  if (database.ask?.nonce === nonce) database.ask = undefined;
}

/** Raises rows to what was claimed, makes rows of names that were lost, and ends the ask. To be done when periods have begun. */
export function takeClaims(
  database: MemoryDatabase,
  { nonce, look, isTrusted }: AskedClaims,
): TakenClaims {
  const ask = askOf(database, nonce);
  if (ask === undefined || isLost(database, ask, look))
    throw storeUnavailable("the claims that were asked for are gone");
  const byTag = Map.groupBy(ask.claims.values(), ({ tag }) => tag);
  const tally = new ClaimTally();
  const rows = new Map(database.rows);
  const lost = [...byTag].filter(([name]) => !rows.has(name));
  for (const [name, claims] of lost)
    rows.set(name, lostTag(name, claims, isTrusted, database.now()));
  for (const [name, row] of database.rows) {
    const claimed = withClaims(row, byTag.get(name) ?? ([] as Claim[]), isTrusted);
    rows.set(name, claimed.row);
    tally.claimed(name, claimed.missing);
  }
  database.rows = rows;
  return { ...tally.taken, lost: lost.length, claimants: claimantsOf(ask) };
}

/** Whether the store went back since: what was said may lack what was granted after it. */
function isLost(database: MemoryDatabase, ask: MemoryAsk, answered: number): boolean {
  return ask.looks < answered || (ask.granting && fenced(database) !== "");
}

/** The ask that stands, if it is this one; also when its time is over and no other has taken its place. */
function askOf({ ask }: MemoryDatabase, nonce: string): MemoryAsk | undefined {
  return ask?.nonce === nonce ? ask : undefined;
}

function claimantsOf(ask: MemoryAsk | undefined): Hearing["claimants"] {
  return [...(ask?.claimants.values() ?? [])].toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
