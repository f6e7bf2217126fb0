import { type Clock, IdmintError } from "@idmint/core";
import {
  type Acknowledged,
  type Claimant,
  createNewcomerState,
  createPresenceState,
  type EarlierLife,
  type EarlierRow,
  isProved,
  isProvedIn,
  isWaiting,
  issueUntil,
  newcomerSaw,
  type NodeInfo,
  type NodeRenewal,
  pollObeyed,
  type PresenceState,
  renewalAcknowledged,
  resumePresence,
  type StorePart,
} from "@idmint/core/server";
import type { Emit } from "./events.ts";

/** How far a history was obeyed. */
export interface Obeyed {
  readonly incarnation: string;
  readonly revision: bigint;
}

/** Until when an earlier life of this server, which is over, was allowed to issue; on the present clock. */
export interface EarlierPresence {
  readonly id: string;
  readonly parts: readonly (readonly [part: string, issueUntil: number])[];
}

/** What is kept of this server's row and grants over its lives (upstream/grant-record.ts). */
interface PresenceRecord {
  readonly earlierLife: EarlierLife;
  readonly earlierRows: readonly EarlierRow[];
  /** Since when all grants are known, and whether nothing was granted under the row before. */
  readonly known: Pick<Claimant, "isWhole" | "sinceMs">;
  renewed(
    parts: readonly StorePart[],
    id: string,
    sentAt: number,
    isProved: (part: string) => boolean,
  ): void;
}

export interface PresencePorts {
  /** All but the address, which is known when the server listens. */
  readonly node: Omit<NodeInfo, "address">;
  /** Numbers of renewals begin here, above those of an earlier life under the same id. */
  readonly firstCount: bigint;
  /** Of a store in several databases: those that have to be heard for a tag. */
  readonly partsOf: ((tag: string) => readonly string[]) | undefined;
  /** How long a newcomer waits for a proof of the store (core's newcomer-state.ts); 0: it takes the store as it is. */
  readonly proofPatienceMs: number;
  /** Whether it issues before. Default: no. Its row says that nothing is proved until something is. */
  readonly issuesUnproved?: boolean;
  readonly record: PresenceRecord;
  readonly clock: Clock;
  readonly emit: Emit;
}

/** What a poll may take besides its interval: a connection that is made anew, the time-out, and the pause after it. */
const SLOW_POLL_MS = 5_000;

/** Twice what another server needs for a poll that renews its row. */
export function proofPatience(pollIntervalMs: number): number {
  return 2 * (pollIntervalMs + SLOW_POLL_MS);
}

/** Tags of which it was told that their segments outlast what may be used of them. */
const MAX_WARNED = 100;
const ONE = "";
const RETRY_AFTER_MS = 1_000;

/**
 * Whether this server may issue: the shell around core's presence-state.ts, whose invariants say why. Every call asks, and
 * the clock is read for each, so that a process that was stopped refuses the first call after it.
 */
export class Presence {
  readonly #ports: PresencePorts;
  readonly #state: PresenceState;
  readonly #newcomer;
  readonly #warned = new Set<string>();
  #address = "";
  #count: bigint;
  /** Of a store that is one database; see invariant 1 of the state. */
  #until = -Infinity;
  #cutOffSince: number | undefined;

