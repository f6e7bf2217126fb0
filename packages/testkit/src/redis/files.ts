// Where a real Redis comes from: the PATH, else Debian's packages, installed by root or unpacked by anybody.
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync, readdirSync } from "node:fs";
import path from "node:path";

/** How to run a Redis server. */
export interface RedisProgram {
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
}

const PROGRAMS = ["redis-server", "valkey-server"] as const;
const cache = path.resolve(import.meta.dirname, "../../../../node_modules/.cache/idmint-redis");

// RUNLEVEL=1 keeps Debian from starting the service: the tests start their own.
const INSTALL = `
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
install() { apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 redis-server; }
command -v redis-server || install || { apt-get update && install; }`;

// The libraries are those that Debian's build needs and that a small system lacks.
const UNPACK = `
[ -e usr/bin/redis-server ] && exit
packages="redis-server redis-tools liblua5.1-0 libjemalloc2 liblzf1 lua-cjson lua-bitop"
apt-get download $packages || exit
rm -rf unpacked && mkdir unpacked || exit
for file in *.deb; do dpkg -x "$file" unpacked || exit; done
rm -rf usr && mv unpacked/usr usr && rm -rf unpacked *.deb`;

let program: RedisProgram | undefined;

/** The server to run; installed or unpacked at the first call when the machine has none. */
export function redisProgram(): RedisProgram {
  program ??= onPath() ?? unpacked() ?? installed();
  return program;
}

function installed(): RedisProgram {
  mkdirSync(cache, { recursive: true });
  const isRoot = process.getuid?.() === 0;
  // The kernel lets go of the lock when its holder dies. Whoever waited finds the work done.
  const script = ["flock", "-w", "300", "lock", "sh", "-c", isRoot ? INSTALL : UNPACK] as const;
  const { status, stderr, error } = spawnSync(script[0], script.slice(1), {
    cwd: cache,
    encoding: "utf8",
    timeout: 600_000,
  });
  const found = status === 0 ? (onPath() ?? unpacked()) : undefined;
  if (found !== undefined) return found;
  const why = error?.message ?? stderr.trim().split("\n").at(-1) ?? "";
  throw new Error(
    `no Redis for the tests: install redis-server or valkey-server, version 7 or newer, or set IDMINT_TEST_REDIS_URL for those tests that need no server of their own (${why})`,
  );
}

function onPath(): RedisProgram | undefined {
  for (const name of PROGRAMS) {
    for (const folder of (process.env["PATH"] ?? "").split(path.delimiter)) {
      const command = path.join(folder, name);
      if (isExecutable(command)) return { command, env: {} };
    }
  }
  return undefined;
}

function unpacked(): RedisProgram | undefined {
  const command = path.join(cache, "usr/bin/redis-server");
  if (!isExecutable(command)) return undefined;
  const libraries = path.join(cache, "usr/lib");
  const folders = existsSync(libraries) ? readdirSync(libraries) : [];
  const all = folders.map((folder) => path.join(libraries, folder)).join(path.delimiter);
  return { command, env: { LD_LIBRARY_PATH: all } };
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
