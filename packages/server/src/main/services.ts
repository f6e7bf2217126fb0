import type { Timers } from "@idmint/core";
import { createAccess } from "../access/callers.ts";
import {
  type AuditNote,
  serverNameOf,
  type Store,
  VersionGuard,
  zoneOffsets,
} from "@idmint/core/server";
import { type Api, createApi, createPlainHandlers } from "../api/api.ts";
import { draining } from "../api/draining.ts";
import type { Authorise } from "../api/method.ts";
import type { PlainHandlers } from "../api/plain-ids.ts";
import type { ToldFigures } from "../api/nodes/figures.ts";
import { writesLedger } from "../config/ledger.ts";
import { storePlace } from "../config/store-place.ts";
import type { Config } from "../config/table.ts";
import type { Access } from "../service/access/access.ts";
import { Admission, type AdmissionPorts } from "../service/admission/admission.ts";
import { AdminGate } from "../service/admin-gate.ts";
import { AuditList } from "../service/audit/list.ts";
import { AuditTrail } from "../service/audit/trail.ts";
import { createCounters, type Counters } from "../service/counters.ts";
import { Drain, type DrainPorts } from "../service/drain.ts";
import type { Emit } from "../service/events.ts";
import { Health } from "../service/health.ts";
import { createFigures, type FiguresParts, type OwnFigures } from "../service/figures/parts.ts";
import { DecodeService } from "../service/issue/decode.ts";
import { Ledger, type LedgerPorts } from "../service/ledger.ts";
import { Directory } from "../service/issue/directory.ts";
import { IdService } from "../service/issue/ids.ts";
import { PlainIds } from "../service/issue/plain-ids.ts";
import { ReleaseTokens } from "../service/issue/release-tokens.ts";
import type { TextPorts } from "../service/issue/tag-text.ts";
import { workersIn } from "../service/issue/tag-workers.ts";
import type { MakeSource } from "../service/kinds/kind.ts";
import { createSnowflakes, type SnowflakesPorts } from "../service/kinds/snowflake/snowflakes.ts";
import { sourceMaker, type SourcesPorts } from "../service/kinds/sources.ts";
import { NodeWatch } from "../service/node-watch.ts";
import { type NodePorts, NodeService } from "../service/node.ts";
import { Presence, proofPatience } from "../service/presence.ts";
import type { RedisTags } from "../service/redis/redis-tags.ts";
import { type TrafficPorts, TrafficService } from "../service/traffic.ts";
import type { System } from "../service/system.ts";
import { type CapacityPorts, CapacityService } from "../service/tags/capacity.ts";
import { LookupIdService } from "../service/tags/lookup-id.ts";
import { IssuingService } from "../service/tags/issuing.ts";
import { TagEffects } from "../service/tags/effects.ts";
import { TagService } from "../service/tags/service.ts";
import { GrantRecord } from "../service/upstream/grant-record.ts";
import { Grants, type GrantsPorts } from "../service/upstream/grants.ts";
import { LateClaims, type LateClaimsPorts } from "../service/upstream/late-claims.ts";
import { GroupedLookups } from "../service/upstream/lookups.ts";
import type { Poll, PollMemory } from "../service/upstream/poll.ts";
import { type PollingPorts, startPolling } from "../service/upstream/polling.ts";
import { Raises, type RaisesPorts } from "../service/upstream/raises.ts";
import type { OnBelow } from "../service/upstream/refusals.ts";
import {
  type ClockParts,
  type Clocks,
  type LaterServices,
  createClocks,
  NO_CLOCK_PARTS,
} from "../service/worker-ids/clocks.ts";
import { WorkerService } from "../service/worker-ids/service.ts";
import { createExternal, type External, type ExternalTags, NO_EXTERNAL } from "./external.ts";
import { instanceName } from "./instance.ts";
import { realSystem } from "./system.ts";
import { createTextMakers } from "./text-ids.ts";
import { serverVersion } from "./version.ts";

/** Most allocations that can still be given back. Further ones push the oldest out. */
const MAX_RELEASE_TOKENS = 10_000;
/** A poll is given up after this time. So a store that hangs is noticed, and so is its return. */
const POLL_TIMEOUT_MS = 1_000;
/** The store's own time-outs come first. This one is for a store that does not keep them. */
export const STORE_GRACE_MS = 500;

