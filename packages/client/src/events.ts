import type { BufferEvent, IdmintError } from "@idmint/core";

/** What happened to an endpoint. */
export type EndpointChange =
  | {
      readonly type: "endpoint-failed";
      readonly address: string;
      readonly error: IdmintError;
      /** For how long it is asked only when no other endpoint is well, in milliseconds. */
      readonly coolDownMs: number;
    }
  | { readonly type: "endpoint-well"; readonly address: string };

/** What became of a load's unused ids at the end: what was not taken back is a gap. */
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

/** The servers said of which kind a tag is, and that its ids cannot be held in memory: calls for them ask a server. */
interface KindLearned {
  readonly type: "kind-learned";
  readonly tag: string;
  /** As in the proto: sequence, redis_snowflake, ticket. */
  readonly kind: string;
}

/** What the SDK tells `onEvent`: for logs and metrics, never needed for correct use. */
export type IdClientEvent = BufferEvent | EndpointChange | KindLearned | ReleaseOutcome;
