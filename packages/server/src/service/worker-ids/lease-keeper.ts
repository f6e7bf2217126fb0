import {
  bounded,
  type Clock,
  type HolderPorts,
  IdmintError,
  type RenewedWorkerLease,
  type Timers,
  type WorkerLease,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import { comesFrom } from "@idmint/core/kinds";
import {
  answerOf,
  hasTimeLeft,
  KEPT_RESERVE_AHEAD_MS,
  type KeptCallers,
  type KeptContents,
  type KeptLease,
  keptLease,
  type KeptNode,
  type LeaseFile,
  type SeenIssuing,
  raised,
  renewalAhead,
  renewedAhead,
  type Tag,
  takenUp,
} from "@idmint/core/server";
import type { Emit } from "../events.ts";

/** A registry as holders of leases use it. */
export type LeaseRegistry = HolderPorts["registry"];

/** The registry of a tag's worker ids as holders of kept leases see it. */
export interface KeptRegistry extends LeaseRegistry {
  /** A newer record of the tag was seen. */
  update(tag: Tag): void;
}

export interface LeaseKeeperPorts {
  readonly file: LeaseFile;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly wallClock: () => number;
  /** This server's row, and until when it may issue. */
  readonly node: () => KeptNode;
  /** The store's history, as far as it is known. */
  readonly incarnation: () => string | undefined;
  /** Whether servers are stopped; another object when something has changed. */
  readonly issuing: () => readonly SeenIssuing[];
  /** What the store says of callers; another list when something has changed. */
  readonly callers: () => KeptCallers | undefined;
  readonly emit: Emit;
}

/** How often a registry renews a lease, and hears of the server's time by it. */
const RENEW_EVERY_MS = 3_000;
/** How long a lease out of the file waits for the registry to confirm it before it is used as it is. */
const CONFIRM_MS = 1_000;
/** How long the file may say what is not so any more, before that is told: a write takes less. */
const STALE_MS = 2_000;
/** Leases that one server keeps. */
const MAX_LEASES = 4_000;

/** A lease in use. */
interface Held {
  kept: KeptLease;
  /** Which the holder may present: that of its last answer, and the one before, should that answer not have reached it. */
  tokens: readonly bigint[];
  /** When the registry is to renew it, on the monotonic clock. */
  dueAt: number;
  /** The renewal on its way to the registry; never rejects. */
  inFlight: Promise<void> | undefined;
  /** What the registry said for good; the holder hears it with its next renewal. */
  refusal: IdmintError | undefined;
}

/**
 * Keeps the leases of a server in its file, and stands between their holders and their registries: a holder's few seconds
 * come out of the file, and a minute is reserved ahead by the registry in the background. The rules are those of core's
 * kept-lease-state.ts.
 *
 * INVARIANT: time is answered to a holder only after a write that began when that time was in the lease.
 */
export class LeaseKeeper {
  readonly #ports: LeaseKeeperPorts;
  readonly #held = new Map<string, Held>();
  /** Of earlier lives, not taken up yet. */
  readonly #found = new Map<string, KeptLease>();
  readonly #tags = new Map<string, Tag>();
  #reportedMs: number;
  #incarnation: string | undefined;
  #writing: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #isFailing = false;
  /** Whether a record of a tag is newer than the file. */
  #isBehind = false;
  /** Since when the file has been known to say what is not so any more. */
  #staleSince: number | undefined;
  #cannotEmpty = false;
  #written: Pick<KeptContents, "callers" | "issuing"> | undefined;

  constructor(ports: LeaseKeeperPorts) {
    this.#ports = ports;
    const { found } = ports.file;
    this.#reportedMs = found?.reportedMs ?? 0;
    this.#incarnation = found?.incarnation;
    for (const lease of found?.leases ?? []) this.#found.set(keyOf(lease), lease);
    for (const tag of found?.tags ?? []) this.#tags.set(tag.name, tag);
  }

  /** The tags of the leases that are kept: with them the server can begin before its store answers. */
  get tags(): readonly Tag[] {
    return [...this.#tags.values()];
  }

  /** Whether some lease has reserved time that is not over: ids may be made without the registry. */
  get hasTime(): boolean {
    const now = this.#ports.clock.now();
    return this.#leases().some((lease) => hasTimeLeft(lease, now));
  }

  /** Reports the server's own time; a clock that is not confirmed must not be. Never rejects. */
  async report(): Promise<void> {
    this.#reportedMs = Math.max(this.#reportedMs, this.#ports.wallClock());
    try {
      await this.#write();
    } catch {
      // `lease-file-failed` has told it, and no time is answered that is not in the file.
    }
  }

  /**
   * Fulfils when the newest records of the tags, a stop of all servers and the list of callers are in the file, or the file says
   * nothing. Rejects with STORE_UNAVAILABLE.
   *
   * INVARIANT: no later run believes a token that was revoked, or issues of a tag that was paused, because the file could not be
   * written. Such a file is emptied, which needs no room. Where that fails too, `isStale` says so until one of both is done.
   */
  async saved(): Promise<void> {
    const { clock } = this.#ports;
    if (this.#isCurrent) return;
    this.#staleSince ??= clock.now();
    try {
      await this.#write();
    } catch (thrown) {
      if (this.#staleSince !== undefined) throw thrown;
    }
  }

  /** Whether the file has the newest of what this server heard. */
  get #isCurrent(): boolean {
    const { issuing, callers } = this.#ports;
    const isStopNew = issuing() !== this.#written?.issuing;
    const areCallersNew = callers()?.tokens !== this.#written?.callers?.tokens;
    return !this.#isBehind && !isStopNew && !areCallersNew;
  }

  /** Whether a run of this server that begins now without the store would believe what is not so any more. */
  get isStale(): boolean {
    const { clock } = this.#ports;
    return this.#staleSince !== undefined && clock.now() - this.#staleSince > STALE_MS;
  }

  async #empty(): Promise<void> {
    const { file, emit, clock } = this.#ports;
    try {
      await file.empty();
      this.#staleSince = undefined;
      this.#cannotEmpty = false;
    } catch (cause) {
      this.#staleSince ??= clock.now();
      if (!this.#cannotEmpty) emit({ type: "lease-file-failed", error: notEmptied(cause) });
      this.#cannotEmpty = true;
    }
  }

  /** The registry of a tag's worker ids, as its holders shall see it. */
  registryOf(tag: Tag, registry: LeaseRegistry): KeptRegistry {
    return {
      leaseWorker: (request) => this.#lease(tag, registry, request),
      renewWorker: (renewal) => this.#renew(registry, renewal),
      // The lease stays for the next life; what it reserves keeps the worker id from others for a minute anyway.
      releaseWorker: async () => undefined,
      update: (newer) => this.#observe(newer),
    };
  }

  #observe(tag: Tag): void {
    const known = this.#tags.get(tag.name);
    if (known === undefined || tag.revision < known.revision) return;
    if (tag.revision > known.revision) this.#isBehind = true;
    this.#tags.set(tag.name, tag);
  }

  async #lease(
    tag: Tag,
    registry: LeaseRegistry,
    request: WorkerLeaseRequest,
  ): Promise<WorkerLease> {
    const { clock } = this.#ports;
    const key = keyOf({ ...request, dataCenter: request.dataCenter ?? dataCenterOf(tag) });
    if (!this.#held.has(key) && this.#held.size >= MAX_LEASES) throw tooManyLeases();
    const held = (await this.#resumed(key, registry)) ?? (await this.#leased(registry, request));
    const { kept, lease } = takenUp(held.kept, request.reserveAheadMs, clock.now());
    held.kept = kept;
    held.tokens = [lease.token];
    this.#held.set(key, held);
    if (!this.#tags.has(tag.name)) this.#tags.set(tag.name, tag);
    this.#observe(tag);
    await this.#write();
    return lease;
  }

  async #leased(registry: LeaseRegistry, request: WorkerLeaseRequest): Promise<Held> {
    const { clock } = this.#ports;
    const asked = { ...request, reserveAheadMs: KEPT_RESERVE_AHEAD_MS };
    const kept = keptLease(request, await registry.leaseWorker(asked), clock.now());
    const dueAt = clock.now() + RENEW_EVERY_MS;
    return { kept, tokens: [], dueAt, inFlight: undefined, refusal: undefined };
  }

  /**
   * The lease of an earlier life, or of a holder that ended, confirmed by the registry if that answers soon; undefined
   * when there is none, or the registry says that it is over.
   */
  async #resumed(key: string, registry: LeaseRegistry): Promise<Held | undefined> {
    const { clock, timers, wallClock, emit } = this.#ports;
    const held = this.#held.get(key) ?? heldOf(this.#found.get(key));
    this.#found.delete(key);
    this.#held.delete(key);
    if (held === undefined || held.refusal !== undefined) return undefined;
    const { tag, dataCenter, workerId, token, extension, usedUntilMs } = held.kept;
    const reserveUntilMs = Math.max(Math.floor(wallClock()), usedUntilMs);
    const which = { tag, dataCenter, workerId, token, extension };
    this.#renewAhead(held, registry, { ...which, reserveUntilMs, reserveAheadMs: 0 });
    await bounded(Promise.resolve(held.inFlight), CONFIRM_MS, timers, () => undefined);
    // Written so that it is read anew: the answer may have come meanwhile.
    if (refusalOf(held) !== undefined) return undefined;
    const leftMs = held.kept.reservedUntilMs - held.kept.usedUntilMs;
    const isConfirmed = held.dueAt > clock.now();
    emit({ type: "lease-resumed", tag, dataCenter, workerId, leftMs, isConfirmed });
    return held;
  }

  async #renew(registry: LeaseRegistry, renewal: WorkerRenewal): Promise<RenewedWorkerLease> {
    const { clock } = this.#ports;
    const held = this.#holding(renewal);
    if (held === undefined) throw leaseLost(renewal);
    if (renewal.extension !== held.kept.extension) {
      // The next extension has to be the registry's before anything is made of it.
      await held.inFlight;
      await this.#ask(held, registry, renewalAhead(held.kept, renewal), renewal);
    } else {
      if (clock.now() >= held.dueAt) this.#renewAhead(held, registry, renewal);
      held.kept = raised(held.kept, renewal, clock.now());
    }
    if (held.refusal !== undefined) {
      this.#held.delete(keyOf(held.kept));
      throw held.refusal;
    }
    held.tokens = [renewal.token, held.kept.token];
    const answer = answerOf(held.kept, clock.now());
    await this.#write();
    return answer;
  }

  /** Has the registry reserve more, in the background; one renewal at a time. */
  #renewAhead(held: Held, registry: LeaseRegistry, renewal: WorkerRenewal): void {
    if (held.inFlight !== undefined) return;
    const asked = renewalAhead(held.kept, renewal);
    // Where it is not known whether the token is used up, it is presented again.
    held.inFlight = this.#ask(held, registry, asked, asked)
      .catch(() => undefined)
      .finally(() => {
        held.inFlight = undefined;
      });
  }

  /** `renewal` is what the holder wants of what is `asked`. Rejects when it is not known what became of it. */
  async #ask(
    held: Held,
    registry: LeaseRegistry,
    asked: WorkerRenewal,
    renewal: WorkerRenewal,
  ): Promise<void> {
    const { clock } = this.#ports;
    try {
      const answer = await registry.renewWorker(asked);
      held.kept = renewedAhead(held.kept, renewal, answer, clock.now());
      held.dueAt = clock.now() + RENEW_EVERY_MS;
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      const { retryable, code } = error;
      if (retryable || code === "DEADLINE_EXCEEDED" || code === "CANCELLED") throw error;
      held.refusal = error;
    }
  }

  /**
   * The lease that a holder presents a token of. By the worker id alone it may be another holder's: of a backup, say, that
   * was leased the worker id when this one's lease had ended.
   */
  #holding({ tag, dataCenter, workerId, token }: WorkerRenewal): Held | undefined {
    for (const held of this.#held.values()) {
      const { kept } = held;
      if (kept.tag !== tag || kept.dataCenter !== dataCenter) continue;
      if (kept.workerId === workerId && held.tokens.includes(token)) return held;
    }
    return undefined;
  }

  /** Writes what is so now. Writes that are wished for together are one. Rejects with STORE_UNAVAILABLE. */
  #write(): Promise<void> {
    this.#next ??= this.#writeAfter(this.#writing);
    return this.#next;
  }

  async #writeAfter(before: Promise<void> | undefined): Promise<void> {
    // What failed before says nothing about this one. Even without one before, whoever comes in this turn joins.
    await before?.catch(() => undefined);
    this.#writing = this.#next;
    this.#next = undefined;
    const { file, emit } = this.#ports;
    const wasBehind = this.#isBehind;
    try {
      const contents = this.#contents();
      this.#isBehind = false;
      await file.write(contents);
      this.#written = contents;
      this.#isFailing = false;
      if (this.#isCurrent) this.#staleSince = undefined;
    } catch (cause) {
      const error = notWritten(cause);
      if (!this.#isFailing) emit({ type: "lease-file-failed", error });
      this.#isFailing = true;
      this.#isBehind ||= wasBehind;
      if (this.#staleSince !== undefined) await this.#empty();
      throw error;
    }
  }

  #leases(): readonly KeptLease[] {
    return [...[...this.#held.values()].map(({ kept }) => kept), ...this.#found.values()];
  }

  #contents(): KeptContents {
    this.#incarnation = this.#ports.incarnation() ?? this.#incarnation;
    const now = this.#ports.clock.now();
    // Of the others there is nothing left to be used.
    const leases = this.#leases().filter((lease) => hasTimeLeft(lease, now));
    const named = new Set(leases.map(({ tag }) => tag));
    const tags = this.tags.filter(({ name }) => named.has(name));
    const node = this.#ports.node();
    const [issuing, callers] = [this.#ports.issuing(), this.#ports.callers()];
    const known = { reportedMs: this.#reportedMs, incarnation: this.#incarnation };
    return { ...known, leases, tags, node, issuing, callers };
  }
}

function heldOf(kept: KeptLease | undefined): Held | undefined {
  if (kept === undefined) return undefined;
  return { kept, tokens: [], dueAt: -Infinity, inFlight: undefined, refusal: undefined };
}

function refusalOf({ refusal }: Held): IdmintError | undefined {
  return refusal;
}

function keyOf(lease: Pick<KeptLease, "tag" | "dataCenter" | "instance">): string {
  return `${lease.tag}\n${lease.dataCenter}\n${lease.instance}`;
}

function dataCenterOf({ kind }: Tag): number {
  return comesFrom(kind, "lease") ? kind.dataCenter : 0;
}

function tooManyLeases(): IdmintError {
  const text = `this server already keeps ${MAX_LEASES} worker leases, the limit of snowflake.cache_file`;
  return new IdmintError("OVERLOADED", text, { retryAfterMs: 1_000 });
}

function leaseLost({ tag, workerId }: WorkerRenewal): IdmintError {
  const text = `worker id ${workerId} of tag "${tag}" is no longer leased by this server`;
  return new IdmintError("WORKER_LEASE_LOST", text, { metadata: { tag } });
}

function notEmptied(cause: unknown): IdmintError {
  const text =
    "snowflake.cache_file can be neither written nor emptied: a restart without the store would believe tokens that were revoked and tags that were paused; remove the file";
  return new IdmintError("STORE_UNAVAILABLE", text, { retryAfterMs: 1_000, cause });
}

function notWritten(cause: unknown): IdmintError {
  const text =
    "snowflake.cache_file cannot be written, and ids are made only of times that are in that file";
  return new IdmintError("STORE_UNAVAILABLE", text, { retryAfterMs: 1_000, cause });
}
