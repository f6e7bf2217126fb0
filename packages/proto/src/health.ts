// grpc.health.v1
export {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
  HealthListRequest,
  HealthListResponse,
  HealthService,
} from "./gen/grpc/health/v1/health.ts";
