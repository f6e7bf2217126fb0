import { createServer } from "node:net";

// Below the ports the kernel gives to clients (32768 and up), so that a server that was killed finds its own free again,
// and apart from those of the tests' databases (20000 to 29999).
const FIRST = 12_000;
const LAST = 19_999;
/** Free or not, fetch() refuses to call this one: the Fetch standard blocks it, and no other port above 6,697. */
const BLOCKED_PORT = 10_080;
const given = new Set<number>([BLOCKED_PORT]);
/**
 * Files of tests that run at once take ports of different slices: one must not take the port of a server that the other has killed
 * and is about to start again.
 */
const SLICES = 8;
const SLICE = Number(process.env["VITEST_POOL_ID"] ?? process.pid) % SLICES;

/** A port of 127.0.0.1 that nobody listens on and that was not given out before. */
export async function freePort(first: number = FIRST, last: number = LAST): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const size = Math.floor((last - first + 1) / SLICES);
    const port = first + SLICE * size + Math.floor(Math.random() * size);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no free port between ${first} and ${last}`);
}

/** For a database of a test. */
export async function freeDatabasePort(): Promise<number> {
  return freePort(20_000, 29_999);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
