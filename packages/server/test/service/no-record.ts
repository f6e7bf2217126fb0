import { VersionGuard } from "@idmint/core/server";
import { GrantRecord } from "../../src/service/upstream/grant-record.ts";

/** Of a server that keeps nothing. */
export function noRecord(guard: VersionGuard = new VersionGuard()): GrantRecord {
  const clock = { now: () => 0 };
  const ports = { file: undefined, guard, clock, wallClock: () => 0, storeId: () => undefined };
  return new GrantRecord(ports, undefined);
}
