import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { CLI as ENTRY, serverEnv } from "@idmint/testkit";
import type { CommandResult } from "./support.ts";

/** The command line of the CLI. `-C` is for its sources. */
export const CLI: readonly [string, ...string[]] = [process.execPath, "-C", "idmint-source", ENTRY];

/** This process's environment without anything that configures idmint, but with patience for a machine that is busy. */
export function cleanEnv(): Record<string, string> {
  const entries = Object.entries(process.env).filter(
    ([name, value]) => value !== undefined && !/^(?:IDMINT_|npm_)/i.test(name),
  );
  return {
    ...(Object.fromEntries(entries) as Record<string, string>),
    ...serverEnv(),
    IDMINT_STORE_TIMEOUT: "30s",
    // Contexts of whoever runs the tests are none of theirs.
    IDMINT_CONFIG_HOME: path.join(tmpdir(), "idmint-no-contexts"),
  };
}

export interface Place {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the CLI as a process of its own. */
export function start(args: readonly string[], { cwd, env = {} }: Place = {}): ChildProcess {
  const [command, ...rest] = CLI;
  return spawn(command, [...rest, ...args], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...cleanEnv(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** What a process says until it ends. */
export async function untilEnd(child: ChildProcess): Promise<CommandResult> {
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => err.push(chunk));
  const exitCode = await new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === null) reject(new Error(`ended by ${signal}`));
      else resolve(code);
    });
  });
  return { exitCode, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() };
}

/** Runs the CLI as a process of its own, to its end. */
export function cli(args: readonly string[], place: Place = {}): Promise<CommandResult> {
  return untilEnd(start(args, place));
}

/** A server that runs as a process of its own. */
export interface Served {
  readonly grpcAddress: string;
  readonly httpAddress: string;
  readonly child: ChildProcess;
  /** What it said on stderr up to now. */
  readonly words: () => string;
  /** SIGTERM, and how it ended. */
  readonly stop: () => Promise<number>;
}

/** Starts `start-dev` or `serve` on free ports, or for gRPC on a given one, and waits until it listens. */
export async function serve(
  args: readonly string[],
  place: Place = {},
  grpcAddress = "127.0.0.1:0",
): Promise<Served> {
  const ports = ["--grpc-address", grpcAddress, "--http-address", "127.0.0.1:0", "--json"];
  const child = start([...args, ...ports], place);
  let err = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    err += chunk.toString();
  });
  const ended = new Promise<number>((resolve) => {
    child.once("close", (code, signal) => {
      // So that a test that finds its server gone can tell whether somebody killed it or it fell.
      if (signal !== null) err += `ended by ${signal}\n`;
      resolve(code ?? -1);
    });
  });
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once("data", (chunk: Buffer) => {
      resolve(chunk.toString());
    });
    child.once("close", (code) => {
      reject(new Error(`the server ended with ${code}: ${err}`));
    });
  });
  const addresses = JSON.parse(line) as { grpcAddress: string; httpAddress: string };
  const stop = async (): Promise<number> => {
    child.kill("SIGTERM");
    return ended;
  };
  return { ...addresses, child, words: () => err, stop };
}

/** An empty folder, and how to remove it. */
export function temporaryFolder(): { folder: string; remove: () => void } {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-cli-"));
  return {
    folder,
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
