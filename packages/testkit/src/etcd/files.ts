// Where a real etcd comes from: the PATH, else Debian's packages, installed by root or unpacked by anybody.
import { spawnSync } from "node:child_process";
import { accessSync, constants, mkdirSync } from "node:fs";
import path from "node:path";

/** Paths of the programs that the tests run. */
export interface EtcdPrograms {
  readonly etcd: string;
  readonly etcdctl: string;
}

const cache = path.resolve(import.meta.dirname, "../../../../node_modules/.cache/idmint-etcd");

// RUNLEVEL=1 keeps Debian from starting the service: the tests start their own.
const INSTALL = `
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
install() { apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 etcd-server etcd-client; }
{ command -v etcd && command -v etcdctl; } || install || { apt-get update && install; }`;

const UNPACK = `
[ -e usr/bin/etcd ] && [ -e usr/bin/etcdctl ] && exit
apt-get download etcd-server etcd-client || exit
rm -rf unpacked && mkdir unpacked || exit
for file in *.deb; do dpkg -x "$file" unpacked || exit; done
rm -rf usr && mv unpacked/usr usr && rm -rf unpacked *.deb`;

let programs: EtcdPrograms | undefined;

/** The programs to run; installed or unpacked at the first call when the machine has none. */
export function etcdPrograms(): EtcdPrograms {
  programs ??= found() ?? installed();
  return programs;
}

function installed(): EtcdPrograms {
  mkdirSync(cache, { recursive: true });
  const isRoot = process.getuid?.() === 0;
  // The kernel lets go of the lock when its holder dies. Whoever waited finds the work done.
  const words = ["-w", "300", "lock", "sh", "-c", isRoot ? INSTALL : UNPACK];
  const { status, stderr, error } = spawnSync("flock", words, {
    cwd: cache,
    encoding: "utf8",
    timeout: 600_000,
  });
  const there = status === 0 ? found() : undefined;
  if (there !== undefined) return there;
  const why = error?.message ?? stderr.trim().split("\n").at(-1) ?? "";
  throw new Error(
    `no etcd for the tests: install etcd-server and etcd-client (etcd and etcdctl, version 3.4), or set IDMINT_TEST_ETCD_URL for those tests that need no server of their own (${why})`,
  );
}

function found(): EtcdPrograms | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(path.delimiter), `${cache}/usr/bin`];
  const etcd = executable("etcd", folders);
  const etcdctl = executable("etcdctl", folders);
  return etcd === undefined || etcdctl === undefined ? undefined : { etcd, etcdctl };
}

function executable(name: string, folders: readonly string[]): string | undefined {
  return folders
    .map((folder) => path.join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
