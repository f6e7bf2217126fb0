import { hasTimeLeft, type LeaseFile } from "@idmint/core";
import type { Config } from "../config/table.ts";
import { ClockWatch, type PeerClocks } from "../service/clock-watch.ts";
import type { Directory } from "../service/directory.ts";
import type { Emit } from "../service/events.ts";
import { LeaseKeeper } from "../service/lease-keeper.ts";
import type { Poll } from "../service/poll.ts";
import type { Presence } from "../service/presence.ts";
import type { KnownHistory } from "../service/poll-state.ts";
import type { System } from "./system.ts";

/** What a server has besides its store for ids that are made by its clock. */
export interface ClockParts {
  /** Undefined: it keeps no leases. */
  readonly leaseFile: LeaseFile | undefined;
  /** `nodeId`: of this server, whose own answer says nothing. `known`: addresses of others, as the store has them. */
  readonly peerClocks: (nodeId: string, known: () => readonly string[]) => PeerClocks;
}

/** For servers without a file and without peers. */
export const NO_CLOCK_PARTS: ClockParts = {
  leaseFile: undefined,
  peerClocks: () => ({ ask: async () => [] }),
};

/** What is made later, and asked then. */
export interface ClockSurroundings {
  readonly poll: () => Pick<Poll, "storeTime" | "incarnation">;
  readonly directory: () => Pick<Directory, "usesClock">;
  readonly presence: () => Pick<Presence, "until">;
  /** Addresses of the other servers on the store. */
  readonly peers: () => readonly string[];
}

export interface Clocks {
  readonly watch: ClockWatch;
  readonly keeper: LeaseKeeper | undefined;
}

export function createClocks(
  { leaseFile, peerClocks }: ClockParts,
  config: Config,
  ports: { readonly system: System; readonly emit: Emit; readonly nodeId: string },
  around: ClockSurroundings,
): Clocks {
  const { clock, timers, wallClock } = ports.system;
  const { emit, nodeId } = ports;
  const common = { clock, timers, wallClock, emit };
  const incarnation = (): string | undefined => around.poll().incarnation;
  const keeper =
    leaseFile === undefined
      ? undefined
      : new LeaseKeeper({
          ...common,
          incarnation,
          node: () => around.presence().until,
          file: leaseFile,
        });
  const watch = new ClockWatch(
    {
      ...common,
      peers: peerClocks(nodeId, around.peers),
      storeTime: () => around.poll().storeTime,
      usesClock: () => around.directory().usesClock || keeper?.hasTime === true,
      report: async () => keeper?.report(),
    },
    { maxOffsetMs: config.clockMaxOffsetMs, reportedMs: leaseFile?.found?.reportedMs },
  );
  return { watch, keeper };
}

/**
 * Where the store was when an earlier life of this server wrote the file; undefined when that is not known, or nothing is
 * left that could be issued without the store. `now`: on the monotonic clock.
 */
export function knownHistory(file: LeaseFile | undefined, now: number): KnownHistory | undefined {
  const { incarnation, tags = [], leases = [] } = file?.found ?? {};
  const [first, ...others] = tags.map(({ revision }) => revision);
  const hasTime = leases.some((lease) => hasTimeLeft(lease, now));
  if (incarnation === undefined || first === undefined || !hasTime) return undefined;
  const since = others.reduce((least, revision) => (revision < least ? revision : least), first);
  return { incarnation, since };
}
