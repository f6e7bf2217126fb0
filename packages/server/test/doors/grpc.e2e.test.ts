import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { IdmintError } from "@idmint/core";
import { IdServiceService, TagServiceService } from "@idmint/proto";
import {
  HealthClient,
  IdServiceClient,
  ServerReflectionClient,
  ServerReflectionV1AlphaClient,
} from "@idmint/proto/grpc-js";
import { type HealthCheckResponse, HealthService } from "@idmint/proto/health";
import type { ServerReflectionRequest, ServerReflectionResponse } from "@idmint/proto/reflection";
import { MemoryStore, selfSigned, storeIsDown } from "@idmint/testkit";
import { expect, onTestFinished, test, vi } from "vitest";
import type { TlsFiles } from "../../src/tls/files.ts";
import { Listener } from "../../src/doors/listener.ts";
import type { ServerEvent } from "../../src/service/events.ts";
import {
  call,
  createTag,
  generateId,
  Refusal,
  refusalOf,
  sleep,
  startTest,
  type TestServer,
  until,
  holdBack,
} from "../support.ts";

test("an unforeseen fault is INTERNAL with a fixed text, and its cause is told to the log only", async () => {
  const it = await startTest({
    parts: {
      authorise: () => {
        throw new Error("a secret detail");
      },
    },
  });
  const refusal = await refusalOf(generateId(it, "orders"));
  expect(refusal).toMatchObject({ code: "INTERNAL", reason: "INTERNAL" });
  expect(refusal.message).not.toContain("secret");
  expect(it.events).toContainEqual(
    expect.objectContaining({
      type: "internal-error",
      where: "/idmint.v1.IdService/GenerateId",
      cause: expect.objectContaining({ message: "a secret detail" }) as unknown,
    }),
  );
});

test("a call is authorised before anything shows whether its tag exists", async () => {
  const seen: string[] = [];
  const it = await startTest({
    parts: {
      authorise: async (context, method) => {
        seen.push(`${method} ${context.peer.split(":")[0]}`);
        await sleep(1);
        throw new IdmintError("PERMISSION_DENIED", "not for you");
      },
    },
  });
  const refusal = await refusalOf(generateId(it, "ghost"));
  expect(refusal).toMatchObject({ code: "PERMISSION_DENIED", reason: "PERMISSION_DENIED" });
  expect(seen).toEqual(["/idmint.v1.IdService/GenerateId 127.0.0.1"]);
  expect(it.store.count("getTags")).toBe(0);
});

test("errors carry the details that belong to their code", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store, flags: { "limits-waiters": "1" } });
  await createTag(it, "orders", { ceiling: 5n });
  expect(
    await refusalOf(
      call(it.ids, IdServiceService.generateIds, { tag: "orders", count: 9, asList: true }),
    ),
  ).toMatchObject({ code: "OUT_OF_RANGE", reason: "TAG_EXHAUSTED", metadata: { tag: "orders" } });
  await call(it.tags, TagServiceService.pauseTag, {
    name: "orders",
    etag: "",
    validateOnly: false,
  });
  const paused = await refusalOf(generateId(it, "orders"));
  expect(paused.details).toEqual(["ErrorInfo", "PreconditionFailure"]);
  await createTag(it, "busy");
  holdBack(store, "grant");
  const waits = generateId(it, "busy", 500).catch(() => undefined);
  await sleep(200);
  const overloaded = await refusalOf(generateId(it, "busy", 500));
  expect(overloaded).toMatchObject({ code: "RESOURCE_EXHAUSTED", reason: "OVERLOADED" });
  expect(overloaded.details).toEqual(["ErrorInfo", "RetryInfo", "QuotaFailure"]);
  await waits;
  store.faults = { before: storeIsDown };
  const down = await refusalOf(generateId(it, "never-seen"));
  expect(down).toMatchObject({ code: "UNAVAILABLE", reason: "STORE_UNAVAILABLE" });
  expect(down.details).toEqual(["ErrorInfo", "RetryInfo"]);
});

test("a deadline that is over already is DEADLINE_EXCEEDED", async () => {
  const it = await startTest();
  await createTag(it, "orders");
  const refusal = await refusalOf(generateId(it, "orders", -1));
  expect(refusal.code).toBe("DEADLINE_EXCEEDED");
});

