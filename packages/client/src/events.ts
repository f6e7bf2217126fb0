import type { BufferEvent, IdmintError, SnowflakeEvent } from "@idmint/core";

/** What happened to an endpoint, or to the list of them. */
export type EndpointChange =
  | {
      readonly type: "endpoint-failed";
      readonly address: string;
      readonly error: IdmintError;
      /** For this time, in milliseconds, it is asked only when no other endpoint is well. */
      readonly coolDownMs: number;
    }
  | { readonly type: "endpoint-well"; readonly address: string }
  | {
      /** A server answered a newer list of the servers. */
      readonly type: "servers-listed";
      readonly servers: number;
      /** How many of them are in the client's zone. 0 although `zone` is set: no server is there, or they spell it differently. */
      readonly inZone: number;
    };

/** What became of a load's unused ids when the client closed. Ids that were not taken back are a gap. */
type ReleaseOutcome =
  | {
      readonly type: "released";
      readonly tag: string;
      readonly unusedCount: number;
      readonly reclaimedCount: number;
    }
  | {
      readonly type: "release-failed";
      readonly tag: string;
      readonly unusedCount: number;
      readonly error: IdmintError;
    };

/** The servers told the kind of a tag that they hand out no segments of. */
interface KindLearned {
  readonly type: "kind-learned";
  readonly tag: string;
  /** As in the proto: sequence, redis_snowflake, ticket, snowflake, uuid, object_id; segment with a format or a key. */
  readonly kind: string;
}

/** What the SDK reports to `onEvent`, for logs and metrics. Correct use never depends on it. */
export type IdClientEvent =
  | BufferEvent
  | EndpointChange
  | KindLearned
  | ReleaseOutcome
  | SnowflakeEvent;
