import {
  type Call,
  type IdmintError,
  type ObjectIdKind,
  type Segment,
  type UuidKind,
} from "@idmint/core";
import type { PeriodId } from "./api.ts";

/** The source of ids of a tag that servers hand out no segments of. Calls reject with, or throw, IdmintError. */
export interface KindIds {
  /** In the words of the proto. */
  readonly kind: string;
  /** An id, when it needs neither a wait nor a server. */
  now(): bigint | undefined;
  next(call: Call): Promise<bigint>;
  /** `name`: the name that the id is made from, for kinds that need one. Undefined: none was given. */
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
  /** Becomes the tag's source again, with these facts from the servers; false when it cannot. */
  resume(facts: KindFacts): boolean;
  /** The tag may have other settings now. */
  forget(): void;
  /** Refuses everything with this error, for good, and gives back what is leased. */
  close(error: IdmintError): Promise<void>;
}

/** What servers tell about a tag that they hand out no segments of. */
export interface KindFacts {
  readonly kind: string;
  /** Whether ids are text instead of numbers. */
  readonly isText: boolean;
  /** Most ids of one request. Undefined: the usual limit. */
  readonly maxCount: number | undefined;
  /** Settings of kinds uuid and object_id, whose ids are made here. */
  readonly made: ObjectIdKind | UuidKind | undefined;
}

/** What a refused allocation tells about its tag; undefined when it tells nothing. */
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

/** When this SDK does not know a setting, the servers make the ids. */
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
