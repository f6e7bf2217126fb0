// Callers in a process of their own, each of which awaits one id after the other. Usage: callers.ts '{"way":"sdk",…}'.
// Writes one line of JSON.
import { credentials } from "@grpc/grpc-js";
import { percentile } from "./statistics.ts";

/** How ids are asked for. */
type Way =
  /** The SDK's `next()`. */
  | "sdk"
  /** GenerateId through grpc-js, without the SDK. */
  | "grpc"
  /** HINCRBY through ioredis, all of one turn in one pipeline. */
  | "hincrby"
  /** A script of Redis that counts below a maximum, and does nothing else. */
  | "script"
  /** One UPDATE … RETURNING an id, over a pool of connections. */
  | "update";

/** What is asked, and how. */
export interface Calls {
  readonly way: Way;
  /** Of gRPC host:port, otherwise a URL. */
  readonly address: string;
  /** Tag, key, or table. */
  readonly name: string;
  readonly callers: number;
  readonly seconds: number;
}

/** What came of it. */
export interface Called {
  readonly answered: number;
  readonly perSecond: number;
  /** Microseconds that half of the calls took at most. */
  readonly p50: number;
}

interface Asking {
  readonly next: () => Promise<unknown>;
  readonly close: () => Promise<unknown>;
}

/** As many as PostgreSQL takes without queues of its own; more make the row's lock slower. */
const CONNECTIONS = 16;
/**
 * Half of the time again to warm up, and until so many calls were made, for each second that is measured: the first few
 * thousand run code that is not compiled yet, which takes two or three times as long.
 */
const WARM_CALLS_PER_SECOND = 1_500;
const MAX_WARM_UP_MS = 10_000;
/** Calls whose time is kept. */
const MAX_TIMES = 1_000_000;

const SCRIPT = `
local cur, max = redis.call('HGET', KEYS[1], 'cur') or '0', 9007199254740991
if tonumber(cur) + ARGV[1] > max then return redis.error_reply('exhausted') end
return tostring(redis.call('HINCRBY', KEYS[1], 'cur', ARGV[1]))`;

const WAYS: Readonly<Record<Way, (calls: Calls) => Promise<Asking>>> = {
  sdk: async ({ address, name }) => {
    const { createIdClient } = await import("@idmint/client");
    const client = createIdClient({ address });
    const tag = client.tag(name);
    return { next: () => tag.next(), close: () => client.close() };
  },
  grpc: async ({ address, name }) => {
    const { IdServiceClient } = await import("@idmint/proto/grpc-js");
    const client = new IdServiceClient(address, credentials.createInsecure());
    const next = () =>
      new Promise((resolve, reject) => {
        client.generateId({ tag: name, name: "" }, (error, answer) => {
          if (error === null) resolve(answer.id);
          else reject(error);
        });
      });
    return { next, close: async () => client.close() };
  },
  hincrby: async ({ address, name }) => {
    const { Redis } = await import("ioredis");
    const redis = new Redis(address, { enableAutoPipelining: true });
    return { next: () => redis.hincrby(name, "cur", 1), close: () => redis.quit() };
  },
  script: async ({ address, name }) => {
    const { Redis } = await import("ioredis");
    const redis = new Redis(address);
    const sha = (await redis.script("LOAD", SCRIPT)) as string;
    return { next: () => redis.evalsha(sha, 1, name, 1), close: () => redis.quit() };
  },
  update: async ({ address, name, callers }) => {
    const { default: pg } = await import("pg");
    const max = Math.min(callers, CONNECTIONS);
    const pool = new pg.Pool({ connectionString: address, max });
    const text = `UPDATE ${name} SET n = n + 1 RETURNING n`;
    return { next: () => pool.query({ name: "next", text }), close: () => pool.end() };
  },
};

async function run(calls: Calls): Promise<Called> {
  const { next, close } = await WAYS[calls.way](calls);
  const times = new Float64Array(MAX_TIMES);
  let answered = 0;
  let endAt = performance.now() + calls.seconds * 500;
  let least = calls.seconds * WARM_CALLS_PER_SECOND;
  const latestAt = endAt + MAX_WARM_UP_MS;
  const call = async (): Promise<void> => {
    for (;;) {
      const begin = performance.now();
      if (begin >= endAt && (answered >= least || begin >= latestAt)) return;
      await next();
      times[answered % MAX_TIMES] = performance.now() - begin;
      answered++;
    }
  };
  const callers = Array.from({ length: calls.callers }, () => call);
  await Promise.all(callers.map((each) => each()));
  answered = 0;
  least = 0;
  const begin = performance.now();
  endAt = begin + calls.seconds * 1_000;
  await Promise.all(callers.map((each) => each()));
  const seconds = (performance.now() - begin) / 1_000;
  await close();
  const kept = times.subarray(0, Math.min(answered, MAX_TIMES)).toSorted();
  return { answered, perSecond: answered / seconds, p50: percentile(kept, 0.5) * 1_000 };
}

if (import.meta.main) {
  const calls = JSON.parse(process.argv[2] ?? "") as Calls;
  console.log(JSON.stringify(await run(calls)));
}
