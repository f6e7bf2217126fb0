// What kills a server at its n-th call: a library that is loaded into it, compiled once on a machine.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import path from "node:path";
import { debianFiles, programOf } from "../src/debian.ts";
import { cacheOf } from "../src/prepared.ts";

const SOURCE = path.join(import.meta.dirname, "at-call.c");
const FLAGS = ["-O1", "-shared", "-fPIC"];

/** What is counted; `at-call.c` says which system calls each one is. */
export const CALLS = ["write", "fsync", "send"] as const;
export type CallName = (typeof CALLS)[number];

/** A moment of a process's life at which it dies. */
export interface Point {
  readonly call: CallName;
  readonly at: number;
  /** Half of what it writes or sends there goes out before. */
  readonly isTorn: boolean;
}

/** The environment of a process that dies at a point, or of one that only counts. It says in `report` what became of it. */
export function crashEnv(
  point: Point | undefined,
  report: string,
): Readonly<Record<string, string>> {
  const { call = "", at = 0, isTorn = false } = point ?? {};
  return {
    LD_PRELOAD: library(),
    CRASH_CALL: call,
    CRASH_AT: String(at),
    CRASH_TORN: isTorn ? "1" : "0",
    CRASH_REPORT: report,
  };
}

/** Path of the compiled library; Linux with glibc only. */
function library(): string {
  const hash = createHash("sha256").update(readFileSync(SOURCE)).update(FLAGS.join(" "));
  const folder = cacheOf("crash-points");
  const file = path.join(folder, `${hash.digest("hex").slice(0, 16)}.so`);
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  const making = `${file}.${process.pid}`;
  const words = [...FLAGS, "-o", making, SOURCE, "-ldl"];
  const { status, stderr } = spawnSync(compiler(), words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${SOURCE} was not compiled: ${stderr}`);
  renameSync(making, file);
  return file;
}

function compiler(): string {
  return debianFiles({
    name: "gcc",
    packages: ["gcc", "libc6-dev"],
    find: () => programOf("", ["cc", "gcc", "clang"])?.command,
    hint: "no C compiler for the tests: install gcc and libc6-dev",
  });
}
