export {
  type RedisData,
  RedisServer,
  type RedisServerOptions,
  type RedisSettings,
} from "./server.ts";
export { sharedRedisUrl } from "./shared.ts";
