export { freePort } from "../fleet/ports.ts";
export {
  type RedisData,
  RedisServer,
  type RedisServerOptions,
  type RedisSettings,
} from "./server.ts";
export { sharedRedisUrl } from "./shared.ts";
export {
  MASTER,
  type Member,
  SentinelGroup,
  type SentinelGroupOptions,
  startSentinel,
} from "./sentinel-group.ts";
