import type { Clock } from "@idmint/core";
import {
  type AuditNote,
  createNodeWatchState,
  createTrafficState,
  type Laggard,
  memoryMsOf,
  type NodeRow,
  type NodeStore,
  type CalledNode,
  nodesVersionOf,
  type NodeWatchState,
  noteRevision,
  type Obedience,
  obedienceOf,
  obedienceSince,
  sawPart,
  sawTraffic,
  stoppedNodes,
  type StorePart,
  type Tag,
  type Traffic,
  trafficOf,
  type TrafficState,
  watchedCount,
  watchedNodes,
  withClockMargin,
} from "@idmint/core/server";
import { HELD_FOR_EVER_MS } from "@idmint/core/kinds";
import type { Emit } from "./events.ts";
import type { Presence } from "./presence.ts";

/** By when nobody issues any more what a change has ended. */
export interface Effect {
  /** On this server's clock of elapsed time; undefined: not known. */
  readonly at: number | undefined;
  /** Those that may still issue it. */
  readonly laggards: readonly Laggard[];
  /** `at` is not known because callers may hold ids for ever. */
  readonly isHeldForEver: boolean;
}

/** A server on the store, as its row says. */
export interface SeenNode {
  readonly row: NodeRow;
  /** When the row was last seen to move. */
  readonly seenAt: number;
  readonly isAlive: boolean;
  readonly isOwn: boolean;
  readonly traffic: Traffic;
}

export interface NodeWatchPorts {
  readonly store: NodeStore & { readonly groupOf?: ((tag: string) => string) | undefined };
  readonly presence: Presence;
  readonly clock: Clock;
  readonly emit: Emit;
  /** Hears with each poll whether an operator drained this server. */
  readonly onTold: (isDraining: boolean) => void;
}

/** Rows that each poll may bring without being asked for less often. */
const ROWS_A_POLL = 50;
/** For how long after a question every poll brings all rows. */
const ATTENTIVE_MS = 10_000;
/** A server whose row moved so lately runs, as far as one can tell. */
const ALIVE_MS = 10_000;
/** Rows that are removed at once. */
const MAX_FORGOTTEN = 100;

/** Knows the other servers on the store: the shell around core's watch-state.ts. */
export class NodeWatch {
  readonly #ports: NodeWatchPorts;
  readonly #state: NodeWatchState = createNodeWatchState();
  readonly #traffic: TrafficState = createTrafficState();
  #pollsWithout = 0;
  #attentiveUntil = -Infinity;
  #isForgetting = false;
  #version = 0;
  /** What the version is of. */
  #called: readonly CalledNode[] = [];

  constructor(ports: NodeWatchPorts) {
    this.#ports = ports;
  }

