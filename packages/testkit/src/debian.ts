// Programs and libraries of Debian's packages, for tests: installed by root, or unpacked by anybody.
import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { cacheOf, runLocked } from "./prepared.ts";

/** What is needed, and where from. */
export interface DebianPackages<Found> {
  /** For the folder of the packages. */
  readonly name: string;
  readonly packages: readonly string[];
  /** Packages that a small system lacks, to be unpacked with them; apt finds them by itself. */
  readonly libraries?: readonly string[];
  /** Looks for what is needed, on the machine and below the folder in which the packages lie unpacked. */
  readonly find: (unpacked: string) => Found | undefined;
  /** Whether root unpacks them too, where an installation would bring much that is not needed. Default: false. */
  readonly isUnpacked?: boolean;
  /** What somebody has to install, in a sentence without its end. */
  readonly hint: string;
}

/** What is needed; installed or unpacked when the machine does not have it. */
export function debianFiles<Found>(wanted: DebianPackages<Found>): Found {
  const { name, find, hint } = wanted;
  const cache = cacheOf(name);
  const present = find(cache);
  if (present !== undefined) return present;
  const isInstalled = process.getuid?.() === 0 && wanted.isUnpacked !== true;
  const why = runLocked(cache, isInstalled ? installing(wanted) : unpacking(wanted));
  const found = why === undefined ? find(cache) : undefined;
  if (found !== undefined) return found;
  throw new Error(`${hint} (${why ?? ""})`);
}

/** RUNLEVEL=1 keeps Debian from starting services: the tests start their own. What is installed already takes no time. */
function installing({ packages }: Pick<DebianPackages<unknown>, "packages">): string {
  return `
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
install() { apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 ${packages.join(" ")}; }
install || { apt-get update && install; }`;
}

function unpacking({
  packages,
  libraries = [],
}: Pick<DebianPackages<unknown>, "libraries" | "packages">): string {
  return `
[ -e whole ] && exit
download() { apt-get download ${[...packages, ...libraries].join(" ")}; }
download || { apt-get update && download; } || exit
rm -rf unpacked && mkdir unpacked || exit
for file in *.deb; do dpkg -x "$file" unpacked || exit; done
rm -rf usr && mv unpacked/usr usr && rm -rf unpacked *.deb && touch whole`;
}

/** How to run a program. */
export interface Program {
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A program on the PATH, in further folders, or among unpacked packages, which then bring their libraries. */
export function programOf(
  unpacked: string,
  names: readonly string[],
  more: readonly string[] = [],
): Program | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(path.delimiter), ...more];
  const own = ["usr/bin", "usr/sbin"].map((folder) => path.join(unpacked, folder));
  for (const folder of [...folders, ...own]) {
    const command = names.map((name) => path.join(folder, name)).find(isExecutable);
    if (command === undefined) continue;
    return { command, env: own.includes(folder) ? librariesOf(unpacked) : {} };
  }
  return undefined;
}

function librariesOf(unpacked: string): Readonly<Record<string, string>> {
  const libraries = path.join(unpacked, "usr/lib");
  const folders = existsSync(libraries) ? readdirSync(libraries) : [];
  const all = folders.map((folder) => path.join(libraries, folder));
  return { LD_LIBRARY_PATH: all.join(path.delimiter) };
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
