// Requests that no client would send: each is answered with an error that says something or its connection is closed, and
// the server goes on for everybody else. IDMINT_LONG=1 sends 100,000 of them.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as api from "@idmint/proto";
import { expect, test } from "vitest";
import { createTag, generateId, sleep, startTest, type TestServer } from "../support.ts";
import { type Drawn, draw, seed } from "./mutations.ts";
import { type Raw, rawConnection } from "./raw.ts";

const IS_LONG = process.env["IDMINT_LONG"] === "1";
const REQUESTS = IS_LONG ? 100_000 : 2_000;
/** Most of them wait for the end of what has none. */
const SENDERS = IS_LONG ? 96 : 24;
/** Looks after which an answer of a request that came whole is here; of others nobody knows whether they go on. */
const PATIENCE = 40;
const CLOSED_WITHIN = 3_000;
/** Of what is still reachable afterwards, of the senders' too. */
const MAX_GROWN_BYTES = 128 * 1_024 * 1_024;

/** Bytes that are in use when all garbage is gone. */
function inUse(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Connect's words for the codes of the table. */
const CODES = new Set([
  "aborted",
  "already_exists",
  "canceled",
  "deadline_exceeded",
  "failed_precondition",
  "invalid_argument",
  "not_found",
  "out_of_range",
  "permission_denied",
  "resource_exhausted",
  "unauthenticated",
  "unavailable",
  "unimplemented",
  "unknown",
]);

interface Method {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
}

const paths: readonly string[] = Object.entries(api)
  .filter(([name]) => name.endsWith("Service"))
  .flatMap(([, service]) => Object.values(service as unknown as Record<string, Method>))
  .map(({ path }) => path)
  // They would stop the victim, as they should.
  .filter((path) => !/\/(?:StopIssuing|DrainNode)$/.test(path));

/** Why what came is not as it should be; undefined: it is. */
function faultOf(drawn: Drawn, raw: Raw, from: number): string | undefined {
  const answers = raw.answersFrom(from);
  if (answers.length > drawn.requests) return `${answers.length} answers`;
  for (const { status, body } of answers) {
    if (status === 200) {
      if (drawn.isFromElsewhere) return "an answer for a page of another origin";
      continue;
    }
    if (status >= 300 && status < 400) continue;
    let json: { readonly code?: string; readonly message?: string };
    try {
      json = JSON.parse(body) as typeof json;
    } catch {
      return `HTTP ${status} without JSON: ${body.slice(0, 100)}`;
    }
    // What probes say of a server that is not ready has no code.
    if (status === 503 && json.code === undefined) continue;
    if (!CODES.has(json.code ?? "") || (json.message ?? "") === "") {
      return `HTTP ${status}: ${body.slice(0, 200)}`;
    }
  }
  return undefined;
}

/** Sends one, and waits for all its answers, or for the end of the connection. */
async function exchange(raw: Raw, drawn: Drawn, from: number): Promise<string | undefined> {
  for (const [at, part] of drawn.parts.entries()) {
    if (at > 0) await sleep(1);
    if (!raw.socket.destroyed) raw.socket.write(part);
  }
  const isOver = (): boolean =>
    raw.isClosed() || (!drawn.isHead && raw.answersFrom(from).length >= drawn.requests);
  await within(PATIENCE, isOver);
  if (!isOver()) {
    raw.socket.end();
    if (!(await within(CLOSED_WITHIN, () => raw.isClosed()))) return "it is never closed";
  }
  return drawn.isHead ? undefined : faultOf(drawn, raw, from);
}

/** Looks some 20 ms apart, so that a machine that stands still for a while takes none away. */
async function within(looks: number, holds: () => boolean): Promise<boolean> {
  for (let look = 0; !holds(); look++) {
    if (look > looks) return false;
    await sleep(Math.min(20, look));
  }
  return true;
}

/** Somebody who does everything right, on the same door: each call has to be answered, with an id of its own. */
async function victim(it: TestServer, isOver: () => boolean): Promise<number> {
  const ids = new Set<string>();
  const url = `http://${it.server.httpAddress}/idmint.v1.IdService/GenerateId`;
  const headers = { "content-type": "application/json" };
  do {
    const response = await fetch(url, { method: "POST", headers, body: '{"tag":"victim"}' });
    const { id } = (await response.json()) as { id: string };
    if (response.status !== 200 || ids.has(id)) throw new Error(`HTTP ${response.status}, ${id}`);
    ids.add(id);
    await sleep(5);
  } while (!isOver());
  return ids.size;
}

test(
  "mutated requests get errors of the table, and nobody else notices",
  { timeout: 3_600_000 },
  async () => {
    const it = await startTest();
    for (const tag of ["orders", "victim", "smuggled"]) await createTag(it, tag);
    const faults: string[] = [];
    const statuses = new Map<number, number>();
    const grownFrom = inUse();
    let sent = 0;
    const sender = async (): Promise<void> => {
      let raw: Raw | undefined;
      let from = 0;
      while (sent < REQUESTS && faults.length < 5) {
        const drawn = draw(paths[sent++ % paths.length] ?? "");
        if (raw === undefined || raw.isClosed() || raw.socket.writableEnded) {
          raw?.socket.destroy();
          raw = rawConnection(it.server.httpAddress);
          from = 0;
        }
        const fault = await exchange(raw, drawn, from);
        for (const { status } of raw.answersFrom(from)) {
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        }
        from = raw.received().length;
        if (fault !== undefined) {
          faults.push(`${fault}\n${JSON.stringify(drawn.parts.join("|").slice(0, 1_500))}`);
        }
        // After answers that cannot be counted, nobody knows where the next one begins.
        if (drawn.isHead) raw.socket.destroy();
      }
      raw?.socket.destroy();
    };
    let isOver = false;
    const unharmed = victim(it, () => isOver);
    await Promise.all(Array.from({ length: SENDERS }, sender));
    isOver = true;
    expect(faults, `IDMINT_SEED=${seed}`).toEqual([]);
    expect(await unharmed).toBeGreaterThan(10);
    expect(it.events.filter(({ type }) => type === "internal-error")).toEqual([]);
    const grown = inUse() - grownFrom;
    expect(grown).toBeLessThan(MAX_GROWN_BYTES);
    // They reached all that may refuse them.
    for (const status of [200, 400, 403, 404, 405, 413, 415, 421, 431, 501]) {
      expect([...statuses.keys()], `IDMINT_SEED=${seed}`).toContain(status);
    }
    // What lay in the body of another request was never taken for one.
    expect(await generateId(it, "smuggled")).toMatchObject({ id: 1n });
    console.log([...statuses].toSorted(([a], [b]) => a - b).join("  "), "grown by", grown);
  },
);
