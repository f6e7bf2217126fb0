// grpc.health.v1
export {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
  HealthClient,
  HealthListRequest,
  HealthListResponse,
  type HealthServer,
  HealthService,
} from "./gen/grpc/health/v1/health.ts";
