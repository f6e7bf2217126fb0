// grpc.reflection.v1 and v1alpha. They differ in nothing but the package's name, so the messages of v1 serve both.
export {
  ErrorResponse,
  ExtensionNumberResponse,
  ExtensionRequest,
  FileDescriptorResponse,
  ListServiceResponse,
  ServerReflectionRequest,
  ServerReflectionResponse,
  ServerReflectionService,
  ServiceResponse,
} from "./gen/grpc/reflection/v1/reflection.ts";
export { ServerReflectionService as ServerReflectionV1AlphaService } from "./gen/grpc/reflection/v1alpha/reflection.ts";
