export { type Code, CoordinationError, type NodeCause, type Reason } from "./errors.ts";
export { RedisNode, type RedisSource } from "./redis/node.ts";
