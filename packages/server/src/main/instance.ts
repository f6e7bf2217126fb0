import { hostname } from "node:os";
import type { Config } from "../config/table.ts";

/** Longest name. Processes add their number to it, and holders of several worker ids add `#1` to `#3`. */
const MAX_LENGTH = 112;

/**
 * The name under which this server, or one of its processes, leases worker ids. It stays the same after a restart, and
 * no two that run have the same. By default it is the host's name and the gRPC address, which no two servers of a host
 * share. A server that takes any free port has no name that lasts.
 */
export function instanceName(
  { instance, grpcAddress }: Pick<Config, "instance" | "grpcAddress">,
  process: number | undefined,
  randomToken: () => string,
): string {
  const { host, port } = grpcAddress;
  const last = port === 0 ? randomToken() : String(port);
  const name = instance ?? nameFrom(`${hostname()}:${host}:${last}`);
  return process === undefined ? name : `${name}/${process}`;
}

function nameFrom(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9._:-]/g, "-")
    .slice(-MAX_LENGTH)
    .replace(/^[^A-Za-z0-9]+/, "");
}
