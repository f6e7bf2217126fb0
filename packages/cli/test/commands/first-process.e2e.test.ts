// A server as the first process of a container, to which the kernel delivers no signal that it does not handle.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { CLI, cleanEnv, cli, temporaryFolder, untilEnd } from "../spawn.ts";

/** Takes connections and never says a word; `asked` fulfils with the first. */
async function silentServer(): Promise<{ port: number; asked: Promise<void> }> {
  const sockets = new Set<Socket>();
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    sockets.add(socket);
    ask();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, asked };
}

/** `idmint serve`, alone in a namespace of processes; and what tells it to stop, as an engine does. */
function serveFirst(store: string, patience: Readonly<Record<string, string>> = {}) {
  const namespaces = ["-p", "-f", "--kill-child", ...(process.getuid?.() === 0 ? [] : ["-r"])];
  const ports = ["--grpc-address", "127.0.0.1:0", "--http-address", "none"];
  const outer = spawn("unshare", [...namespaces, ...CLI, "serve", "--json", ...ports], {
    env: { ...cleanEnv(), IDMINT_LOG_LEVEL: "silent", IDMINT_STORE_URL: store, ...patience },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => {
    outer.kill("SIGKILL");
  });
  const stop = (): void => {
    const inside = readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, "utf8").trim();
    expect(inside).toMatch(/^\d+$/);
    process.kill(Number(inside), "SIGTERM");
  };
  const serving = new Promise<void>((resolve) => outer.stdout.once("data", () => resolve()));
  return { stop, serving, ended: untilEnd(outer) };
}

test("a stop signal that comes while the server starts ends it", async () => {
  const silence = await silentServer();
  const store = `postgres://idmint@127.0.0.1:${silence.port}/idmint`;
  const patience = { IDMINT_STORE_CONNECT_TIMEOUT: "60s", IDMINT_STORE_TIMEOUT: "60s" };
  const { stop, ended } = serveFirst(store, patience);
  await Promise.race([silence.asked, ended]);
  stop();
  expect(await ended).toEqual({ exitCode: 143, out: "", err: "" });
}, 30_000);

test("a stop signal that comes while the server serves drains it", async () => {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const store = `sqlite:${folder}/idmint.db`;
  expect((await cli(["migrate", "--store-url", store])).exitCode).toBe(0);
  const { stop, serving, ended } = serveFirst(store);
  await Promise.race([serving, ended]);
  stop();
  expect(await ended).toMatchObject({ exitCode: 0, err: "" });
}, 60_000);