test("256 calls of 10,000 listed ids at once fit one connection", async () => {
  const it = await startTest();
  await createTag(it, "orders", { min: 3_000_000 });
  const answers = await Promise.all(
    Array.from({ length: 256 }, () =>
      call(
        it.ids,
        IdServiceService.generateIds,
        { tag: "orders", count: 10_000, asList: true },
        30_000,
      ),
    ),
  );
  expect(answers.every((answer) => answer.ids.length === 10_000)).toBe(true);
});

/** Calls for a tag that wait on the connection, how each of them ended so far, and their end by the caller. */
function waitingCalls({ ids }: Pick<TestServer, "ids">, tag: string, count: number) {
  const ended: string[] = [];
  const calls = Array.from({ length: count }, () =>
    ids.generateId({ tag, name: "" }, new Metadata(), { deadline: Date.now() + 60_000 }, (error) =>
      ended.push(error === null ? "OK" : status[error.code]),
    ),
  );
  // One after the other, as deadlines end calls: what waits in the client goes out in between.
  const cancel = async (): Promise<void> => {
    for (const each of calls) {
      each.cancel();
      await sleep(1);
    }
  };
  return { ended, cancel };
}

test("more calls than gRPC's usual hundred wait on one connection, and their end makes room at once", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "cold");
  const letGo = holdBack(store, "grant");
  for (let round = 0; round < 2; round++) {
    const before = it.server.counters.calls;
    const { ended, cancel } = waitingCalls(it, "cold", 300);
    // All of them are with the server, which can say why when it cannot answer.
    await until(() => it.server.counters.calls - before === 300, 10_000);
    await cancel();
    await until(() => ended.length === 300, 10_000);
    expect(new Set(ended)).toEqual(new Set(["CANCELLED"]));
  }
  const { ended } = waitingCalls(it, "cold", 300);
  await sleep(20);
  letGo();
  await until(() => ended.length === 300, 10_000);
  expect(new Set(ended)).toEqual(new Set(["OK"]));
});

test("calls past the limit of a connection that are cancelled do not cost the others their connection", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "warm");
  await createTag(it, "cold");
  holdBack(store, "grant");
  const healthy = waitingCalls(it, "cold", 1);
  const { ended, cancel } = waitingCalls(it, "cold", 1_600);
  await until(() => it.server.counters.calls > 1_000, 10_000);
  await cancel();
  await until(() => ended.length === 1_600, 10_000);
  expect(healthy.ended).toEqual([]);
});

test("1,600 cancelled calls do not cost the others their connection", async () => {
  const store = new MemoryStore();
  const it = await startTest({ store });
  await createTag(it, "warm");
  await createTag(it, "cold");
  await generateId(it, "warm");
  holdBack(store, "grant");
  for (let burst = 0; burst < 8; burst++) {
    const before = it.server.counters.calls;
    const calls = Array.from({ length: 200 }, () =>
      it.ids.generateId({ tag: "cold", name: "" }, () => undefined),
    );
    await until(() => it.server.counters.calls - before === 200);
    for (const each of calls) each.cancel();
    await generateId(it, "warm");
  }
});

