import { randomBytes } from "node:crypto";
import { MAX_LEAD_MS, WORKER_TTL_MS } from "@idmint/core";
import type {
  RedisLeaseRequest,
  RedisRelease,
  RedisRenewal,
  RedisSeeded,
  RedisWorkers,
  RedisWorkersAnswer,
  RedisWorkersSeed,
  Worker,
} from "@idmint/core/server";
import { doubtOf, nonsense, numberOf, textsOf, vacancyOf } from "./answers.ts";
import { keyOf } from "./keys.ts";
import type { OwnedConnection } from "./owned-connection.ts";
import { type Script, SNOWFLAKE_SEED } from "./scripts.ts";
import { WORKER_LEASE, WORKER_RELEASE, WORKER_RENEW } from "./worker-scripts.ts";

const TOKEN = /^[1-9]\d{0,18}$/;
const DATA_CENTER = /^u:(\d{1,5})$/;

/** Worker ids of one Redis: fields of a tag's hash, as worker-scripts.ts says. */
export class WorkerScripts implements RedisWorkers {
  readonly #connection: OwnedConnection;

  constructor(connection: OwnedConnection) {
    this.#connection = connection;
  }

  async lease(request: RedisLeaseRequest): Promise<RedisWorkersAnswer> {
    const { instance, reserveAheadMs, workerIds } = request;
    const args = [instance, reserveAheadMs, newToken(), workerIds, WORKER_TTL_MS, MAX_LEAD_MS];
    return this.#ask(WORKER_LEASE, request, args);
  }

  async renew(renewal: RedisRenewal): Promise<RedisWorkersAnswer> {
    const { workerId, token, reserveUntilMs, reserveAheadMs } = renewal;
    const reserve = [reserveUntilMs, reserveAheadMs, WORKER_TTL_MS, MAX_LEAD_MS];
    return this.#ask(WORKER_RENEW, renewal, [workerId, token, newToken(), ...reserve]);
  }

  async release(key: RedisRelease): Promise<RedisWorkersAnswer> {
    return this.#ask(WORKER_RELEASE, key, [key.workerId, key.token, newToken()]);
  }

  async list({
    tag,
    after,
    limit,
  }: Parameters<RedisWorkers["list"]>[0]): Promise<readonly Worker[]> {
    const found: Worker[] = [];
    for (const [dataCenter, used] of await this.#dataCenters(tag)) {
      const isPast = after !== undefined && dataCenter < after.dataCenter;
      const from = dataCenter === after?.dataCenter ? after.workerId + 1 : 0;
      const count = Math.min(used - from, limit - found.length);
      if (isPast || count <= 0) continue;
      const ids = Array.from({ length: count }, (_, at) => from + at);
      const fields = ids.map((id) => `w:${dataCenter}:${id}`);
      const [rows = []] = await this.#connection.read([keyOf(tag)], fields);
      rows.forEach((row, at) => {
        if (row !== null) found.push(workerOf(dataCenter, from + at, row));
      });
    }
    return found;
  }

  /** The data centers that have workers, ascending, and how many worker ids were leased in each. */
  async #dataCenters(tag: string): Promise<readonly (readonly [number, number])[]> {
    return this.#connection.run(async (redis) => {
      const found: (readonly [number, number])[] = [];
      let cursor = "0";
      do {
        const [next, flat] = await redis.hscan(keyOf(tag), cursor, "MATCH", "u:*", "COUNT", 1_000);
        for (let at = 0; at + 1 < flat.length; at += 2) {
          const [, dataCenter] = DATA_CENTER.exec(flat[at] ?? "") ?? [];
          if (dataCenter !== undefined) found.push([Number(dataCenter), numberOf(flat[at + 1])]);
        }
        cursor = next;
      } while (cursor !== "0");
      // A field may be told twice.
      return [...new Map(found)].toSorted(([a], [b]) => a - b);
    });
  }

  async seed(request: RedisWorkersSeed): Promise<RedisSeeded> {
    const { tag, generation, afterMs, limitMs, doubt } = request;
    const fields = ["start_ms", afterMs, "limit_ms", limitMs, "changes", 0].map(String);
    const args = [String(generation), vacancyOf(doubt), tag, ...fields];
    const answer = textsOf(await this.#connection.script(SNOWFLAKE_SEED, [keyOf(tag)], args));
    return answer[0] === "seeded" ? { status: "seeded" } : (doubtOf(answer) ?? fail());
  }

  async #ask(
    which: Script,
    { tag, generation, seen, dataCenter }: Omit<RedisRelease, "workerId" | "token">,
    more: readonly (string | number | bigint)[],
  ): Promise<RedisWorkersAnswer> {
    const args = [generation, seen, dataCenter, ...more].map(String);
    const answer = textsOf(await this.#connection.script(which, [keyOf(tag)], args));
    const [status, first, token = "", ...rest] = answer;
    if (status === "lost" || status === "exhausted") return { status };
    if (status === "limit") return { status, untilMs: numberOf(first) };
    if (status !== "done") return doubtOf(answer) ?? fail();
    const [notBeforeMs = 0, reservedUntilMs = 0, nowMs = 0, limitMs = 0, changes = 0] =
      rest.map(numberOf);
    const times = { notBeforeMs, reservedUntilMs, nowMs, limitMs };
    return { status, workerId: numberOf(first), token: tokenOf(token), ...times, changes };
  }
}

/** 63 random bits, and never 0. */
function newToken(): bigint {
  return (randomBytes(8).readBigUInt64BE() >> 1n) | 1n;
}

function tokenOf(text: string): bigint {
  if (!TOKEN.test(text)) throw nonsense();
  return BigInt(text);
}

function workerOf(dataCenter: number, workerId: number, row: string): Worker {
  const [instance = "", token = "", reserved, expires] = row.split(" ");
  return {
    dataCenter,
    workerId,
    instance,
    token: tokenOf(token),
    extension: 0,
    reservedUntilMs: numberOf(reserved),
    expiresAtMs: numberOf(expires),
  };
}

function fail(): never {
  throw nonsense();
}
