// Leaf's and Tinyid's paths under load, and under requests that no caller would send. IDMINT_LONG=1 makes both longer.
import { connect } from "node:net";
import { expect, test } from "vitest";
import { generateId } from "../support.ts";
import { type Answer, type DropIn, makeStepTag, startDropIn } from "./drop-in-support.ts";
import { clientOf } from "./tinyid-client.ts";

const isLong = process.env["IDMINT_LONG"] === "1";
const IDS = isLong ? 100_000 : 3_000;
const REQUESTS = isLong ? 100_000 : 2_000;
const CONNECTIONS = 32;
const GIVE_UP_MS = 300_000;

/** Numbers from a seed that is printed when the test fails: IDMINT_SEED=… repeats a run. */
const seed = Number(process.env["IDMINT_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
let state = seed;
function below(limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
  return Math.floor(((state >>> 0) / 2 ** 32) * limit);
}
const pick = <T>(of: readonly T[]): T => of[below(of.length)] as T;

/** What each path gives one caller at a time. */
const ROUTES: readonly (readonly [path: string, idsOf: (body: string) => readonly bigint[]])[] = [
  ["/api/segment/get/order", (body) => [BigInt(body)]],
  ["/tinyid/id/nextId?bizType=order&token=t&batchSize=5", jsonIds],
  ["/tinyid/id/nextIdSimple?bizType=order&token=t", (body) => body.split(",").map(BigInt)],
  ["/tinyid/id/nextSegmentIdSimple?token=t&bizType=order", (body) => clientOf(body).ids],
];

function jsonIds(body: string): readonly bigint[] {
  return (JSON.parse(body) as { data: number[] }).data.map(BigInt);
}

test.each(ROUTES)(
  "32 connections of one path and gRPC beside it get no id twice: %s",
  async (path, idsOf) => {
    const it = await startDropIn({}, CONNECTIONS);
    await makeStepTag(it, "order", 50);
    const seen = new Set<bigint>();
    const got = { count: 0 };
    const take = (ids: readonly bigint[]): void => {
      got.count += ids.length;
      for (const id of ids) seen.add(id);
    };
    const caller = async (): Promise<void> => {
      while (got.count < IDS) {
        const { status, body } = await it.ask(path);
        expect(status).toBe(200);
        take(idsOf(body));
      }
    };
    const grpc = async (): Promise<void> => {
      while (got.count < IDS) take([(await generateId(it, "order")).id]);
    };
    await Promise.all([...Array.from({ length: CONNECTIONS }, caller), grpc()]);
    expect(got.count).toBeGreaterThanOrEqual(IDS);
    expect(seen.size).toBe(got.count);
  },
  GIVE_UP_MS,
);

const PATHS = [
  "/api/segment/get/order",
  "/api/snowflake/get/order",
  "/decodeSnowflakeId?snowflakeId=1",
  "/tinyid/id/nextId?bizType=order&token=t&batchSize=2",
  "/tinyid/id/nextIdSimple?bizType=order&token=t",
  "/tinyid/id/nextSegmentId?bizType=order&token=t",
  "/tinyid/id/nextSegmentIdSimple?bizType=order&token=t",
];
const PIECES = [
  "%",
  "%2F",
  "%00",
  "%zz",
  "%E8%AE%A2",
  "&",
  "=",
  "?",
  "/",
  "//",
  "..",
  ";a=b",
  "+",
  "a",
  "0",
  "9".repeat(25),
  "-",
  "ghost",
  "&token=",
  "&batchSize=-1",
  "&batchSize=1e9",
  "bizType",
  "~",
  "'",
  '"',
  "<b>",
  "{",
  "|",
  "\\",
  "x".repeat(3_000),
];

/** A path that was cut, doubled, or has something in it that does not belong there. */
function mutated(path: string): string {
  let text = path;
  for (let times = 1 + below(3); times > 0; times--) {
    const at = below(text.length + 1);
    const to = Math.min(text.length, at + below(6));
    const change = below(4);
    if (change === 0) text = text.slice(0, at) + pick(PIECES) + text.slice(at);
    else if (change === 1) text = text.slice(0, at) + text.slice(to);
    else if (change === 2) text = text.slice(0, at) + pick(PIECES) + text.slice(to);
    else text = text.slice(0, to) + text.slice(at);
  }
  return text.startsWith("/") ? text : `/${text}`;
}

/** Whether an answer has one of the forms that callers of its path know. */
function isKnown(path: string, { status, type, body }: Answer): boolean {
  const [bare = ""] = path.split("?");
  const isJson = type.startsWith("application/json");
  const json = (): Record<string, unknown> => JSON.parse(body) as Record<string, unknown>;
  // The door's own answer to what is no path of anybody.
  if (status === 404 && type === "application/json; charset=utf-8") return "code" in json();
  if (!/^\/(?:api\/|decodeSnowflakeId$|tinyid\/id\/)/.test(bare)) return status < 500;
  if (bare.startsWith("/api/")) {
    if (status === 200) return type.startsWith("text/plain") && /^\d{1,19}$/.test(body);
    return isJson && [400, 404, 500].includes(status) && json()["status"] === status;
  }
  if (bare === "/decodeSnowflakeId") {
    return status === 200 && isJson && ("errorMsg" in json() || "workerId" in json());
  }
  if (status === 400) return isJson && json()["status"] === 400;
  if (status !== 200) return false;
  if (!isJson) return /^(?:\d+(?:,\d+)*)?$/.test(body);
  const { code, data } = json();
  return code === 200 ? data !== null : (code === 5 || code === 6) && data === null;
}

test(
  "whatever is asked, the answer has a form that callers know, and the server goes on",
  async () => {
    const it = await startDropIn({}, CONNECTIONS);
    await makeStepTag(it, "order", 50);
    let left = REQUESTS;
    const caller = async (): Promise<void> => {
      while (left-- > 0) {
        const path = mutated(pick(PATHS));
        const method = pick(["GET", "POST", "PUT", "DELETE", "OPTIONS"]);
        const headers = { "content-length": "0" };
        const answer = await asked(it, path, method, headers);
        if (answer !== undefined && !isKnown(path, answer)) {
          throw new Error(`seed ${seed}: ${method} ${path}: ${JSON.stringify(answer)}`);
        }
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, caller));
    await rawRequests(it);
    expect(it.events.filter(({ type }) => type === "internal-error")).toEqual([]);
    expect((await generateId(it, "order")).id).toBeGreaterThan(0n);
  },
  GIVE_UP_MS,
);

/** Undefined: Node's client does not send such a path. */
async function asked(
  it: DropIn,
  path: string,
  method: string,
  headers: Record<string, string>,
): Promise<Answer | undefined> {
  try {
    return await it.ask(path, method, headers);
  } catch (thrown) {
    if (thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}

/** Lines that no library sends. Each connection is answered, or closed. */
async function rawRequests({ server: { httpAddress } }: DropIn): Promise<void> {
  const [host = "", port = ""] = httpAddress.split(":");
  const lines = [
    "GET /api/segment/get/\u0001order HTTP/1.1\r\n\r\n",
    "GET /api/segment/get/order\r\n\r\n",
    "GET http://elsewhere/api/segment/get/order HTTP/1.1\r\nhost: elsewhere\r\nconnection: close\r\n\r\n",
    "GET /tinyid/id/nextId?bizType=\u00e8 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    `GET /api/segment/get/${"a".repeat(100_000)} HTTP/1.1\r\nhost: a\r\n\r\n`,
    "POST /tinyid/id/nextId?bizType=order HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
    "POST /tinyid/id/nextId?bizType=order HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
  ];
  for (const line of lines) {
    const socket = connect({ host, port: Number(port) });
    await new Promise<void>((resolve, reject) => {
      socket.once("close", () => resolve());
      socket.once("error", () => resolve());
      socket.setTimeout(20_000, () => reject(new Error(`no answer to ${line.slice(0, 60)}`)));
      socket.resume();
      socket.end(Buffer.from(line, "latin1"));
    });
  }
}
