/** What ioredis says of commands whose connection ended. It speaks of its own options and attempts, which nobody set. */
const BROKEN = [
  "Command aborted due to connection close",
  "Connection is closed",
  "Reached the max retries per request limit",
  "Socket timeout.",
  "Stream isn't writeable",
];

/**
 * ioredis hangs the command with its arguments on an error, and Redis repeats those of a command that it does not know.
 * Those of HELLO and AUTH hold the password.
 */
export function plainError(error: unknown): Error {
  const whole = error instanceof Error ? error.message : String(error);
  if (BROKEN.some((words) => whole.startsWith(words))) {
    return new Error("the connection broke before it answered");
  }
  const message = whole.replace(/, with args beginning with:.*$/s, "");
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return new Error(message === "" ? code : message);
}
