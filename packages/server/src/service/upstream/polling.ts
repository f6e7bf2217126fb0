import type { Timers } from "@idmint/core";
import { acceptAsking, type AuditNote, type Store } from "@idmint/core/server";
import type { Presence } from "../presence.ts";
import type { System } from "../system.ts";
import { OwnAccept } from "./own-accept.ts";
import { Poll, type PollPorts } from "./poll.ts";
import { Speaker } from "./speaker.ts";

/** How often, and how many times, a start looks whether another server has proved the store. */
const LOOK_MS = 200;
const LOOKS = 8;

export type PollingPorts = Omit<
  PollPorts,
  "intervalMs" | "ownAccept" | "speaker" | "store" | "timeoutMs"
> & {
  readonly store: Store;
  readonly storeTimeoutMs: number;
  readonly system: System;
  /** For the audit trail, when this server accepts a store. */
  readonly note: () => AuditNote;
};

/** The poll of a server, with what its answers set off: what the server says before an accept, and an accept of its own. */
export function startPolling(
  {
    epochGap,
    ...settings
  }: Pick<PollPorts, "intervalMs" | "timeoutMs"> & { readonly epochGap: bigint | undefined },
  ports: PollingPorts,
): Poll {
  const { store, presence, note, emit } = ports;
  const { clock, timers, randomToken } = ports.system;
  const { maxOfflineMs = null } = presence;
  const ownAccept = new OwnAccept({
    accept: async (gap, isWanted) => {
      const asking = { store, clock, timers, nonce: randomToken(), isWanted };
      return acceptAsking(asking, { gap, maxOfflineMs, by: note() });
    },
    gap: epochGap,
    onAccepted: () => poll.hasten(),
    emit,
  });
  const speaker = new Speaker({ ...ports, claimant: () => presence.claimant });
  const poll: Poll = new Poll({ ...ports, ...settings, ownAccept, speaker });
  return poll;
}

/** Among servers that run one of them proves the store with its next poll. Where none does, the start goes on without. */
export async function awaitProof(
  poll: Pick<Poll, "refresh">,
  presence: Pick<Presence, "isUnproved">,
  timers: Timers,
): Promise<void> {
  for (let looks = 0; looks < LOOKS && presence.isUnproved; looks++) {
    await new Promise<void>((resolve) => timers.after(LOOK_MS, resolve));
    await poll.refresh();
  }
}
