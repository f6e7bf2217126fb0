import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock } from "@idmint/core";
import type { Api } from "../api/api.ts";
import { draining } from "../api/draining.ts";
import { losersOf } from "../doors/greed.ts";
import { Leave } from "../doors/leave.ts";
import { type ConnectionSource, Listener } from "../doors/listener.ts";
import { StreamLimits } from "../doors/stream-limits.ts";
import { InFlight } from "../in-flight.ts";
import type { CallTimes } from "../service/call-times.ts";
import type { Admission } from "../service/admission/admission.ts";
import { endsOf } from "../tcp.ts";
import { nodeTimers } from "../timers.ts";
import type { TlsFiles } from "../tls/files.ts";
import { NOTHING_SHOWN, shownBy, type ShownNames } from "../tls/names.ts";
import { FastConnection, type Shared } from "./fast-connection.ts";
import { SecureSockets } from "../tls/secure-sockets.ts";
import { type CallsPorts, type OpenStream, type Row, rowOf } from "./calls/call.ts";
import { Deadlines } from "./calls/deadlines.ts";
import { AwakeTime } from "./http2/lifetime.ts";
import {
  BEGUN_OF_ALL,
  CONNECTION_LIMITS,
  KEPT_OF_ALL,
  SMALL_TABLE_BYTES,
  WHOLE_TABLES,
} from "./http2/limits.ts";

const PREFACE_TIMEOUT_MS = 10_000;
/** How often connections are looked at: what is due, and who is silent. */
const LOOK_MS = 250;
/** Share of what may be begun, or kept, that is left after room was made, so that it need not be made again at once. */
const ROOM_SHARE = 0.875;
/** Share of its age by which a connection may be given up earlier or later, so that those of one moment do not go together. */
const AGE_JITTER = 0.1;

export interface FastDoorOptions {
  readonly host: string;
  readonly port: number;
  /** Undefined: in plain text. */
  readonly tls: TlsFiles | undefined;
  /** Whether common names in certificates count too. */
  readonly takesCommonNames: boolean;
  readonly maxConnections: number;
  readonly maxConnectionAgeMs: number;
  /** Connections come from here; host and port are not listened on. */
  readonly source?: ConnectionSource | undefined;
}

export interface FastDoorPorts extends Pick<
  CallsPorts,
  "access" | "counters" | "tracing" | "emit"
> {
  readonly api: Api;
  readonly clock: Clock;
  /** Undefined: calls are not timed. */
  readonly callTimes?: CallTimes | undefined;
  readonly onBadReload: (error: unknown) => void;
  readonly admission: Pick<Admission, "holdAll">;
}

/** The fast door: the table of handlers over gRPC, on sockets and without node:http2. */
export class FastDoor {
  readonly #ports: CallsPorts;
  readonly #rows: ReadonlyMap<string, Row>;
  readonly #listener: Listener;
  /** By their ends. */
  readonly #connections = new Map<string, FastConnection>();
  readonly #inFlight = new InFlight(nodeTimers);
  readonly #streams = new Set<OpenStream>();
  readonly #takesCommonNames: boolean;
  readonly #maxAgeMs: number;
  readonly #streamLimits: StreamLimits;
  readonly #leave: Leave;
  readonly #awake = new AwakeTime(performance.now(), 2 * LOOK_MS);
  readonly #shared: Shared = {
    held: { bytes: 0, kept: 0, begun: 0, makeRoom: () => this.#makeRoomSoon() },
    turn: { waiting: 0 },
  };
  #isMakingRoom = false;
  readonly #looking: NodeJS.Timeout;
  #secure: SecureSockets | undefined;

