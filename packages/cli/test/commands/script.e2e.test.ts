// `npx --yes pnpm@10 start` as a newcomer types it: how it ends, and what is left behind.
import { type ChildProcess, spawn } from "node:child_process";
import { connect } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { cleanEnv, temporaryFolder } from "../spawn.ts";
import { root } from "../docs/snippets.ts";

const NPX = ["npx", "--yes", "pnpm@10"];
const START = [...NPX, "start", "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"];

interface Started {
  readonly child: ChildProcess;
  readonly port: number;
  /** All that it said until now. */
  readonly words: () => string;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** The environment of a newcomer: no package manager has put its folders on the path. */
function newcomersEnv(): Record<string, string> {
  const folders = (process.env["PATH"] ?? "").split(path.delimiter);
  const PATH = folders.filter((folder) => !folder.includes("node_modules")).join(path.delimiter);
  return { ...cleanEnv(), PATH };
}

/** Starts a server by a command line, on a store of its own, and waits for its banner. */
async function started([command = "", ...args]: readonly string[]): Promise<Started> {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  const store = `sqlite:${path.join(folder, "idmint.db")}`;
  const child = spawn(command, args, {
    cwd: root,
    env: { ...newcomersEnv(), IDMINT_STORE_URL: store },
    stdio: ["pipe", "pipe", "pipe"],
  });
  // A server that is left behind would stop by itself; a test that fails is not to rest on that.
  onTestFinished(() => void child.kill("SIGKILL"));
  let words = "";
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
  const port = await new Promise<number>((resolve, reject) => {
    const hear = (chunk: Buffer): void => {
      words += chunk.toString();
      const found = /listens for gRPC on 127\.0\.0\.1:(\d+)/.exec(words)?.[1];
      if (found !== undefined && words.includes("Ctrl-C stops it")) resolve(Number(found));
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.once("close", () => reject(new Error(`it never listened: ${words}`)));
  });
  return { child, port, words: () => words, ended };
}

/** Whether something takes connections on a port of this machine. */
function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

test("SIGTERM to npx drains the server, and leaves no process that keeps the port", async () => {
  const { child, port, words, ended } = await started(START);
  expect(words()).toContain("./idmint id next demo");
  expect(await isTaken(port)).toBe(true);
  child.kill("SIGTERM");
  await ended;
  await expect.poll(() => words(), { timeout: 20_000 }).toMatch(/stopped .*wasted=0/);
  await expect.poll(() => isTaken(port), { timeout: 10_000 }).toBe(false);
  expect(words()).not.toContain("ELIFECYCLE");
});

test("SIGKILL to npx drains the server too", async () => {
  const { child, port, words } = await started(START);
  child.kill("SIGKILL");
  await expect.poll(() => words(), { timeout: 20_000 }).toMatch(/stopped .*wasted=0/);
  await expect.poll(() => isTaken(port), { timeout: 10_000 }).toBe(false);
});

test("Ctrl-C on a terminal ends npx, pnpm and the server, and nobody calls it a failure", async () => {
  const line = START.map((word) => `'${word}'`).join(" ");
  const { child, port, words, ended } = await started(["script", "-qefc", line, "/dev/null"]);
  child.stdin?.write("\u0003");
  await ended;
  await expect.poll(() => words(), { timeout: 10_000 }).toMatch(/stopped .*wasted=0/);
  expect(words()).not.toMatch(/ELIFECYCLE|Command failed/);
  expect(await isTaken(port)).toBe(false);
});

/** Runs the command of the clone. */
function clone(...args: string[]): Promise<{ code: number | null; out: string }> {
  return new Promise((resolve) => {
    const child = spawn(path.join(root, "idmint"), args, { env: cleanEnv() });
    let out = "";
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.once("close", (code) => resolve({ code, out }));
  });
}

test("the command of a clone prints nothing but data, and its exit code is the CLI's", async () => {
  const good = await clone("version", "--json");
  expect([good.code, JSON.parse(good.out)]).toEqual([0, expect.any(Object)]);
  expect(await clone("tag", "get")).toEqual({ code: 2, out: "" });
});
