import { ServerReflectionRequest, ServerReflectionResponse } from "@idmint/proto/reflection";
import { Code } from "@idmint/proto/rpc";
import { type MessageWriter, writerOf } from "../codec/codec.ts";
import { decode, type Message, type StreamHandler } from "../method.ts";
import { NEEDS, ruleOf } from "../need.ts";
import type { ReflectionIndex } from "./reflection-index.ts";

/** They differ in nothing but the package's name. */
const SERVICES = [
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
] as const;

type Answer = ServerReflectionResponse["messageResponse"];

/** Most servers are never asked: the descriptors and their reader take 5 MB, so they are loaded for the first stream. */
let loading: Promise<ReflectionIndex> | undefined;

async function load(): Promise<ReflectionIndex> {
  return (await import("./reflection-index.ts")).indexOfApi();
}

/** grpc.reflection v1 and v1alpha: grpcurl, buf curl and their kin learn the API from the server itself. */
export function reflectionHandlers(): readonly StreamHandler[] {
  return SERVICES.map((service): StreamHandler => {
    const path = `/${service}/ServerReflectionInfo`;
    return {
      kind: "stream",
      rule: ruleOf(NEEDS.nothing, undefined),
      path,
      open: () => {
        return (bytes, from, to) =>
          respond(decode(ServerReflectionRequest, bytes.subarray(from, to), path));
      },
      response: writerOf(ServerReflectionResponse) as MessageWriter<unknown>,
    };
  });
}

async function respond(request: ServerReflectionRequest): Promise<Message> {
  const messageResponse = answer(request, await (loading ??= load()));
  return { validHost: request.host, originalRequest: request, messageResponse } as Message;
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
