import { randomUUID } from "node:crypto";
import {
  type AuditEvent,
  type Claim,
  type EndedPeriod,
  type HeardClaimant,
  type Issuing,
  NEVER_STOPPED,
  type NodeRow,
  type PlacedLedgerRow,
  type RedisMark,
  type Tag,
  type TokenList,
  type Traffic,
  type Worker,
} from "@idmint/core/server";

const DAY_MS = 86_400_000;

type Access = Required<TokenList> & { readonly tokens: NonNullable<TokenList["tokens"]> };

/** What a MemoryDatabase holds at one moment; `restore` brings it back, as a backup would. */
export interface MemorySnapshot {
  readonly rows: ReadonlyMap<string, Tag>;
  readonly periods: ReadonlyMap<string, readonly EndedPeriod[]>;
  readonly workers: ReadonlyMap<string, readonly Worker[]>;
  readonly nodes: ReadonlyMap<string, NodeRow>;
  readonly traffic: readonly Traffic[];
  readonly marks: ReadonlyMap<string, readonly RedisMark[]>;
  readonly audit: readonly AuditEvent[];
  readonly ledger: readonly StoredLedgerRow[];
  readonly ledgerForgotten: ReadonlyMap<string, bigint>;
  readonly ask: MemoryAsk | undefined;
  readonly revision: bigint;
  readonly issuing: Issuing;
  readonly access: Access;
  readonly incarnation: string;
  readonly acceptedIdentity: string;
  readonly mark: string;
  readonly firstEpoch: bigint;
}

/** Where a MemoryDatabase has its time and its randomness from. Default: the machine. */
export interface MemoryPorts {
  readonly wallClock?: () => number;
  readonly randomToken?: () => string;
}

/** A row of the ledger, and when it was stored. */
export type StoredLedgerRow = PlacedLedgerRow & { readonly storedAtMs: number };

/** An ask for claims. */
export interface MemoryAsk {
  readonly nonce: string;
  readonly expiresAtMs: number;
  /** Whether the store granted when it began. */
  readonly granting: boolean;
  looks: number;
  readonly claimants: Map<string, HeardClaimant>;
  /** The highest of each tag and period. */
  readonly claims: Map<string, Claim>;
}

/** What several MemoryStores of one test share: the rows, and the history they belong to. */
export class MemoryDatabase {
  rows: Map<string, Tag> = new Map();
  /** The ended periods of each tag, newest first. */
  periods: Map<string, readonly EndedPeriod[]> = new Map();
  /** The worker ids of each tag that were ever leased. */
  workers: Map<string, readonly Worker[]> = new Map();
  /** The rows of servers. */
  nodes: Map<string, NodeRow> = new Map();
  /** The ask for claims, and what was claimed for it. */
  ask: MemoryAsk | undefined;
  /** What operators said of servers. */
  traffic: readonly Traffic[] = [];
  /** How far Redis had counted, by tag; the highest generation first. */
  marks: Map<string, readonly RedisMark[]> = new Map();
  /** In the order in which they came. */
  audit: AuditEvent[] = [];
  /** Oldest first. */
  ledger: StoredLedgerRow[] = [];
  ledgerPosition = 0n;
  ledgerForgotten: Map<string, bigint> = new Map();
  revision = 0n;
  issuing: Issuing = NEVER_STOPPED;
  access: Access = { version: "", tokens: [] };
  incarnation = "history-1";
  /** What the store is; a fail-over or a restored file makes it another one. */
  identity = "identity-1";
  acceptedIdentity = "identity-1";
  /** Why the store is refused, as a server wrote it that saw it go back; an accept ends it. Empty: nobody did. */
  mark = "";
  /** Of tags that have no row. */
  firstEpoch = 1n;
  /** Added to the wall clock, so that a test can move it. */
  clockOffsetMs = 0;
  readonly randomToken: () => string;
  readonly #wallClock: () => number;
  #named = 1;

  constructor({ wallClock = Date.now, randomToken = randomUUID }: MemoryPorts = {}) {
    this.#wallClock = wallClock;
    this.randomToken = randomToken;
  }

  now(): number {
    return this.#wallClock() + this.clockOffsetMs;
  }

