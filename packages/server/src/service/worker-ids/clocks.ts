import { hasTimeLeft, type LeaseFile } from "@idmint/core/server";
import type { Emit } from "../events.ts";
import type { Presence } from "../presence.ts";
import type { System } from "../system.ts";
import type { KnownHistory } from "../upstream/poll-state.ts";
import type { Poll } from "../upstream/poll.ts";
import { ClockWatch, type PeerClocks } from "./clock-watch.ts";
import { LeaseKeeper, type LeaseKeeperPorts } from "./lease-keeper.ts";

/** What a server needs besides its store to make ids by its clock. */
export interface ClockParts {
  /** Undefined when the server keeps no leases. */
  readonly leaseFile: LeaseFile | undefined;
  /**
   * Asks other servers for their clocks. `nodeId` is this server, whose own answer does not count. `known` answers the
   * addresses that the store has.
   */
  readonly peerClocks: (nodeId: string, known: () => readonly string[]) => PeerClocks;
}

/** For servers without a file and without peers. */
export const NO_CLOCK_PARTS: ClockParts = {
  leaseFile: undefined,
  peerClocks: () => ({ ask: async () => [] }),
};

/** Services that are made after the clocks. They are functions, because the clocks are made first. */
export interface LaterServices {
  readonly poll: () => Pick<Poll, "storeTime" | "incarnation" | "issuing">;
  readonly directory: () => { readonly usesClock: boolean };
  readonly presence: () => Pick<Presence, "until">;
  readonly callers: LeaseKeeperPorts["callers"];
  /** Addresses of the other servers on the store. */
  readonly peers: () => readonly string[];
}

export interface Clocks {
  readonly watch: ClockWatch;
  readonly keeper: LeaseKeeper | undefined;
}

export function createClocks(
  { leaseFile, peerClocks }: ClockParts,
  maxOffsetMs: number,
  ports: { readonly system: System; readonly emit: Emit; readonly nodeId: string },
  later: LaterServices,
): Clocks {
  const { clock, timers, wallClock } = ports.system;
  const { emit, nodeId } = ports;
  const common = { clock, timers, wallClock, emit };
  const incarnation = (): string | undefined => later.poll().incarnation;
  const keeper =
    leaseFile === undefined
      ? undefined
      : new LeaseKeeper({
          ...common,
          incarnation,
          issuing: () => later.poll().issuing,
          node: () => later.presence().until,
          callers: later.callers,
          file: leaseFile,
        });
  const watch = new ClockWatch(
    {
      ...common,
      peers: peerClocks(nodeId, later.peers),
      storeTime: () => later.poll().storeTime,
      usesClock: () => later.directory().usesClock || keeper?.hasTime === true,
      report: async () => keeper?.report(),
    },
    { maxOffsetMs, reportedMs: leaseFile?.found?.reportedMs },
  );
  return { watch, keeper };
}

/**
 * The store's history, as an earlier run of this server wrote it to the file. Undefined when it is not known, or when
 * nothing is left that could be issued without the store. `now` is on the monotonic clock.
 */
export function knownHistory(file: LeaseFile | undefined, now: number): KnownHistory | undefined {
  const { incarnation, tags = [], leases = [], issuing = [] } = file?.found ?? {};
  const [first, ...others] = tags.map(({ revision }) => revision);
  const hasTime = leases.some((lease) => hasTimeLeft(lease, now));
  if (incarnation === undefined || first === undefined || !hasTime) return undefined;
  const since = others.reduce((least, revision) => (revision < least ? revision : least), first);
  return { incarnation, since, issuing };
}
