import { IdmintError } from "@idmint/core";
import type { Store } from "@idmint/core/server";
import { followCallers } from "../access/callers.ts";
import type { Config } from "../config/table.ts";
import type { Emit } from "../service/events.ts";
import { knowRecentTags } from "../service/issue/recent-tags.ts";
import type { System } from "../service/system.ts";
import type { TagService } from "../service/tags/service.ts";
import type { TagDraft } from "../service/tags/settings.ts";
import type { KnownHistory } from "../service/upstream/poll-state.ts";
import { awaitProof } from "../service/upstream/polling.ts";
import type { StoreWait } from "../service/upstream/store-wait.ts";
import type { Services } from "./services.ts";
import { groupFoldersOf } from "./stores.ts";
import { realSystem } from "./system.ts";

export interface FollowingPorts {
  /** Default: the machine. */
  readonly system?: System;
  readonly store: Store;
  readonly emit: Emit;
  readonly config: Config;
  /** Told when who may call has been looked up anew: calls that run may have to end. */
  readonly grpc: { recheck(): void };
  readonly storeWait: StoreWait;
  /** Makes the tag `demo`, if there is none. */
  readonly makesDemoTag?: boolean;
}

/** Learns where the store is, which tags are in use, and whether the clock can be used. Then keeps watching store, clock and tags. */
export async function follow(
  { access, poll, presence, directory, clocks, drain, capacity, told, ledger, tags }: Services,
  known: KnownHistory | undefined,
  { system = realSystem, store, emit, config, grpc, storeWait, makesDemoTag }: FollowingPorts,
): Promise<void> {
  await poll.start(known, storeWait);
  await awaitProof(poll, presence, system.timers);
  access.onLook(() => grpc.recheck());
  await followCallers(config, access, emit);
  if (!poll.reachable) directory.admit(clocks.keeper?.tags ?? []);
  else if (drain.cause === undefined) {
    await knowRecentTags({ ...system, store, directory, emit }, config.limitTags);
  }
  store.listen?.(() => poll.hasten());
  for (const folder of groupFoldersOf(config)) emit({ type: "folder-shared", folder });
  await clocks.watch.start();
  if (makesDemoTag === true) await storeWait.of(() => makeDemoTag(tags));
  capacity.start();
  told.figures.start();
  ledger?.start();
}

export async function stopFollowing({
  access,
  poll,
  clocks,
  nodes,
  capacity,
  told,
  ledger,
}: Services): Promise<void> {
  access.stop();
  poll.stop();
  capacity.stop();
  told.figures.stop();
  ledger?.stop();
  clocks.watch.stop();
  // A server that keeps leases goes on with them, and with the same row.
  if (clocks.keeper?.hasTime !== true) await nodes.leave();
}

/** The tag that start-dev creates. */
export const DEMO_TAG = "demo";

/** Creates it if it does not exist yet. */
async function makeDemoTag(tags: Pick<TagService, "create">): Promise<void> {
  const description = "created by start-dev, for trying things out";
  const draft: TagDraft = {
    name: DEMO_TAG,
    description,
    order: undefined,
    ceiling: 0n,
    kind: { kind: "segment" },
    format: undefined,
    unguessable: undefined,
  };
  try {
    await tags.create(draft, []);
  } catch (thrown) {
    // A demo tag with other settings is as good.
    if (IdmintError.from(thrown).reason !== "TAG_EXISTS") throw thrown;
  }
}
