import type { Clock, IdmintError, Timers } from "@idmint/core";
import {
  type AuditEvent,
  type AuditKind,
  type AuditNote,
  type AuditStore,
  MAX_AUDIT_BATCH,
} from "@idmint/core/server";
import type { CallContext } from "../call.ts";
import type { Emit } from "../events.ts";
import {
  createRefusalsState,
  hasUntold,
  minuteOver,
  putBack,
  type RefusalsState,
  sawRefusal,
  takeWaiting,
} from "./refusals-state.ts";

export interface AuditPorts {
  readonly store: AuditStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly wallClock: () => number;
  readonly random: () => number;
  readonly randomToken: () => string;
  readonly emit: Emit;
  /** Instance of this server. */
  readonly server: string;
}

export interface AuditLimits {
  readonly keepMs: number;
  /** Most rows of changes, and of refusals. */
  readonly maxRows: number;
}

/** How often what waits is written and told. */
const FLUSH_MS = 1_000;
/** How often old rows are removed, by each server, and how soon after its start at the latest. */
const TRIM_MS = 600_000;
const FIRST_TRIM_MS = 60_000;
/** Rows that one call removes, and most calls in a row; where that was not enough, it goes on so much later. */
const TRIM_ROWS = 1_000;
const MAX_TRIMS = 100;
const MORE_TRIMS_MS = 1_000;
/** Most changes that wait to be told to the log; the store has their rows all the same. */
const MAX_UNTOLD = 1_000;
/** Rows that are read to find those of the changes. */
const READ_ROWS = 1_000;
/** How long rows of changes are looked for, and how far the store's clock may be off. */
const LOOK_FOR_MS = 60_000;
const CLOCK_MARGIN_MS = 3_600_000;
/** Longest text that a caller chose, in a row of a refusal. */
const MAX_NAME = 160;

interface Untold {
  readonly by: AuditNote;
  readonly at: number;
}

/**
 * What this server tells the audit trail. The store writes the rows of changes together with the changes. This writes those
 * of refusals, tells the log of both, and removes what is old.
 *
 * INVARIANT: from `start` to `stop`, while something is to be written or told, a flush is due or under way. An idle server does not
 * wake up for its trail.
 */
export class AuditTrail {
  readonly #ports: AuditPorts;
  readonly #limits: AuditLimits;
  readonly #refusals: RefusalsState;
  readonly #untold = new Map<string, Untold>();
  #isRunning = false;
  #isDue = false;
  #cancelFlush: (() => void) | undefined;
  #cancelTrim: (() => void) | undefined;
  #flushing: Promise<void> | undefined;

  constructor(ports: AuditPorts, limits: AuditLimits) {
    this.#ports = ports;
    this.#limits = limits;
    this.#refusals = createRefusalsState(ports.clock.now());
  }

  start(): void {
    this.#isRunning = true;
    this.#flushLater();
    this.#trimLater(this.#ports.random() * FIRST_TRIM_MS);
  }

  #flushLater(): void {
    if (!this.#isRunning || this.#isDue) return;
    this.#isDue = true;
    this.#cancelFlush = this.#ports.timers.after(FLUSH_MS, () => void this.#turn());
  }

  async #turn(): Promise<void> {
    await this.flush();
    this.#isDue = false;
    if (this.#untold.size > 0 || hasUntold(this.#refusals)) this.#flushLater();
  }

