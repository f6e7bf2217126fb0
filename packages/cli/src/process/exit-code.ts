import type { Code } from "@idmint/core";

/** The exit codes, the same for every command. */
export const EXIT = {
  ok: 0,
  /** The command was understood and refused, or a fault occurred. */
  failure: 1,
  /** The command line or a value in it is wrong: the same call can never succeed. */
  usage: 2,
  notFound: 3,
  /** No server, no store or no answer in time: the same call may succeed later. */
  unavailable: 4,
  /** `idmint health` or `idmint status` was answered, and the server is not well. */
  unhealthy: 5,
  /** Ended by Ctrl-C: 128 + SIGINT, as shells have it. */
  interrupted: 130,
  /** Ended by SIGTERM before anything had begun: 128 + SIGTERM. */
  terminated: 143,
} as const;

const EXIT_OF_CODE: Readonly<Partial<Record<Code, number>>> = {
  INVALID_ARGUMENT: EXIT.usage,
  NOT_FOUND: EXIT.notFound,
  UNAVAILABLE: EXIT.unavailable,
  DEADLINE_EXCEEDED: EXIT.unavailable,
  CANCELLED: EXIT.interrupted,
};

/** The exit code for a gRPC code by name; any other name is a failure. */
export function exitCodeOf(code: string): number {
  return EXIT_OF_CODE[code as Code] ?? EXIT.failure;
}
