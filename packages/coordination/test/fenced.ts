// A resource that checks fencing tokens: it takes a write only with a token at least as high as any before.
import { Redis } from "ioredis";

const WRITE = `
local last = redis.call('GET', KEYS[1]) or '0'
if #ARGV[1] < #last or (#ARGV[1] == #last and ARGV[1] < last) then return 'stale' end
redis.call('SET', KEYS[1], ARGV[1])
return 'ok'`;

export async function writeFenced(url: string, name: string, token: bigint): Promise<string> {
  const redis = new Redis(url);
  try {
    return String(await redis.eval(WRITE, 1, `fenced:${name}`, String(token)));
  } finally {
    redis.disconnect();
  }
}
