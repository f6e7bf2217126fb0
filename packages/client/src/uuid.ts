import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { startupSnapshot } from "node:v8";
import { threadId } from "node:worker_threads";
import { type DceDomain, IdmintError, ObjectIdMaker, UuidMaker } from "@idmint/core";
import * as library from "uuid";

export { type DceDomain, decodeObjectId, type DecodedUuid, decodeUuid } from "@idmint/core";

const ports = { random: (count: number) => randomBytes(count), now: Date.now };

interface Makers {
  readonly uuid: UuidMaker;
  readonly objectId: ObjectIdMaker;
}

let made: Makers | undefined;

/** What the ids of this process are told apart by is drawn at the first id, not when the module is loaded. */
function makers(): Makers {
  if (made !== undefined) return made;
  if (startupSnapshot.isBuildingSnapshot()) {
    throw new IdmintError(
      "CLIENT_CLOSED",
      "ids cannot be made for a startup snapshot: every process would make the same ones",
    );
  }
  made = {
    uuid: new UuidMaker(library, ports),
    objectId: new ObjectIdMaker(ports, machine(), process.pid),
  };
  return made;
}

/** Threads of one process have the same number, so the thread is told apart with the machine. */
function machine(): Uint8Array {
  const name = `${hostname()}\n${threadId}`;
  return createHash("sha256").update(name).digest().subarray(0, 3);
}

/** UUIDs of versions 1 to 7, made in this process, without a server. */
export const uuid = {
  /** Time, clock sequence, random node. */
  v1: (): string => makers().uuid.v1(),
  /** DCE: about seven minutes of time, and the number of a person, group or organization, 0 … 2^32 − 1. */
  v2: (domain: DceDomain, number: number): string => makers().uuid.v2(domain, number),
  /** MD5 of a name within a namespace, which is a UUID or one of DNS, URL, OID, X500: the same for the same name. */
  v3: (name: string, namespace: string): string => makers().uuid.v3(name, namespace),
  /** Random. */
  v4: (): string => makers().uuid.v4(),
  /** SHA-1 of a name within a namespace, otherwise like v3. */
  v5: (name: string, namespace: string): string => makers().uuid.v5(name, namespace),
  /** Version 1 in an order that sorts; increases within the process. */
  v6: (): string => makers().uuid.v6(),
  /** Milliseconds and random bits; increases within the process. */
  v7: (): string => makers().uuid.v7(),
} as const;

/**
 * The next ObjectId of this process, 24 hexadecimal digits that increase: seconds, five random bytes of the process and a
 * counter; or with MACHINE_PROCESS seconds, three bytes of the host's name and the thread, two of the process' number and a
 * counter.
 */
export function objectId(variant: "CLASSIC" | "MACHINE_PROCESS" = "CLASSIC"): string {
  return makers().objectId.next(variant);
}