function health(address: string): HealthClient {
  const client = new HealthClient(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  return client;
}

test("health answers for the server and for each service, and not for others", async () => {
  const it = await startTest();
  const client = health(it.server.grpcAddress);
  for (const service of [
    "",
    "idmint.v1.IdService",
    "idmint.v1.TagService",
    "idmint.v1.NodeService",
  ]) {
    expect(await call(client, HealthService.check, { service })).toEqual({ status: 1 });
  }
  expect(await refusalOf(call(client, HealthService.check, { service: "nobody" }))).toMatchObject({
    code: "NOT_FOUND",
  });
  const { statuses } = await call(client, HealthService.list, {});
  expect(Object.keys(statuses)).toContain("idmint.v1.IdService");
});

test("a watch tells of the drain, and ends when the server does", async () => {
  const it = await startTest();
  const client = health(it.server.grpcAddress);
  const seen: number[] = [];
  const watch = client.watch({ service: "idmint.v1.IdService" });
  const unknown: number[] = [];
  client
    .watch({ service: "nobody" })
    .on("data", (response: HealthCheckResponse) => unknown.push(response.status))
    .on("error", () => undefined);
  watch.on("data", (response: HealthCheckResponse) => seen.push(response.status));
  const ended = new Promise((resolve) => {
    watch.on("end", resolve);
    watch.on("error", resolve);
  });
  await until(() => seen.length === 1 && unknown.length === 1);
  expect(unknown).toEqual([3]);
  await it.server.close();
  await ended;
  expect(seen).toEqual([1, 2]);
});

test("liveness serves while the store is away, and tells those who watch nothing new", async () => {
  const it = await startTest();
  const client = health(it.server.grpcAddress);
  const alive: number[] = [];
  const end = client
    .watch({ service: "liveness" })
    .on("data", ({ status: its }: HealthCheckResponse) => alive.push(its))
    .on("error", () => undefined);
  const states = async (): Promise<readonly number[]> => {
    const asked = ["", "liveness"].map((service) => call(client, HealthService.check, { service }));
    return (await Promise.all(asked)).map((answer) => answer.status);
  };
  await until(() => alive.length === 1);
  expect(await states()).toEqual([1, 1]);
  it.store.faults = { before: storeIsDown };
  await until(async () => (await states())[0] === 2);
  expect(await states()).toEqual([2, 1]);
  const { statuses } = await call(client, HealthService.list, {});
  expect(statuses["liveness"]?.status).toBe(1);
  expect(statuses["idmint.v1.IdService"]?.status).toBe(2);
  expect(alive).toEqual([1]);
  end.cancel();
});

test("a connection is given up when it is as old as the limit says", async () => {
  const it = await startTest({ flags: { "limits-connection-age": "1s" } });
  const session = connectHttp2(`http://${it.server.grpcAddress}`);
  onTestFinished(() => session.destroy());
  const begun = performance.now();
  const code = await new Promise((resolve, reject) => {
    session.once("goaway", resolve).once("error", reject);
  });
  expect(code).toBe(0);
  expect(performance.now() - begun).toBeGreaterThan(500);
});

type Request = NonNullable<ServerReflectionRequest["messageRequest"]>;

async function reflect(
  client: ServerReflectionClient | ServerReflectionV1AlphaClient,
  requests: readonly Request[],
): Promise<ServerReflectionResponse[]> {
  onTestFinished(() => client.close());
  const stream = client.serverReflectionInfo();
  const responses: ServerReflectionResponse[] = [];
  stream.on("data", (response: ServerReflectionResponse) => responses.push(response));
  for (const messageRequest of requests) stream.write({ host: "", messageRequest });
  stream.end();
  await new Promise((resolve, reject) => {
    stream.on("end", resolve);
    stream.on("error", reject);
  });
  return responses;
}

function filesOf(response: ServerReflectionResponse | undefined): FileDescriptorProto[] {
  const answer = response?.messageResponse;
  if (answer?.$case !== "fileDescriptorResponse") throw new Error(`an answer of ${answer?.$case}`);
  return answer.value.fileDescriptorProto.map((bytes) =>
    fromBinary(FileDescriptorProtoSchema, bytes),
  );
}

test.each([
  ["v1", ServerReflectionClient],
  ["v1alpha", ServerReflectionV1AlphaClient],
] as const)("reflection %s shows services, symbols, comments and imports", async (_, Client) => {
  const it = await startTest();
  const [services, file, symbol, field, missing, extensions, extension] = await reflect(
    new Client(it.server.grpcAddress, credentials.createInsecure()),
    [
      { $case: "listServices", value: "" },
      { $case: "fileByFilename", value: "idmint/v1/id_service.proto" },
      { $case: "fileContainingSymbol", value: "idmint.v1.TagService.CreateTag" },
      { $case: "fileContainingSymbol", value: "google.rpc.ErrorInfo.MetadataEntry" },
      { $case: "fileContainingSymbol", value: "idmint.v1.Nothing" },
      { $case: "allExtensionNumbersOfType", value: "idmint.v1.Tag" },
      {
        $case: "fileContainingExtension",
        value: { containingType: "idmint.v1.Tag", extensionNumber: 7 },
      },
    ],
  );
  expect(services?.messageResponse).toMatchObject({
    value: {
      service: expect.arrayContaining([
        { name: "idmint.v1.IdService" },
        { name: "grpc.health.v1.Health" },
        { name: "grpc.reflection.v1.ServerReflection" },
        { name: "grpc.reflection.v1alpha.ServerReflection" },
      ]) as unknown,
    },
  });
  const files = filesOf(file);
  expect(files.map((each) => each.name)).toEqual(
    expect.arrayContaining(["idmint/v1/id_service.proto", "google/protobuf/duration.proto"]),
  );
  const comments = files[0]?.sourceCodeInfo?.location.map((at) => at.leadingComments) ?? [];
  expect(comments.join()).toContain("Mints one id.");
  expect(filesOf(symbol)[0]?.name).toBe("idmint/v1/tag_service.proto");
  expect(filesOf(field)[0]?.name).toBe("google/rpc/error_details.proto");
  expect(missing?.messageResponse).toMatchObject({ value: { errorCode: status.NOT_FOUND } });
  expect(extensions?.messageResponse).toMatchObject({ value: { extensionNumber: [] } });
  expect(extension?.messageResponse).toMatchObject({ value: { errorCode: status.NOT_FOUND } });
});

async function connectTo(address: string): Promise<{ socket: Socket; closed: Promise<void> }> {
  const [host, port] = address.split(":");
  const socket = connect({ host: host ?? "", port: Number(port) });
  onTestFinished(() => {
    socket.destroy();
  });
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
  });
  await new Promise((resolve) => {
    socket.once("connect", resolve);
  });
  return { socket, closed };
}

