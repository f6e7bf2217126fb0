import type { Call, IdmintError, Segment } from "@idmint/core";
import type { PeriodId } from "../api.ts";
import type { Route } from "../servers/fleet.ts";
import type { TagContext } from "../tag-context.ts";

/** The source of ids of a tag that servers hand out no segments of. Calls reject with, or throw, IdmintError. */
export interface IdSource {
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
  /** What was learned of the tag may be older than it seems. */
  expire(): void;
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
  /** Settings of kinds whose ids are made here, by their names in the API. */
  readonly settings: Readonly<Record<string, string>>;
}

/** A tag that servers hand out no segments of, and who wants its ids. */
export interface IdSourceRequest {
  readonly tag: string;
  readonly facts: KindFacts;
  /** The way of its loads through the servers. */
  readonly route: Route;
  /** When the request was sent that the servers answered so, by the client's clock. */
  readonly sentAtMs: number;
  /** Called when the tag may have other settings now. */
  readonly onDoubt: () => void;
  /** Asked after a wait. */
  readonly isWanted: () => boolean;
}

/** Makes the source of a tag of one kind. "unknown": by settings that this SDK does not know; undefined: it is not wanted. */
export type MakeIdSource = (
  request: IdSourceRequest,
  context: TagContext,
) => IdSource | "unknown" | Promise<IdSource | undefined>;

/** What a refused allocation tells about its tag; undefined when it tells nothing. */
export function kindFactsOf({ reason, metadata }: IdmintError): KindFacts | undefined {
  const { kind, text, max_count: maxCount } = metadata;
  if (reason !== "WRONG_KIND" || kind === undefined) return undefined;
  return {
    kind,
    isText: text === "true",
    maxCount: maxCount === undefined ? undefined : Math.max(1, Math.trunc(Number(maxCount)) || 1),
    settings: metadata,
  };
}
