import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  type Server,
  type ServiceDefinition,
  type ServiceError,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";

/** What a request is that does not decode. Left to grpc-js, it would be told as a fault of the server. */
export const MALFORMED: unique symbol = Symbol("malformed");

/** What its caller is told, as of any other method. */
export function malformed(path: string): Partial<ServiceError> {
  const details = `MALFORMED_REQUEST: the bytes do not decode as a request of ${path}`;
  return { code: status.INVALID_ARGUMENT, details };
}

/** Adds a service that is none of the table's. Methods with a stream of requests get `MALFORMED` as one of them. */
export function addService(
  server: Server,
  service: ServiceDefinition,
  implementation: UntypedServiceImplementation,
): void {
  const definition: Record<string, ServiceDefinition[string]> = {};
  const handlers: Record<string, UntypedServiceImplementation[string]> = {};
  for (const [name, method] of Object.entries(service)) {
    const { path, requestStream, responseStream, requestDeserialize } = method;
    definition[name] = { ...method, requestDeserialize: tolerant(requestDeserialize) };
    const handler = implementation[name];
    if (handler === undefined) continue;
    if (requestStream) handlers[name] = handler;
    else if (responseStream) {
      const take: handleServerStreamingCall<unknown, unknown> = (call) => {
        if (call.request === MALFORMED) call.emit("error", malformed(path));
        else (handler as typeof take)(call);
      };
      handlers[name] = take;
    } else {
      const take: handleUnaryCall<unknown, unknown> = (call, callback) => {
        if (call.request === MALFORMED) callback(malformed(path));
        else (handler as typeof take)(call, callback);
      };
      handlers[name] = take;
    }
  }
  server.addService(definition, handlers);
}

function tolerant(decode: (bytes: Buffer) => unknown): (bytes: Buffer) => unknown {
  return (bytes) => {
    try {
      return decode(bytes);
    } catch {
      return MALFORMED;
    }
  };
}
