import { debianFiles, type Program, programOf } from "../debian.ts";

let program: Program | undefined;

/** The Redis server to run; installed or unpacked at the first call when the machine has none. */
export function redisProgram(): Program {
  program ??= debianFiles({
    name: "redis",
    packages: ["redis-server"],
    libraries: ["redis-tools", "liblua5.1-0", "libjemalloc2", "liblzf1", "lua-cjson", "lua-bitop"],
    find: (unpacked) => programOf(unpacked, ["redis-server", "valkey-server"]),
    hint: "no Redis for the tests: install redis-server or valkey-server, version 7 or newer, or set IDMINT_TEST_REDIS_URL for those tests that need no server of their own",
  });
  return program;
}
