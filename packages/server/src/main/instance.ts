import { hostname } from "node:os";
import type { Config } from "../config/table.ts";

/** Longest name; processes add their number, and holders of several worker ids `#1` to `#3`. */
const MAX_LENGTH = 112;

/**
 * What this server, or this process of it, is called among all that lease worker ids: the same after a restart, and another
 * name for each that runs. By default the host's name and the address that gRPC listens on, which no two servers of a host
 * share; one that takes any free port has no name that lasts.
 */
export function instanceName(
  { instance, grpcAddress }: Pick<Config, "instance" | "grpcAddress">,
  worker: number | undefined,
  randomToken: () => string,
): string {
  const { host, port } = grpcAddress;
  const last = port === 0 ? randomToken() : String(port);
  const name = instance ?? nameFrom(`${hostname()}:${host}:${last}`);
  return worker === undefined ? name : `${name}/${worker}`;
}

function nameFrom(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9._:-]/g, "-")
    .slice(-MAX_LENGTH)
    .replace(/^[^A-Za-z0-9]+/, "");
}
