import { hostname, userInfo } from "node:os";
import type { AuditNote } from "@idmint/core/server";
import { realSystem } from "./system.ts";

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
