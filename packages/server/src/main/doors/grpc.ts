import type { Api } from "../../api/api.ts";
import { forCallers, withoutReflection } from "../../api/split.ts";
import { type Config, OPTIONS } from "../../config/table.ts";
import { CertificateNames } from "../../grpc/certificate-names.ts";
import type { GrpcDoorOptions, GrpcDoorPorts } from "../../grpc/door.ts";
import type { ConnectionSource } from "../../doors/listener.ts";
import type { TlsFiles } from "../../tls/files.ts";
import type { DrainedDoor } from "../../service/drain.ts";
import { listen } from "../neighbours.ts";

/** Most connections of administrators that are open at once. */
export const MAX_ADMIN_CONNECTIONS = 256;

/** Where connections come from in a process that does not listen itself. */
export interface ConnectionSources {
  readonly grpc: ConnectionSource;
  readonly admin: ConnectionSource;
  readonly http: ConnectionSource;
}

type DoorsPorts = Omit<GrpcDoorPorts, "callers" | "callTimes" | "tracing"> & {
  readonly access: GrpcDoorPorts["callers"]["access"];
  readonly telemetry: Pick<GrpcDoorPorts, "callTimes" | "tracing">;
};

/** What `GrpcDoors` asks of a door. */
interface Door extends Pick<DrainedDoor, "idle" | "leave" | "refuse" | "stay"> {
  readonly connections: number;
  listen(): Promise<number>;
  limitStreams(held: ReadonlyMap<string, number>): ReadonlySet<string>;
  recheck(): void;
  close(graceMs: number): Promise<void>;
}

/** The doors of gRPC: one for everybody, and where it is configured one for administrators. */
export class GrpcDoors {
  readonly #config: Config;
  readonly #open: Door;
  readonly #admin: Door | undefined;

  private constructor(config: Config, open: Door, admin: Door | undefined) {
    this.#config = config;
    this.#open = open;
    this.#admin = admin;
  }

  static async create(
    config: Config,
    { telemetry: { callTimes, tracing }, access, ...its }: DoorsPorts,
    sources: ConnectionSources | undefined,
  ): Promise<GrpcDoors> {
    const callers = { access, certificates: new CertificateNames(config.accessCommonNames) };
    const ports = { ...its, callers, callTimes, tracing };
    const { grpcAddress, adminAddress, limitConnections: maxConnections } = config;
    // Only the door that is wanted is loaded: both take time and memory.
    const make = async (
      api: Api,
      options: Omit<GrpcDoorOptions, "maxConnectionAgeMs" | "tls">,
    ): Promise<Door> => {
      const files = tlsOf(config);
      const onBadReload = (cause: unknown): void =>
        ports.emit({ type: "internal-error", where: "reload of the TLS files", cause });
      const maxConnectionAgeMs = config.limitConnectionAgeMs;
      if (config.grpcDoor === "fast") {
        const takesCommonNames = config.accessCommonNames;
        const its = { ...options, maxConnectionAgeMs, tls: files, takesCommonNames };
        const { FastDoor } = await import("../../fast/door.ts");
        return FastDoor.create({ ...ports, access, api, onBadReload }, its);
      }
      const { GrpcDoor } = await import("../../grpc/door.ts");
      const { tlsCredentials } = await import("../../grpc/credentials.ts");
      const tls = files === undefined ? undefined : await tlsCredentials(files, onBadReload);
      return new GrpcDoor({ ...ports, api }, { ...options, maxConnectionAgeMs, tls });
    };
    const api = config.reflection === "on" ? ports.api : withoutReflection(ports.api);
    const open = await make(adminAddress === undefined ? api : forCallers(api), {
      ...grpcAddress,
      maxConnections,
      source: sources?.grpc,
    });
    if (adminAddress === undefined) return new GrpcDoors(config, open, undefined);
    const admin = await make(api, {
      ...adminAddress,
      maxConnections: MAX_ADMIN_CONNECTIONS,
      source: sources?.admin,
    });
    return new GrpcDoors(config, open, admin);
  }

  /** Fulfils with the addresses; that for administrators is empty where they have none of their own. */
  async listen(): Promise<{ readonly grpcAddress: string; readonly adminAddress: string }> {
    const { grpcAddress, adminAddress } = this.#config;
    const admin =
      this.#admin === undefined || adminAddress === undefined
        ? ""
        : await listen(this.#admin, OPTIONS.adminAddress, adminAddress);
    const open = await listen(this.#open, OPTIONS.grpcAddress, grpcAddress);
    return { grpcAddress: open, adminAddress: admin };
  }

  get connections(): number {
    return this.#all.reduce((sum, door) => sum + door.connections, 0);
  }

  recheck(): void {
    for (const door of this.#all) door.recheck();
  }

  limitStreams(held: ReadonlyMap<string, number>): ReadonlySet<string> {
    return new Set(this.#all.flatMap((door) => [...door.limitStreams(held)]));
  }

  leave(forMs: number): void {
    for (const door of this.#all) door.leave(forMs);
  }

  refuse(): void {
    for (const door of this.#all) door.refuse();
  }

  stay(): void {
    for (const door of this.#all) door.stay();
  }

  async idle(boundMs: number): Promise<void> {
    await Promise.all(this.#all.map((door) => door.idle(boundMs)));
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all(this.#all.map((door) => door.close(graceMs)));
  }

  get #all(): readonly Door[] {
    return this.#admin === undefined ? [this.#open] : [this.#open, this.#admin];
  }
}

export function tlsOf(config: Config): TlsFiles | undefined {
  const { tlsCertFile: certFile, tlsKeyFile: keyFile, tlsClientCaFile: clientCaFile } = config;
  if (certFile === undefined || keyFile === undefined) return undefined;
  return { certFile, keyFile, clientCaFile };
}
