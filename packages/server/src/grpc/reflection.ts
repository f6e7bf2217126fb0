import {
  type Server,
  type ServerDuplexStream,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { fileDescriptorSetBase64 } from "@idmint/proto/descriptors";
import {
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionService,
  ServerReflectionV1AlphaService,
} from "@idmint/proto/reflection";
import { addService, MALFORMED, malformed } from "./decoding.ts";
import { indexDescriptors, type ReflectionIndex } from "./reflection-index.ts";

type Stream = ServerDuplexStream<ServerReflectionRequest, ServerReflectionResponse>;
type Answer = ServerReflectionResponse["messageResponse"];

/** Registers grpc.reflection v1 and v1alpha: grpcurl, buf curl and their kin learn the API from the server itself. */
export function addReflection(server: Server): void {
  // Indexing takes a few milliseconds that a start need not wait for.
  let index: ReflectionIndex | undefined;
  const implementation: UntypedServiceImplementation = {
    serverReflectionInfo: (call: Stream) => {
      index ??= indexDescriptors(Buffer.from(fileDescriptorSetBase64, "base64"));
      serve(call, index);
    },
  };
  addService(server, ServerReflectionService, implementation);
  addService(server, ServerReflectionV1AlphaService, implementation);
}

function serve(call: Stream, index: ReflectionIndex): void {
  call.on("data", (request: ServerReflectionRequest | typeof MALFORMED) => {
    if (request === MALFORMED) {
      call.emit("error", malformed(call.getPath()));
      return;
    }
    const messageResponse = answer(request, index);
    const response = { validHost: request.host, originalRequest: request, messageResponse };
    if (call.write(response)) return;
    // A caller that asks faster than it reads waits, instead of filling memory.
    call.pause();
    call.once("drain", () => call.resume());
  });
  call.on("end", () => call.end());
  call.on("error", () => call.end());
}

function answer({ messageRequest }: ServerReflectionRequest, index: ReflectionIndex): Answer {
  switch (messageRequest?.$case) {
    case "listServices": {
      const service = index.services.map((name) => ({ name }));
      return { $case: "listServicesResponse", value: { service } };
    }
    case "fileByFilename":
      return files(index.fileByName(messageRequest.value), messageRequest.value);
    case "fileContainingSymbol":
      return files(index.fileOfSymbol(messageRequest.value), messageRequest.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = messageRequest.value;
      const found = index.fileOfExtension(containingType, extensionNumber);
      return files(found, `${containingType} ${extensionNumber}`);
    }
    case "allExtensionNumbersOfType": {
      const numbers = index.extensionNumbers(messageRequest.value);
      if (numbers === undefined) return notFound(messageRequest.value);
      const value = { baseTypeName: messageRequest.value, extensionNumber: [...numbers] };
      return { $case: "allExtensionNumbersResponse", value };
    }
    case undefined:
      break;
  }
  return failure(status.INVALID_ARGUMENT, "an empty request");
}

function files(found: readonly Buffer[] | undefined, what: string): Answer {
  if (found === undefined) return notFound(what);
  return { $case: "fileDescriptorResponse", value: { fileDescriptorProto: [...found] } };
}

function notFound(what: string): Answer {
  return failure(status.NOT_FOUND, `not found: ${what.slice(0, 256)}`);
}

function failure(errorCode: number, errorMessage: string): Answer {
  return { $case: "errorResponse", value: { errorCode, errorMessage } };
}
