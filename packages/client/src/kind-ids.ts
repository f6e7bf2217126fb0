import {
  type Call,
  type IdmintError,
  type ObjectIdKind,
  type Segment,
  type UuidKind,
} from "@idmint/core";
import type { PeriodId } from "./api.ts";

/** Where the ids of a tag come from of which servers hand out no segments. Calls reject with, or throw, IdmintError. */
export interface KindIds {
  /** In the words of the proto. */
  readonly kind: string;
  /** An id, when it needs neither a wait nor a server. */
  now(): bigint | undefined;
  next(call: Call): Promise<bigint>;
  /** `name`: what the id is made of, for kinds whose ids are; undefined: none was given. */
  nextText(call: Call, name: string | undefined): Promise<string>;
  nextNumber(call: Call): Promise<number>;
  nextPeriodId(call: Call): Promise<PeriodId>;
  take(count: number, call: Call): Promise<readonly Segment[]>;
  warm(call: Call): Promise<void>;
  nextSync(): bigint;
  nextTextSync(): string;
  nextNumberSync(): number;
  /** How long nobody has used it, in milliseconds. To be called about once a second. */
  idleMs(): number;
  /** Takes over again, for a tag of which the servers say this; false when it cannot. */
  resume(facts: KindFacts): boolean;
  /** The tag may be another one now. */
  forget(): void;
  /** Refuses everything with this error, for good, and gives back what is leased. */
  close(error: IdmintError): Promise<void>;
}

/** What servers say of a tag of which they hand out no segments. */
export interface KindFacts {
  readonly kind: string;
  /** Whether ids are text, and no numbers. */
  readonly isText: boolean;
  /** Most ids of one request; undefined: as of any other. */
  readonly maxCount: number | undefined;
  /** Settings of kinds uuid and object_id, whose ids are made here. */
  readonly made: ObjectIdKind | UuidKind | undefined;
}

/** What the refusal of an allocation says of its tag; undefined when that is nothing. */
export function kindFactsOf({ reason, metadata }: IdmintError): KindFacts | undefined {
  const { kind, text, max_count: maxCount } = metadata;
  if (reason !== "WRONG_KIND" || kind === undefined) return undefined;
  return {
    kind,
    isText: text === "true",
    maxCount: maxCount === undefined ? undefined : Math.max(1, Math.trunc(Number(maxCount)) || 1),
    made: madeKindOf(kind, metadata),
  };
}

/** Settings that this SDK does not know leave the ids to the servers. */
function madeKindOf(
  kind: string,
  { version, domain, number, namespace = "", variant }: Readonly<Record<string, string>>,
): ObjectIdKind | UuidKind | undefined {
  if (kind === "object_id") {
    if (variant !== "CLASSIC" && variant !== "MACHINE_PROCESS") return undefined;
    return { kind, variant };
  }
  if (kind !== "uuid" || version === undefined) return undefined;
  switch (version) {
    case "1":
    case "4":
    case "6":
    case "7":
      return { kind, version: VERSIONS[version] };
    case "2":
      if (domain !== "PERSON" && domain !== "GROUP" && domain !== "ORG") return undefined;
      return { kind, version: 2, domain, number: Number(number) };
    case "3":
    case "5":
      return { kind, version: version === "3" ? 3 : 5, namespace };
    default:
      return undefined;
  }
}

const VERSIONS = { "1": 1, "4": 4, "6": 6, "7": 7 } as const;