test("connections past the cap are closed, and the others go on", async () => {
  const it = await startTest({ flags: { "limits-connections": "2" } });
  await createTag(it, "orders");
  await connectTo(it.server.grpcAddress);
  const { closed } = await connectTo(it.server.grpcAddress);
  await closed;
  expect(it.events).toContainEqual(expect.objectContaining({ type: "connection-refused" }));
  await call(it.tags, TagServiceService.getTag, { name: "orders" });
});

test("a connection that says nothing is closed after its deadline, one that speaks stays", async () => {
  const taken: Socket[] = [];
  const listener = new Listener((socket) => taken.push(socket), {
    host: "127.0.0.1",
    port: 0,
    maxConnections: 10,
    prefaceTimeoutMs: 100,
    areUnread: false,
    giveWay: (socket) => socket.destroy(),
    onRefused: () => undefined,
  });
  const address = `127.0.0.1:${await listener.listen()}`;
  onTestFinished(() => {
    listener.stop();
    listener.destroy();
  });
  const silent = await connectTo(address);
  const speaking = await connectTo(address);
  await until(() => taken.length === 2);
  for (const socket of taken) socket.resume();
  speaking.socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  await silent.closed;
  await sleep(150);
  expect(listener.connections).toBe(1);
});

/** How often servers read the files again. */
const RELOAD_EVERY_MS = 10_000;

test("files that cannot be used for TLS are told with the option that names them", async () => {
  const folder = temporaryFolder();
  const [one, two] = [makeCertificate(folder, "one"), makeCertificate(folder, "two")];
  const none = path.join(folder, "none");
  const cases: readonly (readonly [Partial<TlsFiles>, string])[] = [
    [{ certFile: none }, `tls.cert_file names a file that cannot be read (ENOENT): ${none}`],
    [{ certFile: one.key }, `tls.cert_file holds no certificate in PEM: ${one.key}`],
    [
      { keyFile: one.cert },
      `tls.key_file holds no private key without a passphrase in PEM: ${one.cert}`,
    ],
    [{ keyFile: two.key }, `tls.key_file holds no key that fits the certificate: ${two.key}`],
    [{ clientCaFile: one.key }, `tls.client_ca_file holds no certificate in PEM: ${one.key}`],
  ];
  for (const [wrong, text] of cases) {
    const files = { certFile: one.cert, keyFile: one.key, clientCaFile: undefined, ...wrong };
    const flags = {
      "tls-cert-file": files.certFile,
      "tls-key-file": files.keyFile,
      ...(files.clientCaFile === undefined ? {} : { "tls-client-ca-file": files.clientCaFile }),
    };
    await expect(startTest({ flags })).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
      message: `INVALID_ARGUMENT: ${text}`,
    });
  }
});