/** The domain services of one server, connected with each other and with the store behind core's ports. */
export interface Services {
  readonly access: Access;
  readonly admission: Admission;
  readonly api: Api;
  readonly audit: AuditTrail;
  readonly capacity: CapacityService;
  readonly clocks: Clocks;
  readonly counters: Counters;
  readonly directory: Directory;
  readonly drain: Drain;
  readonly ids: IdService;
  /** Undefined: this server writes none. */
  readonly ledger: Ledger | undefined;
  readonly health: Health;
  readonly node: NodeService;
  readonly nodes: NodeWatch;
  readonly plain: PlainHandlers;
  readonly poll: Poll;
  readonly presence: Presence;
  readonly redis: RedisTags;
  readonly tags: TagService;
  /** What this process tells of itself. */
  readonly told: OwnFigures;
}

/** What the services of a server are made of. */
export interface ServicesPorts {
  readonly store: Store;
  readonly emit: Emit;
  /** Default: what callers have a right to. */
  readonly authorise?: Authorise | undefined;
  readonly system?: System;
  readonly places?: External;
  readonly clockParts?: ClockParts;
  /** What is known of the store over the lives of this server. Default: nothing, and nothing is kept. */
  readonly memory?: PollMemory;
  /** Id of the store that this server belongs to, once that is known. Default: nothing that was kept of a store counts. */
  readonly storeId?: () => string | undefined;
  /** Of unguessable ids. Default: none. */
  readonly keys?: TextPorts["keys"];
  /** Tells other servers that a tag was changed. */
  readonly announce?: () => void;
  /** Default: no other server is asked for figures. */
  readonly figures?: FiguresParts<ToldFigures>;
}

export function createServices(config: Config, ports: ServicesPorts): Services {
  const { store, emit, system = realSystem } = ports;
  const { places = NO_EXTERNAL, clockParts = NO_CLOCK_PARTS, announce = () => undefined } = ports;
  const { keys = new Map(), memory, storeId = () => undefined } = ports;
  const { leaseFile } = clockParts;
  const { clock, timers, afterTurn, random, randomToken, wallClock } = system;
  const counters = createCounters();
  const guard = new VersionGuard();
  const storeTimeoutMs = config.storeTimeoutMs + STORE_GRACE_MS;
  const common = { store, guard, clock, timers, afterTurn, storeTimeoutMs, counters, emit };
  const onWentBack = (tag: string | undefined, detail: string): void => {
    // A fence of the whole store stands until a poll finds it over, so a poll has to set it.
    if (tag === undefined) return poll.hasten();
    poll.noteWentBack();
    directory.fenceTag(tag, detail);
  };
  const audit = createAudit(config, { store, emit, system });
  const upstream = { ...common, audit, onWentBack, history: () => directory.history };
  const { claims, grants, raises } = createUpstream(config, upstream);
  const lookup = new GroupedLookups(
    { ...common, onTags: (tags) => directory.admit(tags) },
    (tag) => store.groupOf?.(tag) ?? "",
  );
  const { limitWaiters: maxWaiters, limitTags: maxTags, prefetchShare } = config;
  const near = { system, store, raises, counters, emit };
  const external = createExternal(places, config, near, STORE_GRACE_MS);
  const texts = { keys, offsetAt: zoneOffsets() };
  const drain = createDrain(config, { ...common, directory: () => directory });
  const onTold = (isDraining: boolean): void => drain.told(isDraining);
  const kept = { ...common, wallClock, storeId, file: leaseFile?.grants };
  const record = new GrantRecord(kept, leaseFile?.found?.node?.id);
  const present = { ...common, system, record, onTold };
  const { presence, nodes, seen } = createPresence(config, clockParts, present);
  const nodeId = presence.id;
  const ledger = createLedger(config, { ...common, nodeId, wallClock });
  const { clocks, makeSource } = createSources(
    config,
    clockParts,
    { ...common, system, grants, external, nodeId, onWentBack },
    { poll: () => poll, directory: () => directory, callers: () => access.kept, ...seen },
  );
  const directory = new Directory(
    { ...common, grants, ledger, lookup, random, makeSource, texts, presence },
    { prefetchShare, maxWaiters, maxTags, storeTimeoutMs },
  );
  const saved = async (): Promise<void> => clocks.keeper?.saved();
  const polled = { ...common, audit, claims, directory, presence, nodes, record };
  const poll = createPoll(config, { ...polled, saved, memory, system });
  const admission = createAdmission(config, { ...common, idleMs: system.idleMs });
  const { redis, ticketDatabases } = external;
  const { access, ...callers } = createAccess(config, { ...common, ...system, leaseFile, saved });
  const its = { poll, directory, clocks, presence, drain, nodes, admission, access, redis };
  const node = createNode(config, { ...common, ...its, ticketDatabases, nodeId, wallClock });
  const ids = createIds(config, { directory, counters, ledger, randomToken });
  const effects = new TagEffects({ nodes, poll, clock, wallClock });
  const admin = { ...common, ...external, ledger, directory, texts, wallClock, nodes, poll };
  const administration = createAdministration({ ...admin, announce, effects }, storeTimeoutMs);
  const { tags, capacity } = administration;
  const gates = { admission, audit, drain };
  const rules = { access, ...callers, authorise: ports.authorise ?? callers.authorise };
  const shared = { ...common, ...gates, ...rules, wallClock };
  const health = new Health();
  const figures = createFigures({ ...shared, directory, node, nodes, clocks }, ports.figures);
  const api = createApi({ ids, ...administration, node, health, ...figures, ...shared });
  const plain = createPlainHandlers(new PlainIds({ directory, ids }), shared);
  const looking = { capacity, clocks, health, ledger, node, nodes, told: figures.own };
  const running = { access, poll, presence, redis, ...gates, ...looking };
  return { ...running, api, plain, counters, directory, ids, tags };
}

