import { WorkerRegistry } from "@idmint/proto";
import { onTestFinished, test } from "vitest";
import { RedisServer } from "../../../src/redis/index.ts";
import { ownPostgres } from "../../fleet-support.ts";
import { holdWorkerIds, TEST_TIMEOUT_MS } from "./worker-ids.ts";

/** Sets when the leases of instances end, and forgets when the next one does. */
const END_LEASES = `local ended = {}
for _, instance in ipairs(ARGV) do ended[instance] = true end
local flat = redis.call('HGETALL', KEYS[1])
for at = 1, #flat, 2 do
  local name, value = flat[at], flat[at + 1]
  local instance, rest = string.match(value, '^(%S+) (%S+ %S+) %S+$')
  if instance and ended[instance] then redis.call('HSET', KEYS[1], name, instance .. ' ' .. rest .. ' 0') end
  if string.sub(name, 1, 2) == 'f:' then redis.call('HDEL', KEYS[1], name) end
end
return 'OK'`;

test(
  "worker ids in Redis: no id twice, whoever is killed, frozen or has a wrong clock",
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const postgres = await ownPostgres();
    await using database = await postgres.createDatabase();
    const redis = await RedisServer.start();
    onTestFinished(() => redis.close());
    await holdWorkerIds({
      storeUrl: database.url,
      env: { IDMINT_REDIS_URLS: redis.url },
      registry: WorkerRegistry.REDIS,
      hasOneClock: false,
      endLeases: async (instances) => {
        await redis.command("EVAL", END_LEASES, 1, "idmint:{workers}", ...instances);
      },
    });
  },
);
