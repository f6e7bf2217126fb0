import type { DceDomain } from "@idmint/core";
import { localTextMakers } from "./kinds/local-text-makers.ts";

export { type DceDomain, type DecodedUuid, decodeObjectId, decodeUuid } from "@idmint/core";

/** UUIDs of versions 1 to 7, made in this process, without a server. */
export const uuid = {
  /** Time, clock sequence, random node. */
  v1: (): string => localTextMakers().uuid.v1(),
  /** DCE: about seven minutes of time, and the number of a person, group or organization, 0 … 2^32 − 1. */
  v2: (domain: DceDomain, number: number): string => localTextMakers().uuid.v2(domain, number),
  /** MD5 of a name in a namespace: the same id for the same name. The namespace is a UUID or one of DNS, URL, OID, X500. */
  v3: (name: string, namespace: string): string => localTextMakers().uuid.v3(name, namespace),
  /** Random. */
  v4: (): string => localTextMakers().uuid.v4(),
  /** SHA-1 of a name in a namespace; otherwise like v3. */
  v5: (name: string, namespace: string): string => localTextMakers().uuid.v5(name, namespace),
  /** Like version 1, but sortable; increases within the process. */
  v6: (): string => localTextMakers().uuid.v6(),
  /** Milliseconds and random bits; increases within the process. */
  v7: (): string => localTextMakers().uuid.v7(),
} as const;

/**
 * The next ObjectId of this process: 24 hexadecimal digits that increase. CLASSIC is made of the seconds, five random bytes
 * of the process and a counter. MACHINE_PROCESS is made of the seconds, three bytes from the host's name and the thread, two
 * bytes of the process number and a counter.
 */
export function objectId(variant: "CLASSIC" | "MACHINE_PROCESS" = "CLASSIC"): string {
  return localTextMakers().objectId.next(variant);
}
