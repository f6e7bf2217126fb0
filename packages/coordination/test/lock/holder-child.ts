// Takes a lock, tells its token, and writes with it when a line comes in, whatever has become of the lock meanwhile: as a
// process does that was paused after it looked.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { createLocks } from "../../src/index.ts";
import { writeFenced } from "../fenced.ts";

const [url = "", name = "", ttlMs = ""] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin });
await using locks = createLocks({ nodes: url, ttlMs: Number(ttlMs) });
const grant = await locks.lock(name).acquire();
console.log(`token ${grant.token}`);
await once(lines, "line");
console.log(`written ${await writeFenced(url, name, grant.token)}`);
console.log(`held ${grant.remainingMs > 0} aborted ${grant.signal.aborted}`);
lines.close();
