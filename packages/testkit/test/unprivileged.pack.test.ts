// The packed server as nobody in particular, where every file system is read-only but its data folder.
import { spawn } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { Api } from "../src/fleet/api.ts";
import { freePort } from "../src/fleet/ports.ts";
import { until } from "../src/fleet/until.ts";
import { installPacked } from "./packed.ts";

/** The uid and gid of nobody. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/**
 * In a mount namespace of its own: everything read-only but `$1`, and what needs rights given up. Fails when anything else
 * can still be written.
 */
const CONFINE = `
set -eu
data=$1; shift
mount --bind "$data" "$data"
while read -r _ at _; do
  case "$at" in
    "$data"|/proc|/proc/*|/sys|/sys/*|/dev|/dev/pts|/dev/mqueue) ;;
    *) mount -o remount,ro,bind "$at" || true ;;
  esac
done < /proc/self/mounts
exec ${isRoot ? `setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups --no-new-privs --bounding-set=-all` : "env"} sh -c '
for folder in / /tmp /var/tmp /dev/shm "$HOME_OF_PACKAGES" "$PWD"; do
  if touch "$folder/idmint-probe" 2>/dev/null; then echo "can write to $folder" >&2; exit 9; fi
done
exec "$@"' sh "$@"`;

test("the packed server runs as nobody, on file systems that are read-only but for its data", async () => {
  const home = mkdtempSync(path.join(tmpdir(), "idmint-unprivileged-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  chmodSync(home, 0o755);
  installPacked(inject("tarballs"), home);
  const data = path.join(home, "data");
  mkdirSync(data, { mode: 0o700 });
  if (isRoot) chownSync(data, NOBODY, NOBODY);
  const address = `127.0.0.1:${await freePort()}`;
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME_OF_PACKAGES: home,
    IDMINT_STORE_URL: `sqlite:${path.join(data, "idmint.db")}`,
    IDMINT_GRPC_ADDRESS: address,
    IDMINT_HTTP_ADDRESS: `127.0.0.1:${await freePort()}`,
  };
  const main = path.join(home, "node_modules/idmint/dist/main.js");
  const confined = (command: string) => {
    const namespaces = isRoot ? ["-m"] : ["-r", "-m"];
    const program = ["sh", "-c", CONFINE, "sh", data, process.execPath, main, command];
    const child = spawn("unshare", [...namespaces, "--propagation", "private", ...program], {
      env,
      cwd: home,
    });
    const said = { out: "", err: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said.out += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said.err += text));
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    return { child, said, ended };
  };

  const migration = confined("migrate");
  expect(await migration.ended, migration.said.err).toBe(0);
  const server = confined("serve");
  using api = new Api(address);
  await until(
    "it takes calls",
    () => {
      if (server.child.exitCode !== null) throw new Error(server.said.err);
      return api.isServing();
    },
    { withinMs: 60_000 },
  );
  await api.createTag({ name: "orders" });
  const first = await api.id("orders");
  expect(await api.id("orders")).toBe(first + 1n);
  expect((await api.getTag("orders")).name).toBe("orders");
  server.child.kill("SIGTERM");
  expect(await server.ended, server.said.err).toBe(0);
  expect(server.said.err).not.toMatch(/EROFS|EACCES|EPERM|read-only/);
  expect(readdirSync(data).toSorted()).toEqual(["idmint.db", "idmint.db.witness"]);
});
