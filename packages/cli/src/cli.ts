// The process around `run`: its streams, its signals, its exit code.
import { EXIT } from "./process/exit-code.ts";
import { writeTo } from "./process/io.ts";
import { run } from "./program.ts";
import { askerOn } from "./process/terminal.ts";

// A reader that stops early (`| head`) is not a failure. The ids that it did not read were issued, and become a gap.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? EXIT.ok : EXIT.failure);
});
process.stderr.on("error", () => {
  // Nobody reads stderr any more. The exit code still counts.
});

const interrupt = new AbortController();
// The first Ctrl-C ends the call under way, the second one the process.
process.once("SIGINT", () => {
  interrupt.abort();
});

// The kernel keeps from the first process of a container every signal that it does not handle. So a SIGTERM that comes
// while a server starts would be lost, and whoever stops the container would wait in vain.
if (process.pid === 1) {
  process.on("SIGTERM", () => {
    const isHandledElsewhere = process.listenerCount("SIGTERM") > 1;
    if (!isHandledElsewhere) process.exit(EXIT.terminated);
  });
}

/** How long the process waits at its end for a reader of stderr. */
const LAST_WORDS_MS = 1_000;

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  out: (text) => writeTo(process.stdout, text),
  err: (text) => void process.stderr.write(text),
  ask: askerOn(process.stdin, process.stderr, interrupt.signal),
  isTerminal: { out: process.stdout.isTTY, err: process.stderr.isTTY },
  signal: interrupt.signal,
});

// A stderr that nobody reads must not keep a process that is done. Data on stdout waits for its reader.
setInterval(() => {
  if (process.stdout.writableLength === 0 && process.stderr.writableLength > 0) process.exit();
}, LAST_WORDS_MS).unref();
