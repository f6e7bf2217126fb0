// What `npm install NAME…` does to a reader's folder, without a registry: packages of the workspace come by a link. Whatever a
// page forgets to install is missing. pages.pack.test.ts of the client installs for real.
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { root } from "../snippets.ts";

const client = path.join(root, "packages/client");
const bin = path.resolve("node_modules/.bin");
const [command, ...names] = process.argv.slice(2).filter((word) => !word.startsWith("--"));
if (command !== "install" || names.length === 0) throw new Error("only npm install NAME…");

function placeOf(name: string): string {
  if (name === "@idmint/client") return client;
  const places = [client, root].map((folder) => path.join(folder, "node_modules", name));
  const place = places.find((one) => existsSync(one));
  if (place === undefined) throw new Error(`the workspace has no ${name}`);
  return place;
}

function write(name: string, script: string): void {
  writeFileSync(path.join(bin, name), `#!/bin/sh\n${script}\n`);
  chmodSync(path.join(bin, name), 0o755);
}

for (const name of names) {
  if (name === "typescript") write("tsc", `exec '${root}/node_modules/.bin/tsc' "$@"`);
  if (name === "prisma") {
    // The command fetches engines first that neither its generator nor the client uses.
    const maker = path.join(client, "test/adapters/prisma-client.ts");
    const code = `(await import("${maker}")).makePrismaClient("prisma/schema.prisma", "generated")`;
    write(
      "prisma",
      `[ "$*" = generate ] && exec '${process.execPath}' -C idmint-source -e '${code}'`,
    );
    continue;
  }
  const to = path.resolve("node_modules", name);
  mkdirSync(path.dirname(to), { recursive: true });
  rmSync(to, { recursive: true, force: true });
  symlinkSync(placeOf(name), to);
}
