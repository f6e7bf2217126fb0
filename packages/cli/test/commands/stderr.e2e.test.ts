// A server whose stderr nobody reads still ends when it is told to.
import { execFileSync, spawn } from "node:child_process";
import { closeSync, constants, openSync, rmSync, writeSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CLI, cleanEnv, start, temporaryFolder } from "../spawn.ts";

/** Longer than a stop takes on a busy machine, and shorter than the test's own bound. */
const STOP_MS = 20_000;
const PORTS = ["--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"];
const PIECE = Buffer.alloc(4_096, ".");

function emptyFolder(): string {
  const { folder, remove } = temporaryFolder();
  onTestFinished(remove);
  return folder;
}

/** A pipe that is full, and that nobody reads. */
function fullPipe(folder: string): number {
  const file = path.join(folder, "stderr");
  execFileSync("mkfifo", [file]);
  const { O_RDWR, O_NONBLOCK } = constants;
  const pipe = openSync(file, O_RDWR | O_NONBLOCK);
  onTestFinished(() => closeSync(pipe));
  try {
    for (;;) writeSync(pipe, PIECE);
  } catch (error) {
    expect(error).toMatchObject({ code: "EAGAIN" });
  }
  return pipe;
}

/** Waits for the line that says where the server listens, and tells it to stop. */
async function endOf(child: ReturnType<typeof spawn>, beforeStop = (): void => undefined) {
  const ended = new Promise<number | string>((resolve) => {
    child.once("exit", (code, signal) => resolve(code ?? signal ?? ""));
  });
  await Promise.race([new Promise((resolve) => child.stdout?.once("data", resolve)), ended]);
  beforeStop();
  child.kill("SIGTERM");
  const bound = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  const end = await ended;
  clearTimeout(bound);
  return end;
}

test.each([
  { processes: [], what: "one process" },
  { processes: ["--processes", "2"], what: "several processes" },
])("$what: a server ends on SIGTERM while stderr is a full pipe", async ({ processes }) => {
  const folder = emptyFolder();
  const [command, ...rest] = CLI;
  const child = spawn(command, [...rest, "start-dev", "--json", ...PORTS, ...processes], {
    cwd: folder,
    env: cleanEnv(),
    stdio: ["ignore", "pipe", fullPipe(folder)],
  });
  expect(await endOf(child)).toBe(0);
});

test("a server ends on SIGTERM when its stderr was closed and its store deleted", async () => {
  const folder = emptyFolder();
  const child = start(["start-dev", "--json", ...PORTS], { cwd: folder });
  const end = await endOf(child, () => {
    rmSync(path.join(folder, ".idmint"), { recursive: true });
    child.stderr?.destroy();
  });
  expect(end).toBe(0);
});

test("a command ends with its code when nobody reads its words", async () => {
  const [command, ...rest] = CLI;
  const child = spawn(command, [...rest, "id", "next", "demo", "--address", "127.0.0.1:1"], {
    env: cleanEnv(),
    stdio: ["ignore", "ignore", fullPipe(emptyFolder())],
    timeout: STOP_MS,
  });
  const end = await new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve(code ?? signal));
  });
  expect(end).toBe(4);
});
