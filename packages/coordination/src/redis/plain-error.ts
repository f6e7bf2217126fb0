/**
 * ioredis hangs the command with its arguments on an error, and Redis repeats those of a command that it does not know.
 * Those of HELLO and AUTH hold the password.
 */
export function plainError(error: unknown): Error {
  const whole = error instanceof Error ? error.message : String(error);
  const message = whole.replace(/, with args beginning with:.*$/s, "");
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return new Error(message === "" ? code : message);
}
