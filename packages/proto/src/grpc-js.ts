// Clients of all services for @grpc/grpc-js, and the interfaces of its servers. Nothing else of this package loads grpc-js.
export {
  AccessServiceClient,
  type AccessServiceServer,
} from "./gen/idmint/v1/access_service.grpc-js.ts";
export {
  AuditServiceClient,
  type AuditServiceServer,
} from "./gen/idmint/v1/audit_service.grpc-js.ts";
export { IdServiceClient, type IdServiceServer } from "./gen/idmint/v1/id_service.grpc-js.ts";
export { NodeServiceClient, type NodeServiceServer } from "./gen/idmint/v1/node_service.grpc-js.ts";
export { TagServiceClient, type TagServiceServer } from "./gen/idmint/v1/tag_service.grpc-js.ts";
export {
  WorkerServiceClient,
  type WorkerServiceServer,
} from "./gen/idmint/v1/worker_service.grpc-js.ts";
export { HealthClient, type HealthServer } from "./gen/grpc/health/v1/health.grpc-js.ts";
export {
  ServerReflectionClient,
  type ServerReflectionServer,
} from "./gen/grpc/reflection/v1/reflection.grpc-js.ts";
export { ServerReflectionClient as ServerReflectionV1AlphaClient } from "./gen/grpc/reflection/v1alpha/reflection.grpc-js.ts";
