import { type Logger, pino } from "pino";
import type { LogLevel } from "../config/table.ts";

export type { Logger } from "pino";

/** Where lines go: stderr, so that stdout stays data. */
const STDERR = 2;
/** Bytes of lines that wait for a stderr nobody reads; more are dropped, since a log must not stop the server. */
const MAX_BUFFERED_BYTES = 8 * 1_024 * 1_024;

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

/** What takes finished lines. */
export interface LineSink {
  write(line: string): void;
}

export interface LogTarget {
  readonly logger: Logger;
  /** Writes what still waits; to be called before the process ends. */
  readonly flush: () => void;
}

/** The server's logger. `sink` takes the lines instead of stderr. */
export function createLogger(
  options: {
    readonly level: LogLevel;
    readonly format: "json" | "text";
    /** Which of several processes writes; on every line. */
    readonly worker?: number | undefined;
  },
  sink?: LineSink,
): LogTarget {
  const { worker } = options;
  const file = sink === undefined ? openStderr() : undefined;
  const lines = sink ?? file ?? { write: () => undefined };
  const target = options.format === "json" ? lines : textSink(lines);
  const logger = pino(
    {
      level: options.level,
      base: worker === undefined ? null : { worker, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: "[redacted]" },
    },
    target,
  );
  return { logger, flush: () => flush(file) };
}

type Stderr = ReturnType<typeof pino.destination>;

function openStderr(): Stderr {
  return pino.destination({ dest: STDERR, sync: false, maxLength: MAX_BUFFERED_BYTES });
}

function flush(file: Stderr | undefined): void {
  try {
    file?.flushSync();
  } catch {
    // Nobody reads stderr any more; there is nowhere to say so.
  }
}

/** Lines for people: time, level, sentence, and the facts after it. */
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
