// Connect's own clients, curl and buf against the HTTP door of a real server.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { createFileRegistry, type DescService, fromBinary, toJson } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport as nodeTransport } from "@connectrpc/connect-node";
import { createConnectTransport as webTransport } from "@connectrpc/connect-web";
import { fileDescriptorSetBase64 } from "@idmint/proto/descriptors";
import { startDev } from "@idmint/server";
import { expect, onTestFinished, test } from "vitest";
import { doorEnv } from "../../src/doors.ts";

const run = promisify(execFile);
const root = path.resolve(import.meta.dirname, "../../../..");
const registry = createFileRegistry(
  fromBinary(FileDescriptorSetSchema, Buffer.from(fileDescriptorSetBase64, "base64")),
);

function service(name: string): DescService {
  const found = registry.getService(`idmint.v1.${name}`);
  if (found === undefined) throw new Error(`there is no ${name}`);
  return found;
}

async function started(): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-peers-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const flags = {
    "store-url": `sqlite:${path.join(folder, "idmint.db")}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
  };
  const { server } = await startDev({ env: doorEnv(), flags });
  onTestFinished(() => server.close());
  return `http://${server.httpAddress}`;
}

/** As clients of descriptors are, whose messages have no types. */
type AnyClient = Record<
  string,
  (request: object, options?: object) => Promise<Record<string, never>>
>;
const clientOf = (name: string, transport: Transport): AnyClient =>
  createClient(service(name), transport);

async function refusalOf(answer: Promise<unknown> | undefined): Promise<ConnectError> {
  try {
    await answer;
  } catch (thrown) {
    if (thrown instanceof ConnectError) return thrown;
    throw thrown;
  }
  throw new Error("the call was answered");
}

function detailsOf(error: ConnectError): Readonly<Record<string, unknown>> {
  const found = error.details.map((detail) => {
    const { type: name = "", value } = detail as { type?: string; value?: Uint8Array };
    const type = registry.getMessage(name);
    if (type === undefined || value === undefined) throw new Error(`"${name}" is not known`);
    return [[type.name, toJson(type, fromBinary(type, value))]];
  });
  return Object.fromEntries(found.flat()) as Record<string, unknown>;
}

test("Connect's clients for Node and browsers call in JSON and in bytes", async () => {
  const baseUrl = await started();
  const transports = [true, false].flatMap((useBinaryFormat) => [
    nodeTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat }),
    webTransport({ baseUrl, useBinaryFormat }),
  ]);
  let lastId = 0n;
  for (const transport of transports) {
    const ids = clientOf("IdService", transport);
    const minted = await ids["generateId"]?.({ tag: "demo" }, { timeoutMs: 10_000 });
    expect(minted?.["id"]).toBeTypeOf("bigint");
    expect(BigInt(minted?.["id"] ?? 0)).toBeGreaterThan(lastId);
    lastId = BigInt(minted?.["id"] ?? 0);
    const unknown = await refusalOf(ids["generateId"]?.({ tag: "ghost" }));
    expect(unknown.code).toBe(Code.NotFound);
    expect(detailsOf(unknown)).toMatchObject({
      ErrorInfo: { reason: "TAG_NOT_FOUND", domain: "idmint" },
    });
    const bad = await refusalOf(ids["generateIds"]?.({ tag: "demo", count: -1 }));
    expect(bad.code).toBe(Code.InvalidArgument);
    expect(detailsOf(bad)).toMatchObject({
      BadRequest: { fieldViolations: [{ field: "count", reason: "COUNT_OUT_OF_RANGE" }] },
    });
    const tags = clientOf("TagService", transport);
    expect(await tags["getTag"]?.({ name: "demo" })).toMatchObject({
      tag: { name: "demo", kind: { case: "segment" } },
    });
  }
});

test("curl calls with one line, and learns what is wrong with its request", async () => {
  const url = `${await started()}/idmint.v1.IdService/GenerateId`;
  const minted = await run("curl", ["-sS", "--json", '{"tag":"demo"}', url]);
  expect(JSON.parse(minted.stdout)).toMatchObject({ id: "1" });
  const refused = await run("curl", ["-sS", "--json", '{"tga":"demo"}', url]);
  expect(JSON.parse(refused.stdout)).toMatchObject({
    code: "invalid_argument",
    message: "MALFORMED_REQUEST: tga is not known: GenerateIdRequest has the fields tag, name",
  });
  const form = await run("curl", ["-sS", "-d", '{"tag":"demo"}', url]);
  expect(JSON.parse(form.stdout)).toMatchObject({
    message:
      "the content-type application/x-www-form-urlencoded is not taken; send one of application/json, application/proto",
  });
});

test("buf curl calls by its default protocol", { timeout: 60_000 }, async () => {
  const url = `${await started()}/idmint.v1.IdService/GenerateId`;
  const buf = path.join(root, "node_modules/.bin/buf");
  const schema = ["curl", "--schema", path.join(root, "proto")];
  const minted = await run(buf, [...schema, "-d", '{"tag":"demo"}', url]);
  expect(JSON.parse(minted.stdout)).toMatchObject({ id: "1" });
  const refused = await run(buf, [...schema, "-d", '{"tag":"ghost"}', url]).catch(
    (error: unknown) => error as { stderr: string },
  );
  expect(JSON.parse(refused.stderr)).toMatchObject({
    code: "not_found",
    details: [{ type: "google.rpc.ErrorInfo" }],
  });
});