/** A key and a certificate of its own, in files. */
function makeCertificate(folder: string, name: string): { cert: string; key: string } {
  const made = selfSigned("localhost");
  const files = { cert: path.join(folder, `${name}.crt`), key: path.join(folder, `${name}.key`) };
  writeFileSync(files.cert, made.cert);
  writeFileSync(files.key, made.key);
  return files;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function secureCall(address: string, ca: string, own?: { cert: string; key: string }) {
  const certificates = credentials.createSsl(
    readFileSync(ca),
    own === undefined ? null : readFileSync(own.key),
    own === undefined ? null : readFileSync(own.cert),
  );
  const client = new IdServiceClient(address, certificates, {
    "grpc.ssl_target_name_override": "localhost",
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
  });
  onTestFinished(() => client.close());
  return new Promise<bigint>((resolve, reject) => {
    const options = { deadline: Date.now() + 2_000 };
    const done = (error: ServiceError | null, response?: { id: bigint }): void => {
      if (error === null) resolve(response?.id ?? 0n);
      else reject(new Refusal(error));
    };
    client.generateId({ tag: "orders", name: "" }, new Metadata(), options, done);
  });
}

test("with TLS calls need the certificate's authority, and with client authorities one of their certificates", async () => {
  const folder = temporaryFolder();
  const own = makeCertificate(folder, "server");
  const caller = makeCertificate(folder, "caller");
  const stranger = makeCertificate(folder, "stranger");
  const store = new MemoryStore();
  await createTag(
    await startTest({ store: new MemoryStore({ database: store.database }) }),
    "orders",
  );
  const files = { "tls-cert-file": own.cert, "tls-key-file": own.key };
  const open = await startTest({
    store: new MemoryStore({ database: store.database }),
    flags: files,
  });
  expect(await secureCall(open.server.grpcAddress, own.cert)).toBe(1n);
  expect(await refusalOf(secureCall(open.server.grpcAddress, stranger.cert))).toMatchObject({
    code: "UNAVAILABLE",
  });
  const closed = await startTest({ store, flags: { ...files, "tls-client-ca-file": caller.cert } });
  expect(await secureCall(closed.server.grpcAddress, own.cert, caller)).toBe(1_001n);
  await refusalOf(secureCall(closed.server.grpcAddress, own.cert));
  await refusalOf(secureCall(closed.server.grpcAddress, own.cert, stranger));
});

const isBadReload = (event: ServerEvent): boolean =>
  event.type === "internal-error" && event.where === "reload of the TLS files";

test("renewed TLS files are taken without a restart, and a half-written one is kept out", async () => {
  // Those that read the files again and again.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const folder = temporaryFolder();
  const one = makeCertificate(folder, "one");
  const two = makeCertificate(folder, "two");
  const files = {
    "tls-cert-file": path.join(folder, "live.crt"),
    "tls-key-file": path.join(folder, "live.key"),
  };
  copyFileSync(one.cert, files["tls-cert-file"]);
  copyFileSync(one.key, files["tls-key-file"]);
  const store = new MemoryStore();
  await createTag(
    await startTest({ store: new MemoryStore({ database: store.database }) }),
    "orders",
  );
  const { server, events } = await startTest({ store, flags: files });
  const address = server.grpcAddress;
  expect(await secureCall(address, one.cert)).toBe(1n);
  writeFileSync(files["tls-cert-file"], readFileSync(two.cert, "utf8").slice(0, 100));
  vi.advanceTimersByTime(RELOAD_EVERY_MS);
  await until(() => events.some(isBadReload), 10_000);
  expect(await secureCall(address, one.cert)).toBe(2n);
  copyFileSync(two.cert, files["tls-cert-file"]);
  copyFileSync(two.key, files["tls-key-file"]);
  vi.advanceTimersByTime(RELOAD_EVERY_MS);
  const isServedByTwo = (): Promise<boolean> =>
    secureCall(address, two.cert).then(
      (id) => id > 2n,
      () => false,
    );
  await until(isServedByTwo, 10_000);
  expect(await refusalOf(secureCall(address, one.cert))).toMatchObject({ code: "UNAVAILABLE" });
});
