import { type Logger, pino } from "pino";
import type { LogLevel } from "../config/table.ts";
import { presentTrace } from "../service/trace.ts";
import { StderrLines } from "./stderr.ts";

export type { Logger } from "pino";

/** Fields that never reach a line, whatever is logged with them. */
const REDACTED = [
  "password",
  "storePassword",
  "authorization",
  "token",
  "releaseToken",
  "release_token",
  "*.password",
  "*.storePassword",
  "*.authorization",
  "*.token",
  "*.releaseToken",
  "*.release_token",
];

/** Takes finished lines. */
export interface LineSink {
  write(line: string): void;
}

export interface LogTarget {
  readonly logger: Logger;
  /** Waits, for a bounded time, until the lines are written. Call it before the process ends. */
  readonly flush: () => Promise<void>;
}

/** The server's logger. `sink` takes the lines instead of stderr. */
export function createLogger(
  options: {
    readonly level: LogLevel;
    readonly format: "json" | "text";
    /** The number of this process among several. It stands on every line. */
    readonly process?: number | undefined;
  },
  sink?: LineSink,
): LogTarget {
  const { process: number } = options;
  const stderr = sink === undefined ? new StderrLines() : undefined;
  const lines = sink ?? stderr ?? { write: () => undefined };
  const target = options.format === "json" ? lines : textSink(lines);
  const logger = pino(
    {
      level: options.level,
      base: number === undefined ? null : { process: number, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      mixin: () => presentTrace()?.ids ?? {},
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: "[redacted]" },
    },
    target,
  );
  return { logger, flush: async () => stderr?.flush() };
}

/** Writes lines for people: time, level, sentence, and then the facts. */
function textSink(out: LineSink): LineSink {
  return {
    write: (line) => {
      const { level, time, msg, ...facts } = JSON.parse(line) as Record<string, unknown>;
      const clock = String(time).slice(11, 19);
      const more = Object.entries(facts)
        .map(
          ([name, value]) =>
            ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
        )
        .join("");
      out.write(`${clock} ${String(level).padEnd(5)} ${String(msg)}${more}\n`);
    },
  };
}
