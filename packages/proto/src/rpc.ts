// google.rpc: the status that travels in `grpc-status-details-bin`, and the details of errors.
export { Any } from "./gen/google/protobuf/any.ts";
export { Code } from "./gen/google/rpc/code.ts";
export {
  BadRequest,
  BadRequest_FieldViolation,
  DebugInfo,
  ErrorInfo,
  Help,
  Help_Link,
  LocalizedMessage,
  PreconditionFailure,
  PreconditionFailure_Violation,
  QuotaFailure,
  QuotaFailure_Violation,
  RequestInfo,
  ResourceInfo,
  RetryInfo,
} from "./gen/google/rpc/error_details.ts";
export { Status } from "./gen/google/rpc/status.ts";
