import type { Config } from "../../config/table.ts";
import type { Emit } from "../../service/events.ts";

const MIB = 1_024 * 1_024;
/** What a process takes that works, and what its doors may keep for strangers, without their connections. */
const PROCESS_BYTES = 256 * MIB;
/** What a connection takes that does nothing, and some more, since all may be open at once. */
const PLAIN_BYTES = 12 * 1_024;
const TLS_BYTES = 64 * 1_024;
/** However little memory there is, so many are taken. */
const LEAST = 64;

type Settings = Pick<
  Config,
  "limitConnections" | "processes" | "tlsCertFile" | "httpAddress" | "httpTls"
>;

/**
 * How many connections of gRPC, and as many of HTTP, this much memory has room for: a server that takes more is ended by the
 * kernel, with all callers, when strangers open them. Pure.
 */
export function roomFor(memoryBytes: number, settings: Settings): number {
  const { limitConnections, processes, tlsCertFile, httpAddress, httpTls } = settings;
  const grpcBytes = tlsCertFile === undefined ? PLAIN_BYTES : TLS_BYTES;
  const isHttpSecure = tlsCertFile !== undefined && httpTls === "on";
  const httpBytes = httpAddress === "none" ? 0 : isHttpSecure ? TLS_BYTES : PLAIN_BYTES;
  const left = memoryBytes - processes * PROCESS_BYTES;
  const room = Math.floor(left / (grpcBytes + httpBytes));
  return Math.min(limitConnections, Math.max(LEAST, room));
}

/** The configuration with no more connections than this much memory has room for. Says so where that is fewer. */
export function withRoom(config: Config, memoryBytes: number, emit: Emit): Config {
  const limit = roomFor(memoryBytes, config);
  if (limit === config.limitConnections) return config;
  const memoryMb = Math.floor(memoryBytes / MIB);
  emit({ type: "connections-cut", limit, wanted: config.limitConnections, memoryMb });
  return { ...config, limitConnections: limit };
}