  constructor(ports: PresencePorts, earlier?: EarlierPresence) {
    this.#ports = ports;
    this.#count = ports.firstCount;
    this.#state = createPresenceState(ports.node.maxOfflineMs);
    this.#newcomer = createNewcomerState(ports.proofPatienceMs, ports.record.earlierLife);
    for (const [part, until] of earlier?.parts ?? []) resumePresence(this.#state, part, until);
    this.#until = issueUntil(this.#state, ONE);
  }

  get id(): string {
    return this.#ports.node.id;
  }

  get maxOfflineMs(): number | undefined {
    return this.#ports.node.maxOfflineMs;
  }

  /** What the row says from the next renewal on. */
  advertise(address: string): void {
    this.#address = address;
  }

  /** This server as its row shows it. */
  get info(): NodeInfo {
    return { ...this.#ports.node, address: this.#address };
  }

  /** Who says what this server was granted. */
  get claimant(): Claimant {
    const { id, instance, address } = this.info;
    return { id, instance, address, ...this.#ports.record.known };
  }

  /** To be sent now; `obeyed` and `traffic` are what was applied before. */
  renewal({ incarnation, revision }: Obeyed, traffic: bigint): NodeRenewal {
    this.#count++;
    return {
      node: this.info,
      count: this.#count,
      incarnation,
      obeyed: revision,
      traffic,
      isProved: isProved(this.#newcomer),
      earlier: this.#ports.record.earlierRows,
    };
  }

  /** The answer to a renewal that was sent at `sentAt` has just come. */
  acknowledged(parts: readonly StorePart[], sentAt: number): readonly Acknowledged[] {
    const now = this.#ports.clock.now();
    for (const part of parts) newcomerSaw(this.#newcomer, part, this.info, { sentAt, now });
    this.#until = this.#untilIn(ONE);
    const { record } = this.#ports;
    record.renewed(parts, this.id, sentAt, (part) => isProvedIn(this.#newcomer, part));
    return parts
      .filter(({ isRenewed }) => isRenewed)
      .map(({ name }) => renewalAcknowledged(this.#state, name, sentAt, now));
  }

  /** The polls of these renewals are obeyed as a whole. */
  obeyed(acknowledged: readonly Acknowledged[]): void {
    // A store that nobody has proved yet gives this server no time.
    for (const one of acknowledged) if (!this.#mustWaitIn(one.part)) pollObeyed(this.#state, one);
    this.#until = this.#untilIn(ONE);
    this.check();
  }

  /** Whether this server has looked at its store, and waits for somebody who knows it. */
  get isUnproved(): boolean {
    return this.#ports.issuesUnproved !== true && isWaiting(this.#newcomer);
  }

  /** Whether polls have to bring the rows of others, for the proof. */
  get wantsNodes(): boolean {
    return !isProved(this.#newcomer);
  }

  /** Why no id of a tag may be issued now; undefined when it may. */
  refusalOf(tag: string): IdmintError | undefined {
    const { clock, partsOf } = this.#ports;
    const now = clock.now();
    if (partsOf === undefined) return now < this.#until ? undefined : this.#refusal(tag, "");
    for (const part of partsOf(tag)) {
      if (now >= this.#untilIn(part)) return this.#refusal(tag, part);
    }
    return undefined;
  }

  /** Whether nothing at all is issued. */
  get isCutOff(): boolean {
    const now = this.#ports.clock.now();
    for (const part of this.#state.parts.keys()) {
      if (now < issueUntil(this.#state, part)) return false;
    }
    return true;
  }

  /** Databases that were not heard of for too long. */
  get silentParts(): readonly string[] {
    const now = this.#ports.clock.now();
    return [...this.#state.parts.keys()].filter((part) => now >= issueUntil(this.#state, part));
  }

  /** Until when ids may be issued, for who goes on in this one's place. */
  get until(): EarlierPresence {
    const parts = [...this.#state.parts.keys()];
    return { id: this.id, parts: parts.map((part) => [part, issueUntil(this.#state, part)]) };
  }

  /** To be called about once a second: tells when issuing stops, and when it goes on. */
  check(): void {
    const { clock, emit } = this.#ports;
    // Those that were never heard of are not cut off yet: the server is still beginning.
    const databases = this.silentParts.filter((part) => issueUntil(this.#state, part) > -Infinity);
    if (databases.length > 0 && this.#cutOffSince === undefined) {
      this.#cutOffSince = clock.now();
      const maxOfflineMs = this.maxOfflineMs ?? Infinity;
      emit({ type: "cut-off", databases, maxOfflineMs });
    }
    if (databases.length === 0 && this.#cutOffSince !== undefined) {
      emit({ type: "cut-off-over", afterMs: clock.now() - this.#cutOffSince });
      this.#cutOffSince = undefined;
    }
  }

  /** A segment that would last longer than it may be used is worth a word. */
  noteHoldFor(tag: string, holdForMs: number): void {
    const { maxOfflineMs = Infinity } = this;
    if (holdForMs <= maxOfflineMs || this.#warned.size >= MAX_WARNED || this.#warned.has(tag))
      return;
    this.#warned.add(tag);
    this.#ports.emit({ type: "hold-for-too-long", tag, holdForMs, maxOfflineMs });
  }

  /** Whether nothing is issued of a database before it is proved. */
  #mustWaitIn(part: string): boolean {
    return this.#ports.issuesUnproved !== true && !isProvedIn(this.#newcomer, part);
  }

  #isUnprovedIn(part: string): boolean {
    return this.#newcomer.parts.has(part) && this.#mustWaitIn(part);
  }

  /** An earlier life's time is good while the store does not answer. What answers, and was not proved, may have been put back since. */
  #untilIn(part: string): number {
    return this.#isUnprovedIn(part) ? -Infinity : issueUntil(this.#state, part);
  }

  #refusal(tag: string, part: string): IdmintError {
    const which = part === "" ? "the store" : `database ${part} of the store`;
    const { maxOfflineMs } = this;
    const metadata = { tag, ...(part === "" ? {} : { database: part }) };
    if (this.#isUnprovedIn(part)) {
      const seconds = Math.ceil(this.#ports.proofPatienceMs / 1_000);
      const waits = `this server has just started, and waits until a server that knows ${which} has renewed its row there, for ${seconds} s at most; ask another server`;
      return new IdmintError("STORE_UNAVAILABLE", waits, {
        metadata,
        retryAfterMs: RETRY_AFTER_MS,
      });
    }
    const text =
      maxOfflineMs === undefined || !this.#state.parts.has(part)
        ? `this server has no row in ${which} yet, and issues nothing before; ask another server`
        : `this server was cut off from ${which} for longer than node.max_offline (${maxOfflineMs} ms) and issues nothing until it is heard again; ask another server`;
    return new IdmintError("STORE_UNAVAILABLE", text, { metadata, retryAfterMs: RETRY_AFTER_MS });
  }
}
