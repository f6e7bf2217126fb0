import { spawnSync } from "node:child_process";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { GenerateIdResponse, IdServiceService } from "@idmint/proto";
import { fileDescriptorSetBase64 } from "@idmint/proto/descriptors";
import * as clients from "@idmint/proto/grpc-js";
import { expect, test } from "vitest";

const { file: files } = fromBinary(
  FileDescriptorSetSchema,
  Buffer.from(fileDescriptorSetBase64, "base64"),
);

test("the descriptors hold every service, of the API, health and both reflections", () => {
  const services = files.flatMap((file) =>
    file.service.map((service) => `${file.package}.${service.name}`),
  );
  expect(services).toEqual(
    expect.arrayContaining([
      "idmint.v1.IdService",
      "idmint.v1.TagService",
      "idmint.v1.NodeService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
    ]),
  );
});

test("there is a client for each service of the descriptors", () => {
  const services = files.flatMap((file) =>
    file.service.map((service) => `${file.package}.${service.name}`),
  );
  const made = Object.values<{ readonly serviceName: string }>(clients);
  expect(made.map(({ serviceName }) => serviceName).toSorted()).toEqual(services.toSorted());
});

test("the descriptors hold every file that another one imports, before it", () => {
  const seen = new Set<string>();
  for (const file of files) {
    for (const name of file.dependency) expect(seen).toContain(name);
    seen.add(file.name);
  }
});

test("the descriptors keep comments", () => {
  const own = files.filter((file) => file.package === "idmint.v1");
  expect(own.length).toBeGreaterThan(0);
  for (const file of own) {
    const comments = file.sourceCodeInfo?.location.filter((at) => at.leadingComments !== "") ?? [];
    expect(comments.length).toBeGreaterThan(0);
  }
});

test("an id of 63 bits survives the wire and JSON", () => {
  const message = GenerateIdResponse.create({ id: 2n ** 63n - 1n });
  const bytes = GenerateIdResponse.encode(message).finish();
  expect(GenerateIdResponse.decode(bytes).id).toBe(2n ** 63n - 1n);
  expect(GenerateIdResponse.toJSON(message)).toMatchObject({ id: "9223372036854775807" });
  expect(GenerateIdResponse.fromJSON({ id: "9223372036854775807" }).id).toBe(2n ** 63n - 1n);
});

/** What is loaded of @grpc by a process that imports these. grpc-js and all that it needs are CommonJS. */
function grpcLoadedBy(...entries: readonly string[]): string {
  const script = `${entries.map((entry) => `await import("@idmint/proto${entry}");`).join("")}
    const { cache } = process.getBuiltinModule("module").createRequire(import.meta.url);
    console.log(Object.keys(cache).filter((file) => file.includes("/@grpc/")).length);`;
  const flags = ["-C", "idmint-source", "--input-type=module", "--eval", script];
  const { stdout, stderr } = spawnSync(process.execPath, flags, {
    cwd: import.meta.dirname,
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  return stdout.trim();
}

test("messages and definitions do not load grpc-js", () => {
  expect(grpcLoadedBy("", "/rpc", "/health", "/reflection", "/descriptors")).toBe("0");
  expect(Number(grpcLoadedBy("/grpc-js"))).toBeGreaterThan(50);
});

test("the service's paths are those of the API", () => {
  expect(IdServiceService.generateId.path).toBe("/idmint.v1.IdService/GenerateId");
});
