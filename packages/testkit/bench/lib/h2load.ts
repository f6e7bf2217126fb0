// The load generator: h2load of nghttp2, which takes a tenth of the time that a server on grpc-js takes for a call.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { debianFiles, type Program, programOf } from "../../src/debian.ts";
import { cores } from "./cpus.ts";
import { Subject } from "./process.ts";
import { percentile } from "./statistics.ts";

/** What is asked of a server, and how. */
export interface Load {
  readonly address: string;
  /** Whether through TLS; whose certificate it is does not matter. Default: in plain text. */
  readonly isSecure?: boolean;
  /** `/idmint.v1.IdService/GenerateId` */
  readonly path: string;
  /** The request message, serialized. Undefined: GET by HTTP/1.1. */
  readonly message: Uint8Array | undefined;
  readonly connections: number;
  /** Calls in flight on each connection. */
  readonly streams: number;
  readonly seconds?: number;
  /** Instead of `seconds`: how many calls in all. */
  readonly calls?: number;
  /** Constant rate of all connections together; default: as fast as it goes. */
  readonly callsPerSecond?: number;
  /** Whether the generator stays on its own core. Default: true. */
  readonly isPinned?: boolean;
}

/** What came of it. */
export interface LoadResult {
  /** Calls answered with HTTP 200; whether gRPC's own status was OK is for the caller to check (`assertAnswered`). */
  readonly answered: number;
  /** Calls that h2load itself saw fail. */
  readonly failed: number;
  /** Bytes of messages that came back. */
  readonly bytes: number;
  readonly callsPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  /** Processor time of the generator, microseconds a call. */
  readonly generatorCpuUs: number;
}

/** Runs h2load once. */
export async function runLoad(load: Load): Promise<LoadResult> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-bench-"));
  try {
    const body = path.join(folder, "body");
    const log = path.join(folder, "log");
    if (load.message !== undefined) writeFileSync(body, framed(load.message));
    const { command: h2load, env } = h2loadProgram();
    const command = [h2load, ...argumentsOf(load, body, log)];
    // `times` of the shell tells what its children used; the second line is theirs.
    const shell = ["sh", "-c", '"$@"; times', "sh", ...command];
    const pin = load.isPinned === false ? [] : cores.generator;
    await using generator = new Subject("h2load", [...pin, ...shell], { env });
    const output = await generator.toEnd(((load.seconds ?? 60) + 60) * 1_000);
    return resultOf(output, readFileSync(log, "latin1"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What each of its calls has besides its message. */
export const GRPC_HEADERS: readonly string[] = [
  "-H",
  "content-type: application/grpc",
  "-H",
  "te: trailers",
];

function argumentsOf(load: Load, body: string, log: string): readonly string[] {
  const {
    address,
    isSecure = false,
    connections,
    streams,
    seconds,
    calls,
    callsPerSecond,
    message,
  } = load;
  const amount =
    calls === undefined ? ["-D", `${Math.round((seconds ?? 1) * 1_000)}ms`] : ["-n", String(calls)];
  const rate = callsPerSecond === undefined ? [] : ["--rps", String(callsPerSecond / connections)];
  return [
    ...amount,
    ...rate,
    "-c",
    String(connections),
    "-m",
    String(streams),
    ...(message === undefined ? ["--h1"] : [...GRPC_HEADERS, "-d", body]),
    `--log-file=${log}`,
    `${isSecure ? "https" : "http"}://${address}${load.path}`,
  ];
}

/** A gRPC message on the wire: not compressed, its length, itself. */
export function framed(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}

/** Exported for its test. `log`: start in µs, HTTP status, duration in µs, one line a call. */
export function resultOf(output: string, log: string): LoadResult {
  const find = (pattern: RegExp): number => {
    const match = pattern.exec(output)?.[1];
    if (match === undefined) throw new Error(`h2load did not say ${String(pattern)}:\n${output}`);
    return Number(match);
  };
  const answered = find(/^status codes: (\d+) 2xx/m);
  const latencies = Float64Array.from(
    log.split("\n").flatMap((line) => {
      const [, status, us] = line.split("\t");
      return status === "200" ? [Number(us) / 1_000] : [];
    }),
  ).toSorted();
  const [user = "", system = ""] = (output.trimEnd().split("\n").at(-1) ?? "").split(" ");
  const cpuSeconds = secondsOf(user) + secondsOf(system);
  return {
    answered,
    failed: find(/(\d+) failed/) + find(/(\d+) timeout/),
    bytes: find(/\((\d+)\) data$/m),
    callsPerSecond: find(/, ([\d.]+) req\/s/),
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    p999: percentile(latencies, 0.999),
    generatorCpuUs: (cpuSeconds / answered) * 1e6,
  };
}

/** `0m1.234s` in seconds. */
function secondsOf(text: string): number {
  const [, minutes = "", seconds = ""] = /^(\d+)m([\d.]+)s$/.exec(text) ?? [];
  return Number(minutes) * 60 + Number(seconds);
}

let program: Program | undefined;

/** Makes sure that the generator is there; installs it where that is allowed, or says in one line what to install. */
export function assureGenerator(): void {
  if (!existsSync(`/proc/self/task/${process.pid}/children`)) {
    throw new Error("the benchmarks need Linux: they read /proc");
  }
  h2loadProgram();
}

/** The program; installed or unpacked at the first call when the machine has none. */
export function h2loadProgram(): Program {
  program ??= debianFiles({
    name: "h2load",
    packages: ["nghttp2-client"],
    libraries: ["libnghttp2-14", "libev4", "libjansson4", "libjemalloc2", "libxml2"],
    find: (unpacked) => programOf(unpacked, ["h2load"]),
    hint: "h2load is missing: install nghttp2 (Debian: nghttp2-client)",
  });
  return program;
}