  #trimLater(afterMs: number): void {
    this.#cancelTrim = this.#ports.timers.after(afterMs, () => void this.#trimTurn());
  }

  async #trimTurn(): Promise<void> {
    const nextMs = await this.#trim();
    if (this.#isRunning) this.#trimLater(nextMs);
  }

  /** Writes what waits once more, and ends. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#cancelFlush?.();
    this.#cancelTrim?.();
    minuteOver(this.#refusals, Infinity);
    await this.#flushing;
    await this.flush();
  }

  /** The note of a call that may change something. */
  noteOf(context: CallContext, method: string): AuditNote {
    const { randomToken, server } = this.#ports;
    const { peer } = context;
    const principal = provedBy(context);
    const who = { principal: principal?.name ?? "", proof: principal?.proof ?? "" };
    return { id: randomToken(), ...who, peer, method, server };
  }

  /** The note of what this server changes by itself, as it was configured to. */
  ownNote(method: string): AuditNote {
    const { randomToken, server } = this.#ports;
    return { id: randomToken(), principal: "", proof: "", peer: "", method, server };
  }

  /** A call with this note has ended, whatever became of it. What it changed has a row, which the log is told. */
  ended(by: AuditNote): void {
    if (this.#untold.size >= MAX_UNTOLD) return;
    this.#untold.set(by.id, { by, at: this.#ports.clock.now() });
    this.#flushLater();
  }

  /** Somebody was not allowed to do something. */
  refused(context: CallContext, method: string, resource: string, error: IdmintError): void {
    const { clock, wallClock } = this.#ports;
    const note = this.noteOf(context, method);
    const what = { resource: resource.slice(0, MAX_NAME), outcome: error.reason };
    const texts = { before: "", after: "", omitted: 0 };
    const event = { ...note, kind: "refusal", atMs: wallClock(), ...what, ...texts } as const;
    sawRefusal(this.#refusals, context.caller, event, clock.now());
    this.#flushLater();
  }

  /** Writes and tells what waits. Never rejects. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #flush(): Promise<void> {
    minuteOver(this.#refusals, this.#ports.clock.now());
    await this.#writeRefusals();
    await this.#tellChanges();
  }

  async #writeRefusals(): Promise<void> {
    const { store, emit } = this.#ports;
    for (;;) {
      const events = takeWaiting(this.#refusals, MAX_AUDIT_BATCH);
      if (events.length === 0) return;
      try {
        // One batch after the other, so that the store has other work in between.
        await store.recordAudit(events);
        for (const event of events) emit({ type: "audit", event });
      } catch {
        putBack(this.#refusals, events);
        return;
      }
    }
  }

  /** Reads the rows of what was changed here: what differed stands in them, and nothing is told that was not done. */
  async #tellChanges(): Promise<void> {
    if (this.#untold.size === 0) return;
    const { store, emit, clock, wallClock } = this.#ports;
    const asked = [...this.#untold.values()];
    const age = clock.now() - Math.min(...asked.map(({ at }) => at));
    const sinceMs = Math.max(0, Math.floor(wallClock() - age - CLOCK_MARGIN_MS));
    let rows: readonly AuditEvent[];
    try {
      rows = await store.listAudit({
        kind: "change",
        before: undefined,
        sinceMs,
        limit: READ_ROWS,
      });
    } catch {
      for (const { by, at } of asked) {
        if (clock.now() - at > LOOK_FOR_MS) this.#untold.delete(by.id);
      }
      return;
    }
    for (const event of rows.toReversed()) {
      if (this.#untold.delete(event.id)) emit({ type: "audit", event });
    }
    // Those without a row changed nothing.
    for (const { by } of asked) this.#untold.delete(by.id);
  }

  /** Answers when to go on, so that what comes faster than it goes in one round does not pile up. */
  async #trim(): Promise<number> {
    const changes = await this.#trimKind("change");
    const refusals = await this.#trimKind("refusal");
    return changes === "done" && refusals === "done" ? TRIM_MS : MORE_TRIMS_MS;
  }

  async #trimKind(kind: AuditKind): Promise<"done" | "more"> {
    const { store, wallClock } = this.#ports;
    const { keepMs, maxRows: keep } = this.#limits;
    const query = { kind, beforeMs: Math.floor(wallClock() - keepMs), keep, limit: TRIM_ROWS };
    try {
      for (let calls = 0; calls < MAX_TRIMS; calls++) {
        if ((await store.trimAudit(query)) < TRIM_ROWS) return "done";
      }
      return "more";
    } catch {
      // The next time goes on with it, and so does every other server.
      return "done";
    }
  }
}

/** Undefined also where what a caller shows is wrong: then that is what it is refused for. */
function provedBy(context: CallContext): CallContext["principal"] {
  try {
    return context.principal;
  } catch {
    return undefined;
  }
}
