import { type IdmintError, invalidField } from "@idmint/core";
import type { Store } from "@idmint/core/server";
import { ActiveAlarms } from "../alarms/active.ts";
import { Alarms } from "../alarms/alarms.ts";
import { webhook } from "../alarms/webhook.ts";
import type { Authorise } from "../api/method.ts";
import { decodedFigures, type ToldFigures } from "../api/nodes/figures.ts";
import { storePlace } from "../config/store-place.ts";
import type { Config } from "../config/table.ts";
import { v8Flags } from "../v8-flags.ts";
import type { Probes } from "../http/probes.ts";
import { type Emit, emitter } from "../service/events.ts";
import type { ActiveAlarm } from "../service/figures/active-alarm.ts";
import type { FiguresRequest } from "../service/figures/fleet.ts";
import type { FiguresParts } from "../service/figures/parts.ts";
import { StoreWait } from "../service/upstream/store-wait.ts";
import { knownHistory } from "../service/worker-ids/clocks.ts";
import type { OpenLeaseFile } from "../store/kept/lease-file.ts";
import { StorePins } from "../store/pins/pin.ts";
import {
  openAlarmQueue,
  openRedisServers,
  openTagSignals,
  type TagSignals,
} from "../store/open-redis.ts";
import { openTicketDatabases } from "../store/open-tickets.ts";
import { logEvents } from "../telemetry/log-events.ts";
import { createLogger, type LineSink } from "../telemetry/logger.ts";
import { EventLoopWatch } from "../telemetry/metrics/event-loop.ts";
import { Telemetry } from "../telemetry/telemetry.ts";
import { hostPort } from "./address.ts";
import { type ConnectionSources, GrpcDoors } from "./doors/grpc.ts";
import { openHttp } from "./doors/http.ts";
import { follow, stopFollowing } from "./following.ts";
import { withRoom } from "./doors/room.ts";
import { instanceName } from "./instance.ts";
import { Peers } from "./peers.ts";
import { Running, type RunningServer } from "./running.ts";
import { createServices, type Services } from "./services.ts";
import { meetingPlaceOf, openStoreOrLater, redisConfigsOf, ticketConfigsOf } from "./stores.ts";
import { expectedOfAll } from "../store/pins/expected.ts";
import { openStoreMemory, type StoreMemory } from "../store/pins/memory.ts";
import { memoryBytes, realSystem } from "./system.ts";
import { openKeys } from "./text-ids.ts";
import { serverVersion } from "./version.ts";

/** The id of a store that is given from outside: it has no pin. */
const GIVEN_STORE = "given";
const ALL_ADDRESSES: readonly string[] = ["0.0.0.0", "::", ""];

/** What tests and embedders may replace. */
export interface ServerParts {
  /** Default: the store that the configuration names. The server closes it. */
  readonly store?: Store;
  /** Default: what callers have a right to. */
  readonly authorise?: Authorise;
  /** Hears of everything that happens, after the log. */
  readonly onEvent?: Emit;
  /** Takes the log's lines instead of stderr. */
  readonly logSink?: LineSink;
  /** Default: what the machine or the container has. */
  readonly memoryBytes?: number;
  /** Makes the tag `demo`, if there is none. */
  readonly makesDemoTag?: boolean;
  /** Ends a start that waits for its store. A server that runs is ended by `close`. */
  readonly signal?: AbortSignal;
  /** Set when this process is one of several. */
  readonly process?: ProcessParts;
}

/** What a process gets from its parent. */
interface ProcessParts {
  /** From 1. */
  readonly number: number;
  /** Connections come from here. The server listens on no port. */
  readonly connections: ConnectionSources;
  /** What all processes know of the store. */
  readonly memory: StoreMemory;
  /** What the parent tells probes of all processes. */
  readonly probes: { readonly ready: Probes["ready"]; readonly metrics: () => Promise<string> };
  /** Figures of the other processes that tell them in time, encoded; never rejects. */
  readonly siblings: (request: FiguresRequest, timeoutMs: number) => Promise<readonly Uint8Array[]>;
}

/**
 * The composition root: the one place that sees both the doors and the stores.
 *
 * Starts a server: opens its store, asks it where it is, and listens. Rejects with IdmintError when the store cannot be
 * used or an address cannot be had; nothing is left behind then.
 */
