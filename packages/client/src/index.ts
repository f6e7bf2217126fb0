import "./node-version.ts";

// For users.
export {
  type Code,
  type FieldViolation,
  IdmintError,
  idsOf,
  paymentSerial,
  type Reason,
  type Segment,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
} from "@idmint/core";
export type { CallOptions, IdClient, IdTag, PeriodId, TextOptions } from "./api.ts";
export { createIdClient } from "./client.ts";
export type { IdClientEvent } from "./events.ts";
export type { IdClientOptions, TlsOptions, WorkerOptions } from "./options.ts";
// For those who call idmint's other services by gRPC themselves.
export { fromServiceError, type GrpcFailure } from "./servers/errors.ts";
