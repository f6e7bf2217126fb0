import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { fileDescriptorSetBase64 } from "@idmint/proto/descriptors";

/** What reflection answers from: the files of the API as they were compiled, comments and all. */
export interface ReflectionIndex {
  /** Full names of the services. */
  readonly services: readonly string[];
  /** A file and everything it imports, as serialized FileDescriptorProtos; undefined when there is none. */
  fileByName(name: string): readonly Buffer[] | undefined;
  fileOfSymbol(symbol: string): readonly Buffer[] | undefined;
  fileOfExtension(type: string, number: number): readonly Buffer[] | undefined;
  /** Numbers of the known extensions of a message; undefined when there is no such message. */
  extensionNumbers(type: string): readonly number[] | undefined;
}

interface Extension {
  readonly type: string;
  readonly number: number;
  readonly file: string;
}

/** Of the API of this release. */
export function indexOfApi(): ReflectionIndex {
  return indexDescriptors(Buffer.from(fileDescriptorSetBase64, "base64"));
}

/** Indexes a serialized google.protobuf.FileDescriptorSet. */
export function indexDescriptors(bytes: Uint8Array): ReflectionIndex {
  const files = new Map(
    fromBinary(FileDescriptorSetSchema, bytes).file.map((file) => [file.name, file]),
  );
  const fileOf = new Map<string, string>();
  const messages = new Set<string>();
  const extensions: Extension[] = [];
  for (const file of files.values()) {
    for (const symbol of symbolsOf(file, messages)) fileOf.set(symbol, file.name);
    for (const extension of extensionsOf(file)) extensions.push(extension);
  }
  const services = [...files.values()].flatMap((file) =>
    file.service.map((service) => qualified(file.package, service.name)),
  );
  const withImports = (name: string | undefined): readonly Buffer[] | undefined => {
    const file = name === undefined ? undefined : files.get(name);
    if (file === undefined) return undefined;
    return importsOf(file, files).map((each) =>
      Buffer.from(toBinary(FileDescriptorProtoSchema, each)),
    );
  };
  return {
    services,
    fileByName: withImports,
    fileOfSymbol: (symbol) => withImports(fileOf.get(symbol)),
    fileOfExtension: (type, number) =>
      withImports(extensions.find((each) => each.type === type && each.number === number)?.file),
    extensionNumbers: (type) =>
      messages.has(type)
        ? extensions.filter((each) => each.type === type).map((each) => each.number)
        : undefined,
  };
}

/** The file first, then what it imports, each once. */
function importsOf(
  file: FileDescriptorProto,
  files: ReadonlyMap<string, FileDescriptorProto>,
): readonly FileDescriptorProto[] {
  const found = new Set([file]);
  // A set grows while it is walked, and the walk sees what was added.
  for (const each of found) {
    for (const name of each.dependency) {
      const imported = files.get(name);
      if (imported !== undefined) found.add(imported);
    }
  }
  return [...found];
}

function symbolsOf(file: FileDescriptorProto, messages: Set<string>): readonly string[] {
  const symbols: string[] = [];
  const scope = file.package;
  for (const message of file.messageType) addMessage(scope, message, symbols, messages);
  for (const type of file.enumType) symbols.push(qualified(scope, type.name));
  for (const service of file.service) {
    const name = qualified(scope, service.name);
    symbols.push(name, ...service.method.map((method) => `${name}.${method.name}`));
  }
  for (const extension of file.extension) symbols.push(qualified(scope, extension.name));
  return symbols;
}

function addMessage(
  scope: string,
  message: DescriptorProto,
  symbols: string[],
  messages: Set<string>,
): void {
  const name = qualified(scope, message.name);
  messages.add(name);
  symbols.push(name);
  for (const field of [...message.field, ...message.extension])
    symbols.push(`${name}.${field.name}`);
  for (const type of message.enumType) symbols.push(`${name}.${type.name}`);
  for (const nested of message.nestedType) addMessage(name, nested, symbols, messages);
}

function extensionsOf(file: FileDescriptorProto): readonly Extension[] {
  const found = [...file.extension];
  const collect = (message: DescriptorProto): void => {
    found.push(...message.extension);
    for (const nested of message.nestedType) collect(nested);
  };
  for (const message of file.messageType) collect(message);
  return found.map(({ extendee, number }) => ({
    type: extendee.replace(/^\./, ""),
    number,
    file: file.name,
  }));
}

function qualified(scope: string, name: string): string {
  return scope === "" ? name : `${scope}.${name}`;
}