export async function startServer(asked: Config, parts: ServerParts = {}): Promise<RunningServer> {
  if (asked.processes !== 1)
    throw invalidField("processes", "must be 1 for a server in one process");
  const { logLevel: level, logFormat: format } = asked;
  const { process: own, store: given } = parts;
  const log = createLogger({ level, format, process: own?.number }, parts.logSink);
  const telemetry = new Telemetry(asked);
  const listeners = [logEvents(log.logger, () => realSystem.clock.now()), telemetry.hear];
  if (parts.onEvent !== undefined) listeners.push(parts.onEvent);
  const emit = emitter(listeners);
  const config = fitting(asked, parts, emit);
  const flush = (): Promise<void> => log.flush();
  const undo: Undo[] = [flush];
  const stores: Closable[] = [];
  try {
    const instance = instanceName(config, own?.number, realSystem.randomToken);
    await telemetry.open({ ...realSystem, version: serverVersion(), instance, emit });
    undo.unshift(() => telemetry.stop());
    const opened = openedInto(stores, undo);
    let pins: StorePins | undefined = undefined;
    const storeId = (): string | undefined => (given ? GIVEN_STORE : pins?.of("").id);
    const alarms = opened(await openAlarms(config, { listeners, emit, storeId }));
    const leaseFile = opened(await openLeases(config, own?.number, emit));
    const known = knownHistory(leaseFile, realSystem.clock.now());
    const memory = opened(own?.memory ?? (await memoryOf(config, emit)));
    pins = new StorePins(memory);
    const storeWait = storeWaitOf(config, parts, emit);
    const bare = opened(given ?? (await openStoreOrLater(config, known, storeWait, pins)));
    const store = telemetry.observed(bare, storePlace(config));
    const places = await openPlaces(config, { emit, telemetry, opened, pins, storeId });
    const signals = opened(await openSignals(config, storeId));
    const peers = opened(new Peers(config, emit));
    const services = createServices(
      { ...config, instance },
      {
        store,
        emit,
        authorise: parts.authorise,
        places,
        clockParts: { leaseFile, peerClocks: peers.clocks },
        memory,
        storeId,
        keys: await openKeys(config),
        announce: () => signals?.tell(),
        figures: figuresParts(instance, { telemetry, listeners, opened, peers, own }),
      },
    );
    const calls = { ...services, ...realSystem, telemetry, emit };
    const grpc = await GrpcDoors.create(config, calls, own?.connections);
    undo.unshift(() => stopServing(services, grpc));
    await follow(services, known, { ...parts, store, emit, config, grpc, storeWait });
    signals?.start(() => services.poll.hasten());
    undo.unshift(() => services.redis.stop());
    services.redis.start();
    alarms?.start();
    telemetry.start({ ...services, ...realSystem, ...places });
    let listening = { grpcAddress: "", adminAddress: "" };
    const answers = { grpcAddress: () => listening.grpcAddress, metrics: telemetry.scrape(emit) };
    const probes = probesOf({ ready: () => services.node.health, ...answers }, own);
    const { http, httpAddress } = await openHttp(config, { ...calls, probes }, own?.connections);
    undo.unshift(() => http?.close(0));
    listening = await grpc.listen();
    services.presence.advertise(advertised(config, listening.grpcAddress));
    const its = { ...config, ...realSystem, ...listening, httpAddress, v8Flags: v8Flags() };
    return new Running({ ...its, grpc, http, services, stores, telemetry, emit, flush });
  } catch (error) {
    for (const step of undo) await settled(step);
    throw error;
  }
}

/** The parent of several processes has looked already what fits into memory. */
function fitting(
  asked: Config,
  { process: own, memoryBytes: bytes = memoryBytes() }: ServerParts,
  emit: Emit,
): Config {
  return own === undefined ? withRoom(asked, bytes, emit) : asked;
}

type Undo = () => void | Promise<void>;

/** Notes what was opened, to be closed again. */
function openedInto(
  stores: Closable[],
  undo: Undo[],
): <Part extends Closable | undefined>(part: Part) => Part {
  return (part) => {
    if (part === undefined) return part;
    stores.push(part);
    undo.unshift(() => part.close());
    return part;
  };
}

function storeWaitOf(config: Config, { signal }: ServerParts, emit: Emit): StoreWait {
  return new StoreWait({ ...realSystem, emit }, config.storeStartTimeoutMs, signal);
}

/** What probes are told: of this server, or of all processes of which it is one. */
function probesOf(single: Probes, own: ProcessParts | undefined): Probes {
  if (own === undefined) return single;
  const { probes } = own;
  const metrics = single.metrics === undefined ? undefined : () => probes.metrics();
  return { ...single, ready: () => probes.ready(), metrics };
}

type Closable = Pick<Store, "close">;

