import { fileDescriptorSetBase64 } from "@idmint/proto/descriptors";
import { ServerReflectionRequest, ServerReflectionResponse } from "@idmint/proto/reflection";
import { Code } from "@idmint/proto/rpc";
import { type MessageWriter, writerOf } from "../codec/codec.ts";
import { decode, type Message, type StreamHandler } from "../method.ts";
import { NEEDS, ruleOf } from "../need.ts";
import { indexDescriptors, type ReflectionIndex } from "./reflection-index.ts";

/** They differ in nothing but the package's name. */
const SERVICES = [
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
] as const;

type Answer = ServerReflectionResponse["messageResponse"];

/** Indexing takes a few milliseconds that a start need not wait for. */
let index: ReflectionIndex | undefined;

/** grpc.reflection v1 and v1alpha: grpcurl, buf curl and their kin learn the API from the server itself. */
export function reflectionHandlers(): readonly StreamHandler[] {
  return SERVICES.map((service): StreamHandler => {
    const path = `/${service}/ServerReflectionInfo`;
    return {
      kind: "stream",
      rule: ruleOf(NEEDS.nothing, undefined),
      path,
      open: () => {
        index ??= indexDescriptors(Buffer.from(fileDescriptorSetBase64, "base64"));
        const its = index;
        return (bytes, from, to) => {
          const request = decode(ServerReflectionRequest, bytes.subarray(from, to), path);
          const messageResponse = answer(request, its);
          return { validHost: request.host, originalRequest: request, messageResponse } as Message;
        };
      },
      response: writerOf(ServerReflectionResponse) as MessageWriter<unknown>,
    };
  });
}

function answer({ messageRequest }: ServerReflectionRequest, its: ReflectionIndex): Answer {
  switch (messageRequest?.$case) {
    case "listServices": {
      const service = its.services.map((name) => ({ name }));
      return { $case: "listServicesResponse", value: { service } };
    }
    case "fileByFilename":
      return files(its.fileByName(messageRequest.value), messageRequest.value);
    case "fileContainingSymbol":
      return files(its.fileOfSymbol(messageRequest.value), messageRequest.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = messageRequest.value;
      const found = its.fileOfExtension(containingType, extensionNumber);
      return files(found, `${containingType} ${extensionNumber}`);
    }
    case "allExtensionNumbersOfType": {
      const numbers = its.extensionNumbers(messageRequest.value);
      if (numbers === undefined) return notFound(messageRequest.value);
      const value = { baseTypeName: messageRequest.value, extensionNumber: [...numbers] };
      return { $case: "allExtensionNumbersResponse", value };
    }
    case undefined:
      break;
  }
  return failure(Code.INVALID_ARGUMENT, "an empty request");
}

function files(found: readonly Buffer[] | undefined, what: string): Answer {
  if (found === undefined) return notFound(what);
  return { $case: "fileDescriptorResponse", value: { fileDescriptorProto: [...found] } };
}

function notFound(what: string): Answer {
  return failure(Code.NOT_FOUND, `not found: ${what.slice(0, 256)}`);
}

function failure(errorCode: number, errorMessage: string): Answer {
  return { $case: "errorResponse", value: { errorCode, errorMessage } };
}