  snapshot(): MemorySnapshot {
    const rows = new Map(this.rows);
    const periods = new Map(this.periods);
    const workers = new Map(this.workers);
    const nodes = new Map(this.nodes);
    const marks = new Map(this.marks);
    const audit = [...this.audit];
    const ledgerForgotten = new Map(this.ledgerForgotten);
    const ledger = [...this.ledger];
    const ask = copyOf(this.ask);
    const { revision, incarnation, acceptedIdentity, traffic, issuing, access } = this;
    const { firstEpoch, mark } = this;
    const history = {
      revision,
      incarnation,
      acceptedIdentity,
      mark,
      firstEpoch,
      ledger,
      ledgerForgotten,
      ask,
    };
    return { rows, periods, workers, nodes, traffic, issuing, access, marks, audit, ...history };
  }

  /** The rows of then, in the store of now: what a restored backup looks like to a server that kept running. */
  restore(snapshot: MemorySnapshot): void {
    this.rows = new Map(snapshot.rows);
    this.periods = new Map(snapshot.periods);
    this.workers = new Map(snapshot.workers);
    this.nodes = new Map(snapshot.nodes);
    this.traffic = snapshot.traffic;
    this.marks = new Map(snapshot.marks);
    this.audit = [...snapshot.audit];
    this.ledger = [...snapshot.ledger];
    this.ledgerForgotten = new Map(snapshot.ledgerForgotten);
    this.ask = copyOf(snapshot.ask);
    this.revision = snapshot.revision;
    this.issuing = snapshot.issuing;
    this.access = snapshot.access;
    this.incarnation = snapshot.incarnation;
    this.acceptedIdentity = snapshot.acceptedIdentity;
    this.mark = snapshot.mark;
    this.firstEpoch = snapshot.firstEpoch;
  }

  /** Another one in the same state, which goes its own way. */
  clone(): MemoryDatabase {
    const { randomToken, ledgerPosition, identity, clockOffsetMs } = this;
    const other = new MemoryDatabase({ wallClock: this.#wallClock, randomToken });
    other.restore(this.snapshot());
    other.#named = this.#named;
    return Object.assign(other, { ledgerPosition, identity, clockOffsetMs });
  }

  /** Moves the periods of all rows, present and ended, by whole days: as if the clock had gone the other way. */
  shiftPeriods(days: number): void {
    const shifted = (start: string): string =>
      start === "" ? "" : new Date(Date.parse(start) + days * DAY_MS).toISOString().slice(0, 10);
    for (const [name, row] of this.rows) {
      const others = row.otherPeriods?.map((other) => ({ ...other, start: shifted(other.start) }));
      const moved = others === undefined ? {} : { otherPeriods: others };
      this.rows.set(name, { ...row, ...moved, periodStart: shifted(row.periodStart) });
    }
    for (const [name, periods] of this.periods) {
      const moved = periods.map(({ start, lastId, endedAtMs }) => ({
        start: shifted(start),
        lastId,
        endedAtMs: endedAtMs + days * DAY_MS,
      }));
      this.periods.set(name, moved);
    }
  }

  /** Moves what all workers' rows say of time into the past, as if so many milliseconds had gone by. */
  passWorkers(ms: number): void {
    for (const [tag, workers] of this.workers) {
      const moved = workers.map((row) => ({
        ...row,
        reservedUntilMs: row.reservedUntilMs - ms,
        expiresAtMs: row.expiresAtMs - ms,
      }));
      this.workers.set(tag, moved);
    }
  }

  /** One row as it was then; all others stay. */
  restoreRow(snapshot: MemorySnapshot, name: string): void {
    const row = snapshot.rows.get(name);
    if (row === undefined) this.rows.delete(name);
    else this.rows.set(name, row);
  }

  /** Makes the store another one than the accepted: a promoted replica, a copied file. */
  move(): void {
    this.#named++;
    this.identity = `identity-${this.#named}`;
  }

  /** Keeps a mark where none of its generation is kept, or a lower one; of each tag the eight highest generations. */
  keepMark(mark: RedisMark): void {
    const all = this.marks.get(mark.tag) ?? [];
    const same = all.find(({ generation }) => generation === mark.generation);
    if (same !== undefined && same.mark >= mark.mark) return;
    const kept = [mark, ...all.filter((one) => one !== same)];
    kept.sort((a, b) => (a.generation < b.generation ? 1 : -1));
    this.marks.set(mark.tag, kept.slice(0, 8));
  }

  newIncarnation(): void {
    this.#named++;
    this.incarnation = `history-${this.#named}`;
  }
}

function copyOf(ask: MemoryAsk | undefined): MemoryAsk | undefined {
  if (ask === undefined) return undefined;
  return { ...ask, claimants: new Map(ask.claimants), claims: new Map(ask.claims) };
}
