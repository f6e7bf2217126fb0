import {
  create,
  createFileRegistry,
  type DescMethod,
  type FileRegistry,
  fromBinary,
  fromJsonString,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { ServerReflectionClient } from "@idmint/proto/grpc-js";
import { ServerReflectionRequest, type ServerReflectionResponse } from "@idmint/proto/reflection";

type Question = NonNullable<ServerReflectionRequest["messageRequest"]>;

/**
 * What `grpcurl -plaintext [-d JSON] ADDRESS list|describe SERVICE|SERVICE/METHOD` does, with nothing but what the server says about
 * itself by reflection: no generated code of idmint's messages. Answers what grpcurl prints, as a value.
 */
export async function grpcurl(args: readonly string[]): Promise<unknown> {
  const [plaintext, ...rest] = args;
  if (plaintext !== "-plaintext") throw new Error("only -plaintext is understood");
  const data = rest[0] === "-d" ? rest[1] : "{}";
  const [address = "", what = "", symbol = ""] = rest[0] === "-d" ? rest.slice(2) : rest;
  if (what === "list") return listServices(address);
  if (what === "describe") return describe(address, symbol);
  const method = await findMethod(address, what);
  return call(address, method, data ?? "{}");
}

async function ask(address: string, messageRequest: Question): Promise<ServerReflectionResponse> {
  const client = new ServerReflectionClient(address, credentials.createInsecure());
  try {
    return await new Promise((resolve, reject) => {
      const stream = client.serverReflectionInfo({ deadline: Date.now() + 5_000 });
      stream.on("data", resolve).on("error", reject);
      stream.write(ServerReflectionRequest.create({ messageRequest }));
      stream.end();
    });
  } finally {
    client.close();
  }
}

async function listServices(address: string): Promise<string[]> {
  const { messageResponse } = await ask(address, { $case: "listServices", value: "" });
  if (messageResponse?.$case !== "listServicesResponse") throw new Error("no list of services");
  return messageResponse.value.service.map(({ name }) => name);
}

/** The methods of a service, and the comments of the file it is in. */
async function describe(
  address: string,
  service: string,
): Promise<{ methods: string[]; comments: string }> {
  const found = (await registryOf(address, service)).getService(service);
  if (found === undefined) throw new Error(`the server knows no ${service}`);
  const locations = found.file.proto.sourceCodeInfo?.location ?? [];
  return {
    methods: found.methods.map(({ name }) => name),
    comments: locations.map(({ leadingComments }) => leadingComments).join("\n"),
  };
}

async function findMethod(address: string, path: string): Promise<DescMethod> {
  const [service = "", name = ""] = path.split("/");
  const found = (await registryOf(address, service)).getService(service);
  const method = found?.methods.find((each) => each.name === name);
  if (method === undefined) throw new Error(`the server knows no ${path}`);
  return method;
}

/** The file of a symbol and everything it imports, as the server has them. */
async function registryOf(address: string, symbol: string): Promise<FileRegistry> {
  const question = { $case: "fileContainingSymbol", value: symbol } as const;
  const { messageResponse } = await ask(address, question);
  if (messageResponse?.$case !== "fileDescriptorResponse") throw new Error(`no file: ${symbol}`);
  const protos = messageResponse.value.fileDescriptorProto.map((bytes) =>
    fromBinary(FileDescriptorProtoSchema, bytes),
  );
  // A registry wants each file behind those it imports.
  const file: FileDescriptorProto[] = [];
  const add = (name: string): void => {
    if (file.some((each) => each.name === name)) return;
    const found = protos.find((each) => each.name === name);
    if (found === undefined) throw new Error(`the server did not send ${name}`);
    found.dependency.forEach(add);
    file.push(found);
  };
  for (const { name } of protos) add(name);
  return createFileRegistry(create(FileDescriptorSetSchema, { file }));
}

async function call(address: string, method: DescMethod, data: string): Promise<unknown> {
  const client = new Client(address, credentials.createInsecure());
  try {
    const answer = await new Promise<Buffer>((resolve, reject) => {
      client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        Buffer.from(toBinary(method.input, fromJsonString(method.input, data))),
        { deadline: Date.now() + 5_000 },
        (error: ServiceError | null, bytes?: Buffer) => {
          if (error === null && bytes !== undefined) resolve(bytes);
          else reject(error ?? new Error("no answer"));
        },
      );
    });
    return toJson(method.output, fromBinary(method.output, answer));
  } finally {
    client.close();
  }
}
