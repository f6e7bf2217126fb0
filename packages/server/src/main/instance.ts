import { hostname, userInfo } from "node:os";
import type { AuditNote } from "@idmint/core/server";
import type { Config } from "../config/table.ts";
import { realSystem } from "./system.ts";

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

/**
 * Who runs a command that works on a store itself, as the audit trail names it. The operating system's word for the user
 * is a claim: whoever can open the store can write anything into it.
 */
export function operatorNote(command: string): AuditNote {
  const who = { principal: userName(), proof: "claim", peer: hostname() };
  return { id: realSystem.randomToken(), ...who, method: command, server: "" };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user without a name.
    return `uid-${process.getuid?.() ?? "unknown"}`;
  }
}
