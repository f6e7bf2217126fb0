// Disks that fail, by answers of the kernel that strace gives in its place.
import { once } from "node:events";
import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { debianFiles, type Program, programOf } from "../../src/debian.ts";
import { tellReaper } from "../../src/fleet/child.ts";

/** `EIO`: what was written may not be on the disk; `ENOSPC`: the disk is full. */
const FAILURES = {
  EIO: "fsync,fdatasync:error=EIO",
  ENOSPC: "pwrite64,pwritev,ftruncate,fallocate:error=ENOSPC",
} as const;

let program: Program | undefined;

/** Whether this user may change what the kernel answers to processes that are not its children. */
export const mayTrace: boolean = process.getuid?.() === 0;

/** System calls of a process fail for a while. */
export async function failDisk(
  pid: number,
  how: keyof typeof FAILURES,
  forMs: number,
): Promise<void> {
  program ??= debianFiles({
    name: "strace",
    packages: ["strace"],
    find: (unpacked) => programOf(unpacked, ["strace"]),
    hint: "no strace for the tests: install the package strace",
  });
  const inject = FAILURES[how];
  const calls = inject.slice(0, inject.indexOf(":"));
  const words = ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${calls}`, "-e", `inject=${inject}`];
  const tracer = spawn(program.command, [...words, "-p", String(pid)], {
    env: { PATH: process.env["PATH"], ...program.env },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(tracer, "exit");
  // When it ends, whatever ends it, the kernel answers for itself again.
  tellReaper(`+${tracer.pid ?? 0}\n`);
  await pause(forMs);
  tracer.kill("SIGTERM");
  await ended;
  tellReaper(`-${tracer.pid ?? 0}\n`);
}