/** What asks the store for ids, under the version guard. */
function createUpstream(
  { storePoolSize: storeConnections }: Config,
  ports: Omit<GrantsPorts & LateClaimsPorts & RaisesPorts, "note" | "onBelow"> & {
    readonly audit: AuditTrail;
  },
): { readonly claims: LateClaims; readonly grants: Grants; readonly raises: Raises } {
  const { audit } = ports;
  const claims = new LateClaims({ ...ports, note: () => audit.ownNote("late claim") });
  const onBelow: OnBelow = (tag, ids) => claims.below(tag, ids);
  const grants = new Grants({ ...ports, onBelow, storeConnections });
  return { claims, grants, raises: new Raises({ ...ports, onBelow }) };
}

/** Undefined: none is written. */
function createLedger(
  config: Config,
  ports: Omit<LedgerPorts, "limits" | "server">,
): Ledger | undefined {
  if (!writesLedger(config)) return undefined;
  const limits = { keepForMs: config.ledgerKeepMs, maxRows: config.ledgerMaxRows };
  return new Ledger({ ...ports, server: config.instance ?? "", limits });
}

function createNode(
  config: Config,
  ports: Omit<NodePorts, "place" | "startedAtMs" | "version">,
): NodeService {
  const { wallClock } = ports;
  const place = storePlace(config);
  return new NodeService({ ...ports, version: serverVersion(), startedAtMs: wallClock(), place });
}

function createDrain(
  config: Config,
  ports: Pick<DrainPorts, "directory" | "timers" | "emit">,
): Drain {
  const server = serverNameOf(config.instance ?? "");
  return new Drain({ ...config, ...ports, server, refusal: () => draining("drained") });
}

/**
 * A server that goes on with the leases of an earlier run goes on with its row too, so that others wait for one server
 * only.
 */
function createPresence(
  config: Config,
  { leaseFile }: ClockParts,
  ports: {
    readonly system: System;
    readonly store: Store;
    readonly emit: Emit;
    readonly record: GrantRecord;
    readonly onTold: (isDraining: boolean) => void;
  },
): {
  readonly presence: Presence;
  readonly nodes: NodeWatch;
  readonly seen: Pick<LaterServices, "peers" | "presence">;
} {
  const { clock, randomToken, wallClock } = ports.system;
  const earlier = leaseFile?.found?.node;
  const startedAtMs = wallClock();
  const node = {
    id: ports.record.rowId ?? randomToken(),
    instance: config.instance ?? "",
    version: serverVersion(),
    zone: config.nodeZone,
    startedAtMs,
    maxOfflineMs: config.nodeMaxOffline.ms,
  };
  const firstCount = BigInt(Math.floor(startedAtMs));
  const { emit, store, record, onTold } = ports;
  const { allowUnprovedStore: issuesUnproved } = config;
  const proof = { proofPatienceMs: proofPatience(config.pollIntervalMs), issuesUnproved, record };
  const its = { node, firstCount, partsOf: store.partsOf, ...proof, clock, emit };
  const presence = new Presence(its, earlier);
  const nodes = new NodeWatch({ store, presence, clock, emit, onTold });
  return { presence, nodes, seen: { presence: () => presence, peers: () => nodes.peers } };
}