/** Where tags count besides the store. */
async function openPlaces(
  config: Config,
  {
    emit,
    telemetry,
    opened,
    pins,
    storeId,
  }: {
    emit: Emit;
    telemetry: Telemetry;
    opened: (part: Closable) => void;
    pins: StorePins;
    storeId: () => string | undefined;
  },
): Promise<{
  readonly ticketDatabases: Awaited<ReturnType<typeof openTicketDatabases>>;
  readonly redisServers: Awaited<ReturnType<typeof openRedisServers>>;
}> {
  const ticketDatabases = await openTicketDatabases(ticketConfigsOf(config), pins);
  for (const database of ticketDatabases) opened(database);
  const redisConfigs = redisConfigsOf(config, emit, telemetry.aroundRedis);
  const redisServers = await openRedisServers(redisConfigs, storeId);
  for (const redisServer of redisServers) opened(redisServer);
  return { ticketDatabases, redisServers };
}

async function stopServing(services: Services, grpc: GrpcDoors): Promise<void> {
  await settled(() => stopFollowing(services));
  await grpc.close(0);
}

function memoryOf(config: Config, emit: Emit): Promise<StoreMemory> {
  const { storeExpectId, storeMoreUrls, snowflakeCacheFile: cacheFile } = config;
  const expected = expectedOfAll(storeExpectId, storeMoreUrls.keys());
  const onFailed = (error: IdmintError): void => emit({ type: "pin-file-failed", error });
  return openStoreMemory({ expected, cacheFile, onFailed });
}

/** The file of this server's leases, if it keeps any. Each process has its own. */
async function openLeases(
  config: Config,
  process: number | undefined,
  emit: Emit,
): Promise<OpenLeaseFile | undefined> {
  const { snowflakeCacheFile: file } = config;
  if (file === undefined) return undefined;
  const { openLeaseFile } = await import("../store/kept/lease-file.ts");
  const name = process === undefined ? file : `${file}.${process}`;
  const onGrantsFailed = (error: IdmintError): void => emit({ type: "pin-file-failed", error });
  const opened = await openLeaseFile(name, realSystem.clock, onGrantsFailed);
  if (opened.ignored !== undefined) emit({ type: "lease-file-ignored", why: opened.ignored });
  return opened;
}

/**
 * The address at which others reach this server. Empty when it listens on all addresses of its host and none is
 * configured.
 */
function advertised({ nodeAdvertise, grpcAddress }: Config, listening: string): string {
  if (nodeAdvertise !== undefined) return hostPort(nodeAdvertise);
  return ALL_ADDRESSES.includes(grpcAddress.host) ? "" : listening;
}

/** What a server's figures are made of besides its services. */
function figuresParts(
  instance: string,
  {
    telemetry,
    listeners,
    opened,
    peers,
    own,
  }: {
    readonly telemetry: Telemetry;
    readonly listeners: Emit[];
    readonly opened: (part: Closable) => void;
    readonly peers: Peers;
    readonly own: ProcessParts | undefined;
  },
): FiguresParts<ToldFigures> {
  const { callTimes } = telemetry;
  const active = new ActiveAlarms(realSystem, instance);
  listeners.push(active.hear);
  const loop = new EventLoopWatch();
  loop.start();
  opened({ close: async () => loop.stop() });
  const alarms = (): readonly ActiveAlarm[] => active.now();
  const siblings: FiguresParts<ToldFigures>["siblings"] = async (...asked) =>
    ((await own?.siblings(...asked)) ?? []).map(decodedFigures);
  return { callTimes, alarms, peers, readLoop: () => loop.read(), siblings };
}

async function openSignals(
  config: Config,
  storeId: () => string | undefined,
): Promise<TagSignals | undefined> {
  const place = meetingPlaceOf(config);
  return place === undefined ? undefined : openTagSignals(place, storeId);
}

/** Makes the alarms; undefined without a webhook, since there is nobody to tell. */
async function openAlarms(
  config: Config,
  {
    listeners,
    emit,
    storeId,
  }: { listeners: Emit[]; emit: Emit; storeId: () => string | undefined },
): Promise<Alarms | undefined> {
  const { alarmWebhookUrl: url, alarmWebhookToken: token, alarmWebhookTimeoutMs } = config;
  if (url === undefined) return undefined;
  const place = meetingPlaceOf(config);
  const queue = place === undefined ? undefined : await openAlarmQueue(place, storeId);
  const deliver = webhook({ url, token, timeoutMs: alarmWebhookTimeoutMs });
  const newId = realSystem.randomToken;
  const options = { lastingMs: config.alarmAfterMs, grpcPort: config.grpcAddress.port };
  const alarms = new Alarms({ ...realSystem, queue, deliver, newId, emit }, options);
  listeners.push(alarms.hear);
  return alarms;
}

/** Runs one step of undoing a start. It goes on when a step fails, since the error that began it is the one to show. */
async function settled(step: Undo): Promise<void> {
  try {
    await step();
  } catch {}
}
