import { type AcceptStore, type Store, VersionGuard } from "@idmint/core";
import { type Api, createApi } from "../api/api.ts";
import type { Authorise } from "../api/method.ts";
import type { Config } from "../config/table.ts";
import { AdminGate } from "../service/admin-gate.ts";
import { createCounters, type Counters } from "../service/counters.ts";
import { Directory } from "../service/directory.ts";
import type { Emit } from "../service/events.ts";
import { Grants } from "../service/grants.ts";
import { IdService } from "../service/ids.ts";
import { GroupedLookups } from "../service/lookups.ts";
import { type GcCures, NodeService } from "../service/node.ts";
import { Poll } from "../service/poll.ts";
import { Raises } from "../service/raises.ts";
import { ReleaseTokens } from "../service/release-tokens.ts";
import { sourceMaker } from "../service/sources.ts";
import { TagService } from "../service/tags.ts";
import { createElsewhere, type Elsewhere, NOWHERE_ELSE } from "./elsewhere.ts";
import type { RedisTags } from "./redis.ts";
import { realSystem, type System } from "./system.ts";
import { serverVersion } from "./version.ts";

/** Allocations that can still be given back; more push the oldest out. */
const MAX_RELEASE_TOKENS = 10_000;
/** A poll is given up after this, so that a store that hangs is noticed, and its return too. */
const POLL_TIMEOUT_MS = 1_000;
/** The store's own time-outs come first; this one is for a store that breaks its word. */
export const STORE_GRACE_MS = 500;

/** The domain services of one server, connected with each other and with the store behind core's ports. */
export interface Services {
  readonly api: Api;
  readonly counters: Counters;
  readonly directory: Directory;
  readonly ids: IdService;
  readonly node: NodeService;
  readonly poll: Poll;
  readonly redis: RedisTags;
  readonly tags: TagService;
}

export function createServices(
  config: Config,
  store: Store & Partial<AcceptStore>,
  emit: Emit,
  authorise: Authorise,
  gcCures: () => GcCures,
  system: System = realSystem,
  places: Elsewhere = NOWHERE_ELSE,
  announce: () => void = () => undefined,
): Services {
  const { clock, timers, afterTurn, random, randomToken, wallClock } = system;
  const counters = createCounters();
  const guard = new VersionGuard();
  const storeTimeoutMs = config.storeTimeoutMs + STORE_GRACE_MS;
  const common = { store, guard, clock, timers, afterTurn, storeTimeoutMs, counters, emit };
  const onWentBack = (tag: string, detail: string): void => {
    poll.noteWentBack();
    directory.fenceTag(tag, detail);
  };
  const grants = new Grants({ ...common, onWentBack });
  const raises = new Raises({ ...common, onWentBack, history: () => directory.history });
  const lookup = new GroupedLookups(
    { ...common, onTags: (tags) => directory.admit(tags) },
    (tag) => store.groupOf?.(tag) ?? "",
  );
  const { limitWaiters: maxWaiters, limitTags: maxTags, prefetchShare } = config;
  const near = { system, store, raises, counters, emit };
  const elsewhere = createElsewhere(places, config, near, STORE_GRACE_MS);
  const makeSource = sourceMaker(
    { ...common, grants, elsewhere: elsewhere.sourceOf },
    { maxWaiters, maxCount: config.limitCountAsSegments },
  );
  const directory = new Directory(
    { ...common, grants, lookup, random, makeSource },
    { prefetchShare, maxWaiters, maxTags, storeTimeoutMs },
  );
  const poll = new Poll({
    ...common,
    directory,
    accept: canAccept(store) ? store : undefined,
    epochGap: config.epochGap,
    intervalMs: config.pollIntervalMs,
    timeoutMs: POLL_TIMEOUT_MS,
  });
  const node = new NodeService({
    nodeId: randomToken(),
    version: serverVersion(),
    startedAtMs: wallClock(),
    wallClock,
    store,
    poll,
    directory,
    counters,
    gcCures,
  });
  const tokens = new ReleaseTokens(MAX_RELEASE_TOKENS, randomToken);
  const limits = {
    countAsList: config.limitCountAsList,
    countAsSegments: config.limitCountAsSegments,
  };
  const ids = new IdService({ directory, tokens, limits, counters });
  const gate = new AdminGate(timers, storeTimeoutMs);
  const { redis, placement } = elsewhere;
  const tags = new TagService({ store, placement, directory, gate, wallClock, announce });
  const api = createApi({ ids, tags, node, authorise, emit });
  return { api, counters, directory, ids, node, poll, redis, tags };
}

function canAccept(store: Store & Partial<AcceptStore>): store is Store & AcceptStore {
  return store.accept !== undefined;
}