/** Makes the sources of ids of every kind, and the check of the clock that some of them use. */
function createSources(
  config: Config,
  clockParts: ClockParts,
  ports: Omit<SnowflakesPorts, "clocks" | "registryInRedis"> &
    Omit<SourcesPorts, "makers" | "redis" | "snowflake" | "ticket"> & {
      readonly external: ExternalTags;
      readonly nodeId: string;
    },
  later: LaterServices,
): { readonly clocks: Clocks; readonly makeSource: MakeSource } {
  const { system, external } = ports;
  const { registryInRedis } = external.redis;
  const clocks = createClocks(clockParts, config.clockMaxOffsetMs, ports, later);
  const makers = createTextMakers(system);
  const settings = {
    instance: instanceName(config, undefined, system.randomToken),
    dataCenter: config.snowflakeDataCenter,
    reserveAheadMs: config.snowflakeReserveAheadMs,
    maxWaiters: config.limitWaiters,
  };
  const snowflake = createSnowflakes(settings, { ...ports, registryInRedis, clocks });
  const makeSource = sourceMaker(
    { ...ports, ...external.sources, makers, snowflake },
    { maxWaiters: config.limitWaiters, maxCount: config.limitCountAsSegments },
  );
  return { clocks, makeSource };
}

function createAudit(
  { auditKeepMs: keepMs, auditMaxRows: maxRows, instance: server = "" }: Config,
  { store, emit, system }: Pick<ServicesPorts, "emit" | "store"> & { readonly system: System },
): AuditTrail {
  return new AuditTrail({ ...system, store, emit, server }, { keepMs, maxRows });
}

function createPoll(
  { epochGap, pollIntervalMs: intervalMs }: Config,
  ports: Omit<PollingPorts, "note"> & { readonly audit: AuditTrail },
): Poll {
  const note = (): AuditNote => ports.audit.ownNote("store.epoch_gap");
  return startPolling({ epochGap, intervalMs, timeoutMs: POLL_TIMEOUT_MS }, { ...ports, note });
}

/**
 * Makes the services that read and write the store without issuing. Worker leases have a gate of their own, so that
 * other work does not delay them.
 */
function createAdministration(
  ports: Omit<ConstructorParameters<typeof TagService>[0], "gate"> & {
    readonly store: Store;
    readonly directory: Directory;
    readonly poll: Poll;
    readonly timers: Timers;
    readonly ledger: Ledger | undefined;
  } & Omit<TrafficPorts, "gate"> &
    Omit<CapacityPorts, "gate" | "listWorkers" | "storeTimeoutMs" | "tagsInUse">,
  storeTimeoutMs: number,
): {
  readonly tags: TagService;
  readonly auditList: AuditList;
  readonly capacity: CapacityService;
  readonly lookups: LookupIdService;
  readonly traffic: TrafficService;
  readonly decoder: DecodeService;
  readonly workers: WorkerService;
  readonly issuing: IssuingService;
} {
  const gates = (): AdminGate => new AdminGate(ports.timers, storeTimeoutMs);
  const common = { ...ports, gate: gates() };
  const { directory } = ports;
  const workers = new WorkerService({ workersOf: workersIn(directory), gate: gates() });
  const capacity = new CapacityService({
    ...common,
    storeTimeoutMs,
    tagsInUse: (limit) => directory.usedLast(limit),
    listWorkers: (query, call) => workers.list(query, call),
  });
  const decoder = new DecodeService(common);
  return {
    capacity,
    auditList: new AuditList({ ...ports, gate: gates() }),
    lookups: new LookupIdService({ ...common, decoder }),
    tags: new TagService(common),
    traffic: new TrafficService(common),
    decoder,
    // A storm of other calls must not keep an operator from stopping everything.
    issuing: new IssuingService({ ...ports, gate: gates() }),
    workers,
  };
}

/** Quotas of callers keep as many buckets as there may be connections, and those of tags as there may be tags. */
function createAdmission(config: Config, ports: AdmissionPorts): Admission {
  const rates = {
    caller_calls: config.quotaCallerCalls,
    caller_ids: config.quotaCallerIds,
    tag_calls: config.quotaTagCalls,
    tag_ids: config.quotaTagIds,
  };
  const maxBuckets = Math.max(config.limitConnections, config.limitTags);
  const adminRates = { admin_calls: config.quotaAdminCalls, admin_tags: config.quotaAdminTags };
  const quotas = { rates, burstMs: config.quotaBurstMs, maxBuckets };
  const adminQuotas = { ...quotas, rates: adminRates };
  return new Admission(ports, { quotas, adminQuotas, maxWaiting: config.limitCalls });
}

function createIds(
  config: Config,
  ports: {
    readonly directory: Directory;
    readonly counters: Counters;
    readonly ledger: Ledger | undefined;
    readonly randomToken: () => string;
  },
): IdService {
  const { randomToken } = ports;
  const tokens = new ReleaseTokens(MAX_RELEASE_TOKENS, randomToken);
  const limits = {
    countAsList: config.limitCountAsList,
    countAsSegments: config.limitCountAsSegments,
  };
  return new IdService({ ...ports, tokens, limits });
}
