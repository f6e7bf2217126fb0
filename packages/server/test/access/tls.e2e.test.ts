// Who may, by client certificates: over a real connection, and while certificates change.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "node:tls";
import { credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { IdServiceClient } from "@idmint/proto/grpc-js";
import { MemoryStore, selfSigned } from "@idmint/testkit";
import { expect, onTestFinished, test, vi } from "vitest";
import { createTag, startTest, type TestServer, until } from "../support.ts";

type Pair = ReturnType<typeof selfSigned>;

function folderOf(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-access-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function write(folder: string, files: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(files).map(([name, text]) => {
    const file = path.join(folder, name);
    writeFileSync(file, text);
    return [name, file] as const;
  });
  return Object.fromEntries(entries);
}

const buffer = (text: string | undefined): Buffer | null =>
  text === undefined ? null : Buffer.from(text);

/** A connection of its own that shows a certificate, and how a call on it is answered. */
function caller(address: string, server: Pair, own?: Pair): () => Promise<string> {
  const channel = credentials.createSsl(buffer(server.cert), buffer(own?.key), buffer(own?.cert));
  const client = new IdServiceClient(address, channel, {
    "grpc.ssl_target_name_override": "localhost",
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
  });
  onTestFinished(() => client.close());
  return () =>
    new Promise((resolve) => {
      const done = (error: ServiceError | null): void =>
        resolve(error === null ? "OK" : (status[error.code] ?? "?"));
      const options = { deadline: Date.now() + 10_000 };
      client.generateId({ tag: "orders", name: "" }, new Metadata(), options, done);
    });
}

async function serverFor(
  accessYaml: string,
  server: Pair,
  authorities: readonly Pair[],
  more: Record<string, string> = {},
): Promise<{ it: TestServer; files: Record<string, string> }> {
  const store = new MemoryStore();
  // The tag is made by a server that is open.
  await createTag(
    await startTest({ store: new MemoryStore({ database: store.database }) }),
    "orders",
  );
  const files = write(folderOf(), {
    "server.crt": server.cert,
    "server.key": server.key,
    "ca.crt": authorities.map(({ cert }) => cert).join(""),
    "access.yaml": accessYaml,
  });
  const flags = {
    "tls-cert-file": files["server.crt"]!,
    "tls-key-file": files["server.key"]!,
    "tls-client-ca-file": files["ca.crt"]!,
    "access-file": files["access.yaml"]!,
    ...more,
  };
  return { it: await startTest({ store, flags }), files };
}

test("a certificate leads to its principal; of another authority, expired or unknown ones do not", async () => {
  const server = selfSigned("localhost");
  const orders = selfSigned("orders.example", { uri: "spiffe://prod/orders", commonName: "boss" });
  const other = selfSigned("billing.example");
  const unknown = selfSigned("unknown.example", { commonName: "named" });
  const expired = selfSigned("orders.example", { until: "20200102000000Z" });
  const stranger = selfSigned("orders.example");
  const yaml = `principals:
  orders: { issue: [orders], certificates: ["spiffe://prod/orders"] }
  billing: { issue: ["billing.*"], certificates: [billing.example] }
  named: { issue: [orders], certificates: [named] }
`;
  const authorities = [orders, other, unknown, expired];
  const { it, files } = await serverFor(yaml, server, authorities);
  const address = it.server.grpcAddress;
  expect(await caller(address, server, orders)()).toBe("OK");
  expect(await caller(address, server, other)()).toBe("PERMISSION_DENIED");
  expect(await caller(address, server, unknown)()).toBe("UNAUTHENTICATED");
  // These have no connection.
  expect(await caller(address, server, expired)()).toBe("UNAVAILABLE");
  expect(await caller(address, server, stranger)()).toBe("UNAVAILABLE");
  expect(await caller(address, server)()).toBe("UNAVAILABLE");
  // The file changes, and with it what connections that are open may.
  const kept = caller(address, server, orders);
  expect(await kept()).toBe("OK");
  writeFileSync(
    files["access.yaml"]!,
    yaml.replace(
      'issue: [orders], certificates: ["spiffe',
      'issue: [others], certificates: ["spiffe',
    ),
  );
  await until(async () => (await kept()) === "PERMISSION_DENIED");
  writeFileSync(files["access.yaml"]!, "principals: [");
  await until(() => it.events.some(({ type }) => type === "access-file-refused"));
  expect(await kept()).toBe("PERMISSION_DENIED");
});

test("the common name counts only where that is said", async () => {
  const server = selfSigned("localhost");
  const named = selfSigned("unknown.example", { commonName: "named" });
  const yaml = "principals: { named: { issue: [orders], certificates: [named] } }";
  const { it } = await serverFor(yaml, server, [named], { "access-common-names": "true" });
  expect(await caller(it.server.grpcAddress, server, named)()).toBe("OK");
});

test("certificates change under traffic without a failed call, and TLS 1.3 is the least before and after", async () => {
  // Those that read the files again and again.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  // Whoever trusts both has to tell them apart by their names.
  const one = selfSigned("localhost", { commonName: "one" });
  const two = selfSigned("localhost", { commonName: "two" });
  const [early, late] = [selfSigned("early.example"), selfSigned("late.example")];
  const yaml =
    "principals: { orders: { issue: [orders], certificates: [early.example, late.example] } }";
  const { it, files } = await serverFor(yaml, one, [early]);
  const address = it.server.grpcAddress;
  const both = { ...one, cert: one.cert + two.cert };
  const shake = (maxVersion: "TLSv1.2" | "TLSv1.3"): Promise<string> => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const [host = "", port] = address.split(":");
    const shown = { cert: early.cert, key: early.key, rejectUnauthorized: false };
    const socket = connect({
      host,
      port: Number(port),
      ALPNProtocols: ["h2"],
      maxVersion,
      ...shown,
    });
    onTestFinished(() => void socket.destroy());
    socket.once("secureConnect", () => resolve(socket.getProtocol() ?? ""));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    return promise;
  };
  const versions = async (): Promise<string[]> => [await shake("TLSv1.3"), await shake("TLSv1.2")];
  const least = ["TLSv1.3", "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION"];
  expect(await versions()).toEqual(least);
  const over = { isSo: false };
  const outcomes = new Map<string, number>();
  const kept = caller(address, both, early);
  const load = (async () => {
    while (!over.isSo) {
      // One call on an old connection, and one on a new one.
      for (const outcome of [await kept(), await caller(address, both, early)()]) {
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
    }
  })();
  expect(await caller(address, two, early)()).toBe("UNAVAILABLE");
  expect(await caller(address, both, late)()).toBe("UNAVAILABLE");
  // First the authorities, then the server's own, as somebody does who renews them: never a state that fits nobody.
  writeFileSync(files["ca.crt"]!, early.cert + late.cert);
  writeFileSync(files["server.crt"]!, two.cert);
  writeFileSync(files["server.key"]!, two.key);
  vi.advanceTimersByTime(10_000);
  await until(async () => (await caller(address, two, late)()) === "OK");
  expect(await caller(address, one, early)()).toBe("UNAVAILABLE");
  expect(await versions()).toEqual(least);
  await until(() => (outcomes.get("OK") ?? 0) > 20);
  over.isSo = true;
  await load;
  expect([...outcomes.keys()]).toEqual(["OK"]);
});