  private constructor(ports: FastDoorPorts, options: FastDoorOptions) {
    const { api, callTimes, clock } = ports;
    const deadlines = new Deadlines({ clock, timers: nodeTimers });
    this.#ports = { ...ports, deadlines, inFlight: this.#inFlight, streams: this.#streams };
    this.#rows = new Map(
      [...api].map(([path, handler]) => [path, rowOf(handler, callTimes?.of(path))]),
    );
    this.#takesCommonNames = options.takesCommonNames;
    this.#maxAgeMs = options.maxConnectionAgeMs;
    this.#streamLimits = new StreamLimits(
      { clock, timers: nodeTimers, holdAll: (callers) => ports.admission.holdAll(callers) },
      CONNECTION_LIMITS.streams,
    );
    this.#leave = new Leave({ clock, timers: nodeTimers });
    this.#looking = setInterval(() => this.#look(), LOOK_MS).unref();
    this.#listener = new Listener((socket) => this.#take(socket), {
      ...options,
      source: options.source,
      areUnread: options.tls !== undefined,
      prefaceTimeoutMs: PREFACE_TIMEOUT_MS,
      giveWay: (socket) => this.#giveWay(socket),
      onRefused: (peer, why) => this.#refused(peer, why),
    });
  }

  /** Makes the door; it is closed until `listen`. Rejects when the files for TLS do not fit together. */
  static async create(ports: FastDoorPorts, options: FastDoorOptions): Promise<FastDoor> {
    const door = new FastDoor(ports, options);
    if (options.tls !== undefined) {
      door.#secure = await SecureSockets.create(options.tls, {
        take: (socket) => door.#connect(socket, door.#shownBy(socket)),
        onRefused: (peer, why) => door.#refused(peer, why),
        onBadReload: ports.onBadReload,
      });
    }
    return door;
  }

  /** Fulfils with the port. */
  listen(): Promise<number> {
    return this.#listener.listen();
  }

  get connections(): number {
    return this.#listener.connections;
  }

  /**
   * To be called about once a second, with the refusals that are held of each caller: where many are, its connections become
   * narrow. Answers all callers whose connections are.
   */
  limitStreams(held: ReadonlyMap<string, number>): ReadonlySet<string> {
    return this.#streamLimits.look(held);
  }

  /** Ends the streams of callers who are not known any more: their token was revoked, or it expired. */
  recheck(): void {
    for (const stream of this.#streams) stream.recheck();
  }

  /** Tells connections to go, spread over that time, those too that come meanwhile. */
  leave(forMs: number): void {
    this.#leave.begin(forMs);
  }

  /** Calls are refused from now on: tells the connections that are left. */
  refuse(): void {
    this.#leave.finish();
  }

  /** Calls are taken again. */
  stay(): void {
    this.#leave.stop();
  }

  /** Fulfils when no call is in flight, or after `boundMs`. */
  idle(boundMs: number): Promise<void> {
    return this.#inFlight.idle(boundMs);
  }

  /** Takes no more connections, lets answers go out for at most `graceMs`, and closes every connection. */
  async close(graceMs: number): Promise<void> {
    this.#listener.stop();
    this.#secure?.close();
    for (const stream of this.#streams) stream.stop(draining("stopping"));
    this.#leave.end();
    await this.#listener.empty(graceMs);
    clearInterval(this.#looking);
    this.#listener.destroy();
  }

  #take(socket: Socket): void {
    if (this.#secure === undefined) this.#connect(socket, NOTHING_SHOWN);
    else this.#secure.take(socket);
  }

  #connect(socket: Socket, shown: ShownNames): void {
    const connection = new FastConnection(socket, shown, this.#rows, this.#ports, {
      maxAgeMs: this.#maxAgeMs * (1 - AGE_JITTER + 2 * AGE_JITTER * Math.random()),
      awake: this.#awake,
      shared: this.#shared,
      tableBytes: this.#connections.size < WHOLE_TABLES ? undefined : SMALL_TABLE_BYTES,
    });
    const forget = [this.#streamLimits.add(connection), this.#leave.add(connection)];
    const ends = endsOf(socket);
    this.#connections.set(ends, connection);
    socket.once("close", () => {
      for (const its of forget) its();
      if (this.#connections.get(ends) === connection) this.#connections.delete(ends);
    });
  }

  #look(): void {
    this.#awake.tick(performance.now());
    for (const connection of this.#connections.values()) connection.look();
  }

  #makeRoomSoon(): void {
    if (this.#isMakingRoom) return;
    this.#isMakingRoom = true;
    setImmediate(() => {
      this.#isMakingRoom = false;
      const { begun, kept } = this.#shared.held;
      if (begun > BEGUN_OF_ALL) this.#makeRoom(BEGUN_OF_ALL * ROOM_SHARE, (its) => its.begun);
      if (kept > KEPT_OF_ALL) this.#makeRoom(KEPT_OF_ALL * ROOM_SHARE, (its) => its.kept);
    });
  }

  #makeRoom(most: number, amount: (its: FastConnection) => number): void {
    const losers = losersOf(this.#connections.values(), most, amount);
    for (const connection of losers) connection.makeRoom();
  }

  /** It may be one that did not get as far as HTTP/2. */
  #giveWay(socket: Socket): void {
    const connection = this.#connections.get(endsOf(socket));
    if (connection === undefined) socket.destroy();
    else connection.giveWay();
  }

  /** Reading a certificate takes longer than a call, so it is done once for a connection. */
  #shownBy(socket: TLSSocket): ShownNames {
    const certificate = socket.getPeerCertificate();
    // Node answers an empty object where none was shown.
    if (!socket.authorized || certificate.valid_to === undefined) return NOTHING_SHOWN;
    return shownBy(certificate, this.#takesCommonNames);
  }

  #refused(peer: string, why: string): void {
    this.#ports.emit({ type: "connection-refused", peer, why });
  }
}