  /** Whether the next poll shall bring the rows: of many servers only now and then, unless somebody waits for them. */
  get wantsNodes(): boolean {
    if (this.#ports.clock.now() < this.#attentiveUntil) return true;
    const rows = watchedCount(this.#state);
    return this.#pollsWithout >= Math.floor(rows / ROWS_A_POLL);
  }

  /** A poll that was sent at `sentAt` was obeyed as a whole. */
  saw(parts: readonly StorePart[], sentAt: number): void {
    const now = this.#ports.clock.now();
    const { id } = this.#ports.presence;
    const isWithout = parts.every(({ nodes }) => nodes === undefined);
    this.#pollsWithout = isWithout ? this.#pollsWithout + 1 : 0;
    for (const part of parts) {
      sawPart(this.#state, part, { id, obeyed: part.revision }, { sentAt, now });
    }
    // An answer without rows shows no change of theirs.
    if (this.#version !== 0 || !isWithout) this.#version = this.#versionNow();
    void this.#forgetStopped();
  }

  /**
   * A poll was answered. From now on this server follows what operators say of servers. True: that is something else than
   * before.
   */
  sawTraffic(parts: readonly StorePart[]): boolean {
    const isTold = sawTraffic(this.#traffic, parts);
    const { presence, onTold } = this.#ports;
    onTold(trafficOf(this.#traffic, presence.info.instance).isDraining);
    return isTold;
  }

  /** How far this server follows what operators say of servers, for its renewals. */
  get trafficRevision(): bigint {
    return this.#traffic.revision;
  }

  /** Checksum of the list of servers that callers go by; 0: there is none yet. */
  get version(): number {
    return this.#version;
  }

  /** What is known of a server, by its name. */
  trafficOfServer(server: string): Traffic {
    return trafficOf(this.#traffic, server);
  }

  /** Somebody waits for other servers to confirm: for a while every poll brings their rows. */
  attend(): void {
    this.#attentiveUntil = this.#ports.clock.now() + ATTENTIVE_MS;
  }

  /** A tag's record was read or written, which a poll may not have shown yet. */
  note({ name, revision }: Tag): void {
    const now = this.#ports.clock.now();
    this.attend();
    noteRevision(this.#state, this.#partOf(name), revision, now);
  }

  /** By when nobody issues what the last change of a tag has ended, callers that hold ids included. */
  effectOf(tag: Tag): Effect {
    const { at, laggards } = this.#obedience(tag.name, tag.revision);
    const presentMs = memoryMsOf(tag.kind);
    const present = plus(at, presentMs);
    if (tag.earlier === undefined) {
      return { at: present, laggards, isHeldForEver: isForEver(presentMs) };
    }
    const { memoryMs, revision } = tag.earlier;
    const earlier = plus(this.#obedience(tag.name, revision).at, memoryMs);
    const isKnown = present !== undefined && earlier !== undefined;
    const isHeldForEver = isForEver(presentMs) || isForEver(memoryMs);
    return { at: isKnown ? Math.max(present, earlier) : undefined, laggards, isHeldForEver };
  }

  /** By when nobody issues what was stopped in these databases, callers that hold ids for up to `memoryMs` included. */
  effectOfStop(
    parts: readonly { readonly name: string; readonly revision: bigint }[],
    memoryMs: number,
  ): Effect {
    const { maxOfflineMs } = this.#ports.presence;
    const all = parts.map(({ name, revision }) =>
      obedienceOf(this.#state, name, revision, { maxOfflineMs }),
    );
    const { at, laggards } = joined(all);
    return { at: plus(at, memoryMs), laggards, isHeldForEver: isForEver(memoryMs) };
  }

  /** Whether nobody holds ids any more for as long as the tag's settings allowed earlier. */
  isEarlierOver({ name, earlier }: Tag): boolean {
    if (earlier === undefined) return true;
    const at = plus(this.#obedience(name, earlier.revision).at, earlier.memoryMs);
    return at !== undefined && at < this.#ports.clock.now();
  }

  /** All servers, in the order of their ids. */
  get nodes(): readonly SeenNode[] {
    return this.#seen.toSorted((a, b) => (a.row.id < b.row.id ? -1 : 1));
  }

  /** All servers; one with rows in several databases by the row that moved last. */
  get #seen(): readonly SeenNode[] {
    const { presence, clock } = this.#ports;
    const traffic = this.#traffic.revision;
    const own = {
      ...presence.info,
      renewals: 1n,
      incarnation: "",
      obeyed: 0n,
      traffic,
      isProved: true,
    };
    const byId = new Map<string, SeenNode>();
    for (const { row, seenAt, isAlive } of watchedNodes(this.#state)) {
      const known = byId.get(row.id);
      const isNewer = known === undefined || known.seenAt < seenAt;
      const latest = isNewer ? { row, seenAt } : { row: known.row, seenAt: known.seenAt };
      byId.set(row.id, {
        ...latest,
        isAlive: isAlive || known?.isAlive === true,
        isOwn: false,
        traffic: trafficOf(this.#traffic, row.instance),
      });
    }
    byId.set(own.id, {
      row: own,
      seenAt: clock.now(),
      isAlive: true,
      isOwn: true,
      traffic: trafficOf(this.#traffic, own.instance),
    });
    return [...byId.values()];
  }

  /** How many servers run, as far as one can tell; this one is among them. */
  get live(): number {
    const { clock, presence } = this.#ports;
    const now = clock.now();
    const ids = new Set([presence.id]);
    for (const { row, seenAt } of watchedNodes(this.#state)) {
      if (now - seenAt < ALIVE_MS) ids.add(row.id);
    }
    return ids.size;
  }

  /** Addresses of the others that were heard of a moment ago. */
  get peers(): readonly string[] {
    const now = this.#ports.clock.now();
    const own = this.#ports.presence.info.address;
    const addresses = this.nodes
      .filter(({ seenAt, isOwn, row }) => !isOwn && now - seenAt < ALIVE_MS && row.address !== own)
      .map(({ row }) => row.address);
    return [...new Set(addresses)].filter((address) => address !== "");
  }

  /** Removes the rows of a server, whatever they say. Answers how many there were. */
  async forget(id: string, by?: AuditNote): Promise<number> {
    const rows = watchedNodes(this.#state).filter(({ row }) => row.id === id);
    // The number tells a server that has come back since from one that is gone.
    const keys = rows.map(({ part, row: { renewals } }) => ({ part, id, renewals }));
    return keys.length === 0 ? 0 : this.#ports.store.forgetNodes(keys, by);
  }

  /** Takes this server's own rows away: it issues nothing any more, and nobody needs to wait for it. Never rejects. */
  async leave(): Promise<void> {
    const { store, presence } = this.#ports;
    const { id, parts } = presence.until;
    const keys = parts.map(([part]) => ({ part, id, renewals: undefined }));
    try {
      await store.forgetNodes(keys);
    } catch {
      // Others wait until the row has been silent for long enough.
    }
  }

  #versionNow(): number {
    const alive = this.#seen.filter(({ isAlive }) => isAlive);
    const called = alive.map(({ row: { instance, address, zone }, traffic }) => {
      return { instance, address, zone, weight: traffic.weight, isDraining: traffic.isDraining };
    });
    // Each poll asks, and hardly ever has something changed.
    if (this.#version !== 0 && areSame(called, this.#called)) return this.#version;
    this.#called = called;
    return nodesVersionOf(called);
  }

  #obedience(name: string, revision: bigint): Obedience {
    const { store, presence, clock } = this.#ports;
    const { maxOfflineMs } = presence;
    const part = this.#partOf(name);
    const its = obedienceOf(this.#state, part, revision, { maxOfflineMs });
    const others = (store.partsOf?.(name) ?? [part]).filter((other) => other !== part);
    const all = [its];
    for (const other of others) {
      // Where a tag was before it moved, everybody must have heard that it left.
      all.push(obedienceSince(this.#state, other, its.knownAt ?? clock.now(), { maxOfflineMs }));
    }
    return { ...joined(all), knownAt: its.knownAt };
  }

  #partOf(name: string): string {
    return this.#ports.store.groupOf?.(name) ?? "";
  }

  async #forgetStopped(): Promise<void> {
    const stopped = stoppedNodes(this.#state).slice(0, MAX_FORGOTTEN);
    if (stopped.length === 0 || this.#isForgetting) return;
    this.#isForgetting = true;
    const { store, emit } = this.#ports;
    try {
      const keys = stopped.map(({ part, row: { id, renewals } }) => ({ part, id, renewals }));
      if ((await store.forgetNodes(keys)) > 0) {
        for (const id of new Set(stopped.map(({ row }) => row.id))) {
          emit({ type: "node-forgotten", node: id });
        }
      }
    } catch {
      // The next poll tries again.
    }
    this.#isForgetting = false;
  }
}

/** By when all of them are so. */
function joined(all: readonly Obedience[]): Pick<Effect, "at" | "laggards"> {
  const ats = all.map(({ at }) => at).filter((at) => at !== undefined);
  const at = ats.length === all.length ? Math.max(...ats) : undefined;
  return { at, laggards: all.flatMap(({ laggards }) => laggards) };
}

/** Undefined: never, as far as anybody knows. */
function plus(at: number | undefined, memoryMs: number): number | undefined {
  if (at === undefined || isForEver(memoryMs)) return undefined;
  return at + withClockMargin(memoryMs);
}

function isForEver(memoryMs: number): boolean {
  return memoryMs >= HELD_FOR_EVER_MS;
}

function areSame(some: readonly CalledNode[], others: readonly CalledNode[]): boolean {
  return (
    some.length === others.length &&
    some.every((one, at) => {
      const other = others[at];
      return (
        other !== undefined &&
        one.instance === other.instance &&
        one.address === other.address &&
        one.zone === other.zone &&
        one.weight === other.weight &&
        one.isDraining === other.isDraining
      );
    })
  );
}
