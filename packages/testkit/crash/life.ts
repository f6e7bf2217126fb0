// One life of a server that is to die at a point, and what it died of.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { Child } from "../src/fleet/child.ts";
import { until } from "../src/fleet/until.ts";
import { crashEnv, type Point } from "./library.ts";

/** Only a server that hangs takes longer. */
const START_MS = 60_000;
const STOP_MS = 60_000;

/** A moment that code has a name for (`// failpoint: NAME`), and at which of its times the process dies. */
export interface NamedPoint {
  readonly failpoint: string;
  readonly at: number;
}

/** The command line that is killed, and what it is told. */
export interface Subject {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** The file in which a process says what it died of. */
  readonly report: string;
}

/** How a process ended: at its point, on its own as it should, or wrongly. */
export type End =
  | { readonly kind: "killed"; readonly where: string }
  | { readonly kind: "stopped"; readonly counts: string }
  | { readonly kind: "wrong"; readonly what: string };

export function begin(
  { program, env, report }: Subject,
  args: readonly string[],
  point: NamedPoint | Point | undefined,
): Child {
  rmSync(report, { force: true });
  return new Child(program, args, {
    name: args.join(" "),
    env: { ...env, ...envOf(point, report) },
  });
}

function envOf(
  point: NamedPoint | Point | undefined,
  report: string,
): Readonly<Record<string, string>> {
  if (point === undefined || !("failpoint" in point)) return crashEnv(point, report);
  const { failpoint, at } = point;
  const named = { CRASH_FAILPOINT: failpoint, CRASH_FAILPOINT_AT: String(at) };
  return { ...crashEnv(undefined, report), ...named };
}

/** Waits until a server takes calls, or is gone. */
export async function serving(child: Child): Promise<boolean> {
  const serves = (): boolean => child.stdout.includes("grpcAddress");
  await until(`${child.name} serves or ends`, () => serves() || child.exit !== undefined, {
    withinMs: START_MS,
    everyMs: 5,
  });
  return child.exit === undefined;
}

/** Waits for the end of a process that was told to end, or has ended. */
export async function endOf(child: Child, { report }: Subject): Promise<End> {
  const { code, signal } = await child.waitForEnd(STOP_MS);
  const said = existsSync(report) ? readFileSync(report, "utf8").trim() : "";
  const [, where] = /^killed (.*)$/mu.exec(said) ?? [];
  if (signal === "SIGKILL" && where !== undefined) return { kind: "killed", where };
  const [, counts] = /^ended (.*)$/mu.exec(said) ?? [];
  if (code === 0 && counts !== undefined) return { kind: "stopped", counts };
  return { kind: "wrong", what: child.describe() };
}
