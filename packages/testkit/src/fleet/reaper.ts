// Ends the processes of a test when the test is gone, however it went: a SIGKILL of the test run too. Reads one line for
// each process, "+pid" when it began and "-pid" when it ended; at the end of its input it kills those that are left.
import { createInterface } from "node:readline";

const running = new Set<number>();
// A signal to the whole process group must not end the one that cleans up.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);

for await (const line of createInterface({ input: process.stdin })) {
  const pid = Number(line.slice(1));
  if (!Number.isInteger(pid) || pid < 2) continue;
  if (line.startsWith("+")) running.add(pid);
  else running.delete(pid);
}
for (const pid of running) {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
