// Callers by libraries of other languages, built from sources beside the tests.
import { spawnSync } from "node:child_process";
import path from "node:path";
import { setUp } from "../polyglot/project.ts";
import { cacheOf } from "../prepared.ts";
import { type Caller, programCaller, UNSERVED } from "./caller.ts";

const BUILD_MS = 1_200_000;
const rust = path.resolve(import.meta.dirname, "../../polyglot/rust");

/** tonic, built by cargo. */
function tonic(): Caller {
  if (spawnSync("cargo", ["--version"]).status !== 0) {
    throw new Error("no Rust for the tests: install cargo 1.85 or newer");
  }
  const target = cacheOf("clients/rust");
  const manifest = path.join(rust, "Cargo.toml");
  const words = ["build", "--release", "--locked", "--manifest-path", manifest];
  const { status, stderr, error } = spawnSync("cargo", [...words, "--target-dir", target], {
    encoding: "utf8",
    timeout: BUILD_MS,
  });
  if (status !== 0)
    throw new Error(`cargo could not build the caller: ${error?.message ?? stderr}`);
  // It does not make a call again that it had not sent yet when its connection was told to go, and says CANCELLED.
  return programCaller("tonic", [path.join(target, "release/caller")], [...UNSERVED, "CANCELLED"]);
}

/** A library, and what builds a caller by it. Building fails where a tool is missing. */
export const PROGRAMS: readonly (readonly [library: string, build: () => Caller])[] = [
  ["grpc-go", () => programCaller("grpc-go", setUp("go", "clients").caller)],
  ["grpcio", () => programCaller("grpcio", setUp("python", "clients").caller)],
  ["grpc-java", () => programCaller("grpc-java", setUp("java", "clients").caller)],
  ["tonic", tonic],
];
