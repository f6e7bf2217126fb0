// Starts a Redis, tells where, and stays until it is ended.
import { RedisServer } from "../../src/redis/server.ts";

const server = await RedisServer.start();
console.log(`${server.pid} ${server.folder}`);
setInterval(() => undefined, 60_000);
