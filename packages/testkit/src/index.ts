export { selfSigned } from "./certificate.ts";
export { doorEnv, serverEnv } from "./doors.ts";
export { FakeWallClock, wallClockEnv } from "./faketime.ts";
export { builtOf, CLI } from "./program.ts";
export { FakeTime } from "./fake-time.ts";
export { MemoryDatabase, type MemorySnapshot } from "./memory/database.ts";
export {
  done as doneInMemory,
  MemoryStore,
  type StoreFaults,
  storeIsDown,
} from "./memory/store.ts";
export type { RedisSnapshot } from "./memory/redis/hashes.ts";
export { MemoryRedis, type RedisCalls } from "./memory/redis/redis.ts";
export { MemoryTicketDatabase } from "./memory/ticket-database.ts";
export { type RawAnswer, rawConnection, type RawConnection } from "./callers/raw-connection.ts";
