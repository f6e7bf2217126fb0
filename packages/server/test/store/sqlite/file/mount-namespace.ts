import { spawnSync, type SpawnSyncReturns } from "node:child_process";

function unshared(script: string, args: readonly string[]): SpawnSyncReturns<string> {
  const command = ["--mount", "--map-root-user", "sh", "-c", script, "sh", ...args];
  return spawnSync("unshare", command, { encoding: "utf8" });
}

/** Runs a shell that mounts in a namespace of its own; fails where this user may not. */
export function inMountNamespace(
  script: string,
  ...args: readonly string[]
): SpawnSyncReturns<string> {
  const { status, stderr } = unshared("mount -t tmpfs none /mnt", []);
  if (status === 0) return unshared(script, args);
  throw new Error(
    `this test mounts a file system in a namespace of its own: run it as root, or where users may make namespaces (unshare --mount --map-root-user). ${stderr}`,
  );
}
